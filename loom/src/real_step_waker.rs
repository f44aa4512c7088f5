//! The source of the waker of a step's body, with loom's mutex. The handler's waker comes from the real tracker.

#[path = "../../crates/antiphon-engine/src/step_waker.rs"]
#[expect(unreachable_pub, reason = "its crate exports it")]
mod step_waker;

mod sync {
    use crate::{TrackerModel, WakerModel, real_tracker};
    pub(super) use loom::sync::Arc;
    use loom::sync::MutexGuard;

    macro_rules! no_wake {
        ($type:ty, $wake:ident) => {};
    }
    pub(super) use no_wake as impl_wake;

    /// The waker of the handler's poll.
    #[derive(Clone)]
    pub(super) struct Waker(pub(super) <real_tracker::WakeTracker as TrackerModel>::Waker);

    impl Waker {
        pub(super) fn wake(self) {
            self.0.wake();
        }

        /// Each poll of the model has its own tracker.
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
            self.0.lock().expect("the lock is not poisoned")
        }
    }
}

use crate::{
    TrackerModel, real_tracker,
    step_model::{BodyState, StepWakerModel},
};

/// The waker of a step's body.
#[derive(Clone)]
pub struct StepWaker(sync::Arc<step_waker::StepWaker>);

impl StepWakerModel for StepWaker {
    fn new() -> Self {
        Self(step_waker::StepWaker::new())
    }

    fn begin_poll(&self, waker: &<real_tracker::WakeTracker as TrackerModel>::Waker) -> bool {
        self.0.begin_poll(&sync::Waker(waker.clone()))
    }

    fn wake(&self) {
        self.0.wake_outer();
    }

    fn body_state(&self) -> BodyState {
        match self.0.body_state() {
            step_waker::BodyState::Waiting => BodyState::Waiting,
            step_waker::BodyState::Unpolled => BodyState::Unpolled,
            step_waker::BodyState::WakePending => BodyState::WakePending,
        }
    }

    fn end(&self) {
        drop(self.0.end());
    }
}
