//! The parts of the standard library that wakers are made of, and what makes a waker of them.
//!
//! The models in the workspace `loom` compile `tracker.rs` and `step_waker.rs` with stand-ins of the same names, which try
//! every order in which the threads can run.

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

/// A mutex that a panic does not poison: what it guards is whole at every moment.
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

/// The waker that, with each clone of it, keeps one reference to the track.
pub(crate) fn waker_of(track: Arc<SharedWake>) -> Waker {
    Waker::from(track)
}
