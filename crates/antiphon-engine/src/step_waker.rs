//! The waker of a step's body, which also shows if the body is still polled.
//!
//! The body is polled with one waker for its whole life, and only after that waker was woken. In a `join!` over many
//! steps, each step pays only for its own wakes. If the body was woken, the wake has reached the task that polls the
//! step, and no poll followed, then no task polls the step any more.

use super::sync::{Arc, Mutex, Waker, impl_wake};

/// The waker of the body of one step.
pub struct StepWaker(Mutex<Body>);

struct Body {
    /// The waker of the step's latest poll.
    outer: Option<Waker>,
    woken: bool,
    /// The number of wakes that have set `woken` and have not reached `outer` yet.
    pending_wakes: u32,
}

/// The state of a step's body between two polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyState {
    /// The body waits for its own I/O.
    Waiting,
    /// The body was woken, the wake has arrived, and no poll followed.
    Unpolled,
    /// A wake has not arrived yet.
    WakePending,
}

impl StepWaker {
    pub(crate) fn new() -> Arc<Self> {
        // `woken` begins as true, so that the first poll polls the body.
        Arc::new(Self(Mutex::new(Body { outer: None, woken: true, pending_wakes: 0 })))
    }

    /// Returns `true` if the body must be polled now. `waker` is the waker of the step's present poll.
    pub fn begin_poll(&self, waker: &Waker) -> bool {
        let mut displaced = None;
        let woken = {
            let mut body = self.0.lock();
            if !body.outer.as_ref().is_some_and(|outer| outer.will_wake(waker)) {
                displaced = body.outer.replace(waker.clone());
            }
            std::mem::take(&mut body.woken)
        };
        // Outside of the lock, because dropping a waker may run foreign code.
        drop(displaced);
        woken
    }

    pub(crate) fn body_state(&self) -> BodyState {
        let body = self.0.lock();
        match (body.woken, body.pending_wakes) {
            (false, 0) => BodyState::Waiting,
            (true, 0) => BodyState::Unpolled,
            _ => BodyState::WakePending,
        }
    }

    /// Ends the step: later wakes are ignored. Returns the outer waker, which the caller drops without a lock.
    pub(crate) fn end(&self) -> Option<Waker> {
        self.0.lock().outer.take()
    }

    /// Wakes the task that polls the step, unless a wake is pending or has arrived.
    pub(crate) fn wake_outer(&self) {
        let outer = {
            let mut body = self.0.lock();
            if std::mem::replace(&mut body.woken, true) {
                return;
            }
            body.pending_wakes += 1;
            body.outer.clone()
        };
        if let Some(outer) = outer {
            outer.wake();
        }
        self.0.lock().pending_wakes -= 1;
    }
}

impl_wake!(StepWaker, wake_outer);

impl std::fmt::Debug for StepWaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepWaker").finish_non_exhaustive()
    }
}
