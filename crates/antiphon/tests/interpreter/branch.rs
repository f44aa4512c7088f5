//! A branch of a handler: its environment and its end.

use crate::{
    stop::Stop,
    trace::{BranchResult, Chain, Scene},
    tree::BranchPosition,
};
use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::watch;

/// The environment of a branch of the handler.
#[derive(Clone)]
pub(crate) struct Env {
    pub(crate) scene: Arc<Scene>,
    pub(crate) at: BranchPosition,
    pub(crate) chain: Chain,
    pub(crate) feed: Option<watch::Receiver<Option<End>>>,
}

impl Env {
    pub(crate) fn new(scene: Arc<Scene>) -> Self {
        Self { scene, at: BranchPosition::default(), chain: Chain::default(), feed: None }
    }

    pub(crate) fn wrong(&self, what: String) {
        self.scene.trace.wrong(what);
    }

    pub(crate) fn decided(&self, path: String, decided: BranchResult) {
        // What `try_join` gave counts once an effect follows.
        if !matches!(decided, BranchResult::Tried(_)) && self.is_compared() {
            self.scene.trace.decides(&path, decided);
        }
        self.scene.leg.decided.lock().unwrap().insert(path, decided);
    }

    /// Notes that an effect follows what the handler has decided in this run.
    pub(crate) fn acts(&self) {
        if self.is_compared() {
            let decided = self.scene.leg.decided.lock().unwrap();
            let tried = decided.iter().filter(|(_, decided)| matches!(decided, BranchResult::Tried(_)));
            tried.for_each(|(path, decided)| self.scene.trace.decides(path, *decided));
        }
    }

    /// Returns `true` if other runs decide as this one does: its process is alive, and its call is theirs.
    fn is_compared(&self) -> bool {
        let is_alive = self.scene.process.as_ref().is_some_and(|process| !process.is_dead());
        is_alive && !self.scene.leg.begins_a_call.load(Ordering::Relaxed)
    }

    /// Never returns in a dead process.
    pub(crate) async fn alive(&self) {
        if let Some(process) = &self.scene.process {
            process.alive().await;
        }
    }

    pub(crate) fn at(&self, at: BranchPosition) -> Self {
        Self { at, ..self.clone() }
    }

    pub(crate) fn after(&self, chain: Chain) -> Self {
        Self { chain, ..self.clone() }
    }
}

/// The end of a branch.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) result: Result<u64, Stop>,
    pub(crate) chain: Chain,
}

pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = End> + Send + 'a>>;

/// A panic of which nothing is printed.
pub(crate) fn panic_quietly() -> ! {
    std::panic::resume_unwind(Box::new("as the program says"))
}
