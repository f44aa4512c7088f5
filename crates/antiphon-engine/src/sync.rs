//! The parts of the standard library that the wakers use.
//!
//! The models in the workspace `loom` compile `wake_tracker.rs` and `step_waker.rs` with replacements of the same
//! names. They try every order in which the threads can run.

pub(crate) use antiphon_wire::lock::Lock as Mutex;
pub(crate) use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
};

use std::task::Wake;

/// Implements `Wake` for a type by one of its methods. The models have no `Wake`, so their macro of this name expands to
/// nothing.
macro_rules! impl_wake {
    ($type:ty, $wake:ident) => {
        impl std::task::Wake for $type {
            fn wake(self: Arc<Self>) {
                self.$wake();
            }

            fn wake_by_ref(self: &Arc<Self>) {
                self.$wake();
            }
        }
    };
}
pub(crate) use impl_wake;

/// Returns a waker. Each clone of the waker holds one reference to `track`.
pub(crate) fn waker_of<T: Wake + Send + Sync + 'static>(track: Arc<T>) -> Waker {
    Waker::from(track)
}
