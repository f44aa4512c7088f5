//! The tracker's source, with loom's atomics and loom's `Arc`.

/// Writes the module `sync` that `wake_tracker.rs` imports, and implements the model's trait for the tracker.
macro_rules! replacements {
    (arc: $arc:ty, release: $release:ident, acquire: $acquire:ident) => {
        mod sync {
            use super::wake_tracker::SharedWake;
            use crate::{WakerModel, parent::Parent};
            pub(super) use loom::sync::atomic::AtomicBool;

            pub(super) type Arc<T> = $arc;

            /// The orderings that the source uses.
            pub(super) struct Ordering;

            #[expect(non_upper_case_globals, reason = "they replace variants of an enum")]
            impl Ordering {
                pub(super) const Release: loom::sync::atomic::Ordering =
                    loom::sync::atomic::Ordering::$release;
                pub(super) const Acquire: loom::sync::atomic::Ordering =
                    loom::sync::atomic::Ordering::$acquire;
            }

            /// The waker of the task, or of a tracker.
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

            impl WakerModel for Waker {
                fn wake(self) {
                    self.wake_by_ref();
                }

                fn wake_by_ref(&self) {
                    self.wake_by_ref();
                }
            }

            macro_rules! no_wake {
                ($type:ty, $wake:ident) => {};
            }
            pub(super) use no_wake as impl_wake;

            pub(super) fn waker_of(track: Arc<SharedWake>) -> Waker {
                Waker(Inner::Track(track))
            }
        }

        use crate::{TrackerModel, WakerState, parent::Parent};

        /// The tracker of one poll.
        pub struct WakeTracker(wake_tracker::WakeTracker);

        impl TrackerModel for WakeTracker {
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

            fn waker_state(&mut self) -> WakerState {
                match self.0.waker_state() {
                    wake_tracker::WakerState::Released => WakerState::Released,
                    wake_tracker::WakerState::Woken => WakerState::Woken,
                    wake_tracker::WakerState::Held => WakerState::Held,
                }
            }
        }
    };
}
pub(crate) use replacements;

#[path = "../../crates/antiphon-engine/src/wake_tracker.rs"]
#[expect(unreachable_pub, reason = "its crate exports it")]
mod wake_tracker;

replacements!(arc: loom::sync::Arc<T>, release: Release, acquire: Acquire);
