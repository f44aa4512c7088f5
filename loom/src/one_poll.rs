//! One poll: other threads use clones of its waker while the driver checks the tracker.

use crate::{Fault, Quiet, Tracking, Wakes, model, parent::Parent};
use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};
use std::sync::Mutex;

/// The action of a thread on its clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakerAction {
    /// Wakes by value, as most do.
    Wake,
    /// Wakes by reference, then drops it.
    WakeByRef,
    /// Wakes a clone, and after that itself.
    WakeTwice,
    /// Drops it.
    Drop,
}

impl WakerAction {
    fn wakes(self) -> usize {
        match self {
            Self::Wake | Self::WakeByRef => 1,
            Self::WakeTwice => 2,
            Self::Drop => 0,
        }
    }

    fn done_with(self, waker: impl Wakes) {
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

/// The counts over all executions of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The number of interleavings.
    pub executions: u64,
    /// The number of executions in which no waker was left.
    pub nobody: u64,
    /// The number of executions in which a wake had arrived.
    pub woken: u64,
    /// The number of executions in which a clone was left.
    pub kept: u64,
    fault: Fault,
}

impl Seen {
    fn count(&mut self, quiet: Quiet) {
        self.executions += 1;
        match quiet {
            Quiet::Nobody => self.nobody += 1,
            Quiet::Woken => self.woken += 1,
            Quiet::Kept => self.kept += 1,
        }
    }
}

/// Tries every order in which one thread for each of `actions` can run beside the driver.
///
/// # Panics
/// If a wake is lost, or the tracker reports that no waker is left while one is.
#[must_use]
pub fn explore<T: Tracking>(actions: &'static [WakerAction]) -> Seen {
    let seen = std::sync::Arc::new(Mutex::new(Seen::default()));
    let all = std::sync::Arc::clone(&seen);
    model(actions.len()).check(move || {
        let (quiet, fault) = execution::<T>(actions);
        let mut all = all.lock().expect("counting does not panic");
        all.count(quiet);
        all.fault = Fault(all.fault.0.or(fault.0));
    });
    let seen = *seen.lock().expect("counting does not panic");
    assert_eq!(seen.fault, Fault::default(), "{actions:?}: {seen:?}");
    seen
}

fn execution<T: Tracking>(actions: &[WakerAction]) -> (Quiet, Fault) {
    let mut fault = Fault::default();
    let parent = Parent::new();
    let mut tracker = T::new(&parent);
    let waker = tracker.waker();
    let (notes, threads): (Vec<_>, Vec<_>) = actions
        .iter()
        .map(|&action| {
            let (note, clone) = (Arc::new(AtomicBool::new(false)), waker.clone());
            let written = note.clone();
            let thread = thread::spawn(move || {
                // Nothing but the wake orders this against the poll that follows.
                written.store(true, Relaxed);
                action.done_with(clone);
            });
            ((action, note), thread)
        })
        .unzip();
    drop(waker);
    // What a thread wrote before it woke is there for the next poll.
    let readable = || notes.iter().any(|(action, note)| action.wakes() > 0 && note.load(Relaxed));
    let wakes: usize = actions.iter().map(|action| action.wakes()).sum();

    let quiet = tracker.judge();
    let mut heard = 0;
    match quiet {
        Quiet::Nobody => {
            fault.unless(wakes == 0, "nobody was said to be left, and somebody had woken or would")
        }
        Quiet::Woken => {
            fault.unless(wakes > 0, "it was woken by nobody");
            fault.unless(readable(), "woken before what was written");
        }
        Quiet::Kept if wakes > 0 => {
            heard = parent.wait();
            fault.unless(readable(), "the parent was woken before what was written");
        }
        Quiet::Kept => {}
    }
    for thread in threads {
        thread.join().expect("it only wakes");
    }
    // Once every thread is done there is nothing left to be unsure of.
    let last = if wakes > 0 { Quiet::Woken } else { Quiet::Nobody };
    fault.unless(tracker.judge() == last, "what is over is judged wrongly");
    fault.unless(heard + parent.taken() == wakes, "the parent did not hear of each wake");
    (quiet, fault)
}
