//! Whether a handler that is blocked can still be woken by anything but an answer.
//!
//! Ask futures never keep the waker they are polled with; whatever else can make progress must. So a poll is given a
//! waker of its own. If no clone of it is alive after the poll and nobody woke it, only an answer can wake the handler:
//! the leg may end there. A clone that an earlier poll left behind does not count, as the contract of `Future::poll`
//! says: only the waker of the latest poll is to be woken. Its wake still reaches the parent.

use super::sync::{Arc, AtomicBool, Ordering, Waker, waker_of};

/// What the wakers of one poll share.
pub(crate) struct SharedWake {
    /// The waker of the task that runs the driver.
    parent: Waker,
    woken: AtomicBool,
}

impl SharedWake {
    /// Notes a wake and passes it on. The reference that a waker holds is dropped after this, never before: who finds no
    /// other reference has every wake before him.
    pub(crate) fn pass_on(&self) {
        // Release: what the waking thread wrote before is there for the poll that follows [`WakerState::Woken`], for that
        // poll does not wait for the parent's wake.
        self.woken.store(true, Ordering::Release);
        self.parent.wake_by_ref();
    }
}

/// One poll's waker: whether it was woken, and whether anybody kept it.
pub struct WakeTracker(Arc<SharedWake>);

/// What can wake a handler that is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakerState {
    /// Nobody kept the waker and nobody woke it: only an answer can wake the handler.
    Released,
    /// It was woken already: poll again. The parent was woken too, or is about to be.
    Woken,
    /// Somebody kept it and may wake it; then the parent is woken.
    Held,
}

impl WakeTracker {
    /// A tracker for one poll, whose wakes go on to `parent`: the waker this run of the driver was given.
    pub fn new(parent: &Waker) -> Self {
        Self(Arc::new(SharedWake { parent: parent.clone(), woken: AtomicBool::new(false) }))
    }

    /// The waker for exactly one poll. It counts as kept until it is dropped: drop it before [`Leg::after_poll`](crate::Leg::after_poll).
    pub fn waker(&self) -> Waker {
        waker_of(Arc::clone(&self.0))
    }

    /// What can still wake the handler, after a poll that left it pending.
    pub(crate) fn waker_state(&mut self) -> WakerState {
        // In this order: a clone that wakes and is dropped between the two looks would be missed the other way round.
        // To find no other reference is an acquire that pairs with the drop of each of them, so the flag is final then.
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
        assert_eq!(tracker.waker_state(), expected, "to judge changes nothing");
        assert_eq!(parent.0.load(Ordering::Relaxed), wakes);
        // A wake that comes later is passed on, also when the tracker is gone.
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
                std::thread::spawn(move || clone.wake()).join().expect("it wakes");
                vec![]
            },
            WakerState::Woken,
            1,
        );
    }
}
