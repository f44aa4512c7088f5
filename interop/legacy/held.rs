//! What whoever sits at a client holds: the case that is played, what they were asked and told. For a program with a module
//! `table` that has `Case`; how they answer is the program's.

use crate::table::Case;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Whoever sits at the client. Clones share what they hold.
#[derive(Clone, Default)]
pub(crate) struct Person {
    held: Arc<Mutex<Held>>,
    news: Arc<Notify>,
}

#[derive(Default)]
pub(crate) struct Held {
    pub(crate) case: Case,
    pub(crate) asked: Vec<String>,
    pub(crate) progress: usize,
    pub(crate) logs: usize,
    pub(crate) completed: Vec<String>,
}

impl Person {
    pub(crate) fn sit_down(&self, case: &Case) {
        *self.held() = Held { case: case.clone(), ..Held::default() };
    }

    /// Until what the case says is told: it arrives beside the result, before it or after.
    pub(crate) async fn told(&self) -> Result<(), String> {
        loop {
            let news = self.news.notified();
            {
                let held = self.held();
                let case = &held.case;
                let all = held.progress >= case.progress && held.logs >= case.logs;
                if all && held.completed.len() >= case.completed.len() {
                    let same = held.completed == case.completed;
                    return if same { Ok(()) } else { Err(format!("completed {:?}", held.completed)) };
                }
            }
            news.await;
        }
    }

    pub(crate) fn hear(&self, change: impl FnOnce(&mut Held)) {
        change(&mut self.held());
        self.news.notify_one();
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
