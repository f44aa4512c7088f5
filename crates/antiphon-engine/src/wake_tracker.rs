//! The test that only an answer can wake a blocked handler.
//!
//! Ask futures never keep the waker of their poll. Every other future that can make progress must keep it. So the
//! driver polls the handler with a waker of its own. If no clone of this waker is alive after the poll and it was not
//! woken, only an answer can wake the handler, and the leg may end. Clones from earlier polls do not count, because the
//! contract of `Future::poll` requires only the waker of the latest poll to be woken. A wake through an older clone
//! still reaches the parent.

use super::sync::{Arc, AtomicBool, Ordering, Waker, impl_wake, waker_of};

/// The state that all clones of one poll's waker share.
pub(crate) struct SharedWake {
    /// The waker of the task that runs the driver.
    parent: Waker,
    woken: AtomicBool,
}

impl SharedWake {
    /// Records a wake and wakes the parent. A waker drops its reference after this function returns, so a thread that
    /// finds no other reference also finds every wake.
    pub(crate) fn pass_on(&self) {
        // Release: the poll that follows [`WakerState::Woken`] sees everything that the waking thread wrote before.
        // That poll does not wait for the parent's wake.
        self.woken.store(true, Ordering::Release);
        self.parent.wake_by_ref();
    }
}

impl_wake!(SharedWake, pass_on);

/// The tracker of one poll's waker: it shows if the waker was woken, and if a clone of it is still held.
pub struct WakeTracker(Arc<SharedWake>);

/// The means that can wake a pending handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakerState {
    /// No clone is held and the waker was not woken: only an answer can wake the handler.
    Released,
    /// The waker was woken: poll again. The parent was woken too, or will be at once.
    Woken,
    /// A clone is held and can wake the parent.
    Held,
}

impl WakeTracker {
    /// Creates the tracker of one poll. Its wakes also wake `parent`, the waker of the driver's task.
    pub fn new(parent: &Waker) -> Self {
        Self(Arc::new(SharedWake { parent: parent.clone(), woken: AtomicBool::new(false) }))
    }

    /// Returns the waker for exactly one poll. The waker counts as held until the caller drops it, so drop it before
    /// [`Leg::after_poll`](crate::Leg::after_poll).
    pub fn waker(&self) -> Waker {
        waker_of(Arc::clone(&self.0))
    }

    /// Returns the means that can still wake the handler, after a poll that returned `Pending`.
    pub(crate) fn waker_state(&mut self) -> WakerState {
        // The references first, then the flag: in the other order, a clone that wakes and is dropped in between would
        // be missed. `get_mut` acquires what each dropped reference released, so the flag is final after it.
        let alone = Arc::get_mut(&mut self.0).is_some();
        if self.0.woken.load(Ordering::Acquire) {
            WakerState::Woken
        } else if alone {
            WakerState::Released
        } else {
            WakerState::Held
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::AtomicU32,
        task::{Context, Wake},
    };

    #[derive(Default)]
    struct Parent(AtomicU32);

    impl Wake for Parent {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn check(poll: impl FnOnce(&Waker) -> Vec<Waker>, expected: WakerState, wakes: u32) {
        let parent = Arc::new(Parent::default());
        let mut tracker = WakeTracker::new(&Waker::from(Arc::clone(&parent)));
        let waker = tracker.waker();
        let kept = poll(Context::from_waker(&waker).waker());
        drop(waker);
        assert_eq!(tracker.waker_state(), expected);
        assert_eq!(tracker.waker_state(), expected, "reading the state does not change it");
        assert_eq!(parent.0.load(Ordering::Relaxed), wakes);
        // A later wake still wakes the parent, even without the tracker.
        drop(tracker);
        let later = u32::try_from(kept.len()).expect("few wakers");
        kept.into_iter().for_each(Waker::wake);
        assert_eq!(parent.0.load(Ordering::Relaxed), wakes + later);
    }

    #[test]
    fn who_can_wake() {
        check(|_| vec![], WakerState::Released, 0);
        check(
            |waker| {
                drop(waker.clone());
                vec![]
            },
            WakerState::Released,
            0,
        );
        check(|waker| vec![waker.clone()], WakerState::Held, 0);
        check(|waker| vec![waker.clone(), waker.clone()], WakerState::Held, 0);
        check(
            |waker| {
                waker.wake_by_ref();
                vec![]
            },
            WakerState::Woken,
            1,
        );
        check(
            |waker| {
                let (woken, kept) = (waker.clone(), waker.clone());
                woken.wake();
                vec![kept]
            },
            WakerState::Woken,
            1,
        );
        check(
            |waker| {
                let clone = waker.clone();
                std::thread::spawn(move || clone.wake()).join().expect("the thread only wakes");
                vec![]
            },
            WakerState::Woken,
            1,
        );
    }
}
