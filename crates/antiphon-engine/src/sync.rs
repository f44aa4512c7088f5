//! The parts of the standard library that the wakers use, and the implementations of `Wake`.
//!
//! The models in the workspace `loom` compile `wake_tracker.rs` and `step_waker.rs` with replacements of the same
//! names. They try every order in which the threads can run.

pub(crate) use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
};

use crate::{step_waker::StepWaker, wake_tracker::SharedWake};
use std::{
    sync::{self, MutexGuard, PoisonError},
    task::Wake,
};

/// A mutex that ignores poisoning: no panic can leave its value half changed.
pub(crate) struct Mutex<T>(sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for SharedWake {
    fn wake(self: Arc<Self>) {
        self.pass_on();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.pass_on();
    }
}

impl Wake for StepWaker {
    fn wake(self: Arc<Self>) {
        self.wake_outer();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_outer();
    }
}

/// Returns a waker. Each clone of the waker holds one reference to `track`.
pub(crate) fn waker_of(track: Arc<SharedWake>) -> Waker {
    Waker::from(track)
}
