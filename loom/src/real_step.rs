//! The waker of a step's body itself, with loom's mutex. It wakes the handler through a real tracker.

#[path = "../../crates/antiphon-engine/src/step_waker.rs"]
#[expect(unreachable_pub, reason = "its crate gives it to others")]
mod step_waker;

mod sync {
    use crate::{Tracking, Wakes, real};
    pub(super) use loom::sync::Arc;
    use loom::sync::MutexGuard;

    /// The waker that the handler is polled with.
    #[derive(Clone)]
    pub(super) struct Waker(pub(super) <real::WakeTracker as Tracking>::Waker);

    impl Waker {
        pub(super) fn wake(self) {
            self.0.wake();
        }

        /// Each poll of the model has a tracker of its own.
        pub(super) fn will_wake(&self, _: &Self) -> bool {
            false
        }
    }

    pub(super) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(super) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(super) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("nobody panics with it")
        }
    }
}

use crate::{
    Tracking, real,
    step::{Standing, Waking},
};

/// The waker of a step's body, as the engine has it.
#[derive(Clone)]
pub struct StepWaker(sync::Arc<step_waker::StepWaker>);

impl Waking for StepWaker {
    fn new() -> Self {
        Self(step_waker::StepWaker::new())
    }

    fn begin_poll(&self, waker: &<real::WakeTracker as Tracking>::Waker) -> bool {
        self.0.begin_poll(&sync::Waker(waker.clone()))
    }

    fn wake(&self) {
        self.0.wake_outer();
    }

    fn standing(&self) -> Standing {
        match self.0.body_state() {
            step_waker::BodyState::Waiting => Standing::Waits,
            step_waker::BodyState::Unpolled => Standing::Unpolled,
            step_waker::BodyState::WakePending => Standing::WakeUnderWay,
        }
    }

    fn end(&self) {
        drop(self.0.end());
    }
}
