//! The course of a handler that orders: the places at which it waits, and the ends of its body.

use antiphon::{Error, Result, server::StepError};
use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};
use tokio::sync::Semaphore;

/// The end of a body, after its write.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Error,
    Again,
    Panic,
    /// A result that is too large for a record.
    TooLarge,
}

/// The course of a handler and of its body.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// The place before the step.
    pub(super) before: Gate,
    /// The place in the body, after its write.
    pub(super) body: Gate,
    /// The place after the step.
    pub(super) after: Gate,
    ends: Mutex<VecDeque<End>>,
    runs: AtomicUsize,
}

impl Script {
    /// Sets the ends of the next bodies. Later ones return a value.
    pub(super) fn ends(self, ends: impl IntoIterator<Item = End>) -> Self {
        self.ends.lock().unwrap().extend(ends);
        self
    }

    /// Returns the number of bodies that ended.
    pub(super) fn runs(&self) -> usize {
        self.runs.load(SeqCst)
    }

    /// Ends a body.
    pub(super) fn end(&self) -> Result<String> {
        let run = self.runs.fetch_add(1, SeqCst) + 1;
        let end = self.ends.lock().unwrap().pop_front();
        match end {
            None => Ok(format!("order {run}")),
            Some(End::Error) => Err(Error::user_facing("sold out")),
            Some(End::Again) => Err(StepError::retry("not now")),
            Some(End::Panic) => panic!("on purpose"),
            Some(End::TooLarge) => Ok("x".repeat(20_000)),
        }
    }
}

/// A place at which the next pass waits, if the test has closed it.
#[derive(Debug)]
pub(super) struct Gate {
    is_closed: AtomicBool,
    reached: Semaphore,
    open: Semaphore,
}

impl Default for Gate {
    fn default() -> Self {
        Self { is_closed: AtomicBool::new(false), reached: Semaphore::new(0), open: Semaphore::new(0) }
    }
}

impl Gate {
    /// Lets the next pass wait.
    pub(super) fn close(&self) {
        self.is_closed.store(true, SeqCst);
    }

    /// Waits until a pass waits.
    pub(super) async fn reached(&self) {
        self.reached.acquire().await.unwrap().forget();
    }

    /// Lets the waiting pass go on.
    pub(super) fn open(&self) {
        self.open.add_permits(1);
    }

    pub(super) async fn pass(&self) {
        if self.is_closed.swap(false, SeqCst) {
            self.reached.add_permits(1);
            self.open.acquire().await.unwrap().forget();
        }
    }
}
