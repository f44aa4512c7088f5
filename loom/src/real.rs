//! The tracker itself, with loom's atomics and loom's `Arc`.

/// Writes the module `sync` beside which `tracker.rs` expects to stand, and gives its tracker the face of the model.
macro_rules! stand_ins {
    (arc: $arc:ty, release: $release:ident, acquire: $acquire:ident) => {
        mod sync {
            use super::wake_tracker::SharedWake;
            use crate::{Wakes, parent::Parent};
            pub(super) use loom::sync::atomic::AtomicBool;

            pub(super) type Arc<T> = $arc;

            /// The orderings the source names.
            pub(super) struct Ordering;

            #[expect(non_upper_case_globals, reason = "they stand for variants")]
            impl Ordering {
                pub(super) const Release: loom::sync::atomic::Ordering =
                    loom::sync::atomic::Ordering::$release;
                pub(super) const Acquire: loom::sync::atomic::Ordering =
                    loom::sync::atomic::Ordering::$acquire;
            }

            /// The task's waker, or a tracker's.
            #[derive(Clone)]
            pub struct Waker(pub(super) Inner);

            #[derive(Clone)]
            pub(super) enum Inner {
                Parent(Parent),
                Track(Arc<SharedWake>),
            }

            impl Waker {
                pub(super) fn wake_by_ref(&self) {
                    match &self.0 {
                        Inner::Parent(parent) => parent.wake(),
                        Inner::Track(track) => track.pass_on(),
                    }
                }
            }

            impl Wakes for Waker {
                fn wake(self) {
                    self.wake_by_ref();
                }

                fn wake_by_ref(&self) {
                    self.wake_by_ref();
                }
            }

            pub(super) fn waker_of(track: Arc<SharedWake>) -> Waker {
                Waker(Inner::Track(track))
            }
        }

        use crate::{Quiet, Tracking, parent::Parent};

        /// The tracker, as the driver has it.
        pub struct WakeTracker(wake_tracker::WakeTracker);

        impl Tracking for WakeTracker {
            type Waker = sync::Waker;

            fn parent(parent: &Parent) -> sync::Waker {
                sync::Waker(sync::Inner::Parent(parent.clone()))
            }

            fn new(parent: &Parent) -> Self {
                Self(wake_tracker::WakeTracker::new(&Self::parent(parent)))
            }

            fn waker(&self) -> sync::Waker {
                self.0.waker()
            }

            fn judge(&mut self) -> Quiet {
                match self.0.waker_state() {
                    wake_tracker::WakerState::Released => Quiet::Nobody,
                    wake_tracker::WakerState::Woken => Quiet::Woken,
                    wake_tracker::WakerState::Held => Quiet::Kept,
                }
            }
        }
    };
}
pub(crate) use stand_ins;

#[path = "../../crates/antiphon-engine/src/wake_tracker.rs"]
#[expect(unreachable_pub, reason = "its crate gives it to others")]
mod wake_tracker;

stand_ins!(arc: loom::sync::Arc<T>, release: Release, acquire: Acquire);
