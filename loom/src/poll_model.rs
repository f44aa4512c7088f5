//! One poll: clones of its waker are used by other threads while the driver reads the state.

use crate::{Fault, TrackerModel, WakerModel, WakerState, model, parent::Parent};
use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};
use std::sync::Mutex;

/// The use of a clone of the waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakerUse {
    /// Wakes by value.
    Wake,
    /// Wakes by reference, then drops the clone.
    WakeByRef,
    /// Wakes a clone of the clone, then the clone.
    WakeTwice,
    /// Drops the clone.
    Drop,
}

impl WakerUse {
    fn wakes(self) -> usize {
        match self {
            Self::Wake | Self::WakeByRef => 1,
            Self::WakeTwice => 2,
            Self::Drop => 0,
        }
    }

    fn apply(self, waker: impl WakerModel) {
        match self {
            Self::Wake => waker.wake(),
            Self::WakeByRef => waker.wake_by_ref(),
            Self::WakeTwice => {
                let clone = waker.clone();
                clone.wake();
                waker.wake();
            }
            Self::Drop => drop(waker),
        }
    }
}

/// The outcomes of all executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// The number of orders that were tried.
    pub executions: u64,
    /// The number of executions in which no clone was held.
    pub released: u64,
    /// The number of executions in which the waker was woken.
    pub woken: u64,
    /// The number of executions in which a clone was held.
    pub held: u64,
    fault: Fault,
}

impl Outcomes {
    fn count(&mut self, state: WakerState) {
        self.executions += 1;
        match state {
            WakerState::Released => self.released += 1,
            WakerState::Woken => self.woken += 1,
            WakerState::Held => self.held += 1,
        }
    }
}

/// Tries every order of one thread for each of `uses` beside the driver.
///
/// # Panics
/// If a wake is lost, or the state is released while a clone can wake.
#[must_use]
pub fn explore<T: TrackerModel>(uses: &'static [WakerUse]) -> Outcomes {
    let outcomes = std::sync::Arc::new(Mutex::new(Outcomes::default()));
    let all = std::sync::Arc::clone(&outcomes);
    model(uses.len()).check(move || {
        let (state, fault) = execution::<T>(uses);
        let mut all = all.lock().expect("counting does not panic");
        all.count(state);
        all.fault = Fault(all.fault.0.or(fault.0));
    });
    let outcomes = *outcomes.lock().expect("counting does not panic");
    assert_eq!(outcomes.fault, Fault::default(), "{uses:?}: {outcomes:?}");
    outcomes
}

fn execution<T: TrackerModel>(uses: &[WakerUse]) -> (WakerState, Fault) {
    let mut fault = Fault::default();
    let parent = Parent::new();
    let mut tracker = T::new(&parent);
    let waker = tracker.waker();
    let (notes, threads): (Vec<_>, Vec<_>) = uses
        .iter()
        .map(|&waker_use| {
            let (note, clone) = (Arc::new(AtomicBool::new(false)), waker.clone());
            let written = note.clone();
            let thread = thread::spawn(move || {
                // Only the wake orders this write before the next poll.
                written.store(true, Relaxed);
                waker_use.apply(clone);
            });
            ((waker_use, note), thread)
        })
        .unzip();
    drop(waker);
    // The next poll must see what a thread wrote before its wake.
    let readable = || notes.iter().any(|(waker_use, note)| waker_use.wakes() > 0 && note.load(Relaxed));
    let wakes: usize = uses.iter().map(|waker_use| waker_use.wakes()).sum();

    let state = tracker.waker_state();
    let mut waited_wakes = 0;
    match state {
        WakerState::Released => fault.unless(wakes == 0, "released although a thread has woken or will wake"),
        WakerState::Woken => {
            fault.unless(wakes > 0, "woken without a wake");
            fault.unless(readable(), "woken before what was written");
        }
        WakerState::Held if wakes > 0 => {
            waited_wakes = parent.wait();
            fault.unless(readable(), "the parent was woken before what was written");
        }
        WakerState::Held => {}
    }
    for thread in threads {
        thread.join().expect("the thread only wakes");
    }
    // After all threads have ended, the state is known.
    let last = if wakes > 0 { WakerState::Woken } else { WakerState::Released };
    fault.unless(tracker.waker_state() == last, "the final state is wrong");
    fault.unless(waited_wakes + parent.take_wakes() == wakes, "the parent did not receive each wake");
    (state, fault)
}
