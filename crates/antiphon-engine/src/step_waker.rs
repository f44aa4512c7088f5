//! Whether the body of a step that was begun is still polled.
//!
//! The body is polled with one waker for its whole life, and only where that was woken: so a `join!` over many steps costs
//! each only its own wakes. What is known besides: a body that was woken, whose wake has reached whoever polls the step, and
//! that was not polled since, is polled by nobody any more.

use super::sync::{Arc, Mutex, Waker};

/// The waker of the body of one step.
pub struct StepWaker(Mutex<Body>);

struct Body {
    /// Whoever polls the step.
    outer: Option<Waker>,
    woken: bool,
    /// Wakes that have set `woken` and have not yet reached `outer`.
    pending_wakes: u32,
}

/// How a step stands while it is not being polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyState {
    /// It waits for its own I/O.
    Waiting,
    /// It was woken, its wake has arrived, and it was not polled.
    Unpolled,
    /// A wake is on its way.
    WakePending,
}

impl StepWaker {
    pub(crate) fn new() -> Arc<Self> {
        // Woken: the first poll polls the body.
        Arc::new(Self(Mutex::new(Body { outer: None, woken: true, pending_wakes: 0 })))
    }

    /// Returns whether the body is to be polled, now that the step is polled with this waker.
    pub fn begin_poll(&self, waker: &Waker) -> bool {
        let mut displaced = None;
        let woken = {
            let mut body = self.0.lock();
            if !body.outer.as_ref().is_some_and(|outer| outer.will_wake(waker)) {
                displaced = body.outer.replace(waker.clone());
            }
            std::mem::take(&mut body.woken)
        };
        // Not under the lock: dropping a waker may run foreign code.
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

    /// The step is over: nobody is woken any more. Gives the waker, to be dropped without a lock.
    pub(crate) fn end(&self) -> Option<Waker> {
        self.0.lock().outer.take()
    }

    /// Wakes whoever polls the step, unless a wake is on its way or has arrived.
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

impl std::fmt::Debug for StepWaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepWaker").finish_non_exhaustive()
    }
}
