//! A step beside a question: threads wake the body of the step, and the driver reads if the step is still polled, as
//! `at_rest` in `leg/next_action.rs` does.

use crate::{Fault, TrackerModel, WakerState, model, parent::Parent, real_tracker};
use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

/// The state of a step's body between two polls, one type for all compilations of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyState {
    /// The body waits for its own I/O.
    Waiting,
    /// The body was woken, the wake has arrived, and no poll followed.
    Unpolled,
    /// A wake has not arrived yet.
    WakePending,
}

/// The waker of a step's body in the model.
pub trait StepWakerModel: Clone + Send + 'static {
    /// Creates the waker of a step before its first poll.
    fn new() -> Self;
    /// Returns `true` if the body must be polled now. `waker` is the waker of the step's present poll.
    fn begin_poll(&self, waker: &<real_tracker::WakeTracker as TrackerModel>::Waker) -> bool;
    /// Wakes the body.
    fn wake(&self);
    /// Returns the state of the body.
    fn body_state(&self) -> BodyState;
    /// Ends the step.
    fn end(&self);
}

/// The number of times that the driver reads the tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackerReads {
    /// Two reads, before and after the driver reads the step.
    Two,
    /// One read, before the driver reads the step.
    One,
}

/// The outcomes of all executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// The number of orders that were tried.
    pub executions: u64,
    /// The number of times that a wake had not arrived.
    pub pending_wakes: u64,
    /// The number of times that the step seemed unpolled, and the second read of the tracker found a wake.
    pub second_looks: u64,
    /// The number of times that the driver waited.
    pub waits: u64,
    fault: Fault,
}

impl Outcomes {
    fn add(&mut self, one: Self) {
        self.executions += 1;
        self.pending_wakes += one.pending_wakes;
        self.second_looks += one.second_looks;
        self.waits += one.waits;
        self.fault = Fault(self.fault.0.or(one.fault.0));
    }
}

/// Tries every order in which this number of threads wake the body beside the driver. The step has its result when all
/// threads have woken it.
///
/// # Panics
/// If a wake is lost (the driver waits forever), or a polled step is reported as unpolled.
#[must_use]
pub fn explore<W: StepWakerModel>(threads: usize, reads: TrackerReads) -> Outcomes {
    let outcomes = std::sync::Arc::new(std::sync::Mutex::new(Outcomes::default()));
    let all = std::sync::Arc::clone(&outcomes);
    model(threads).check(move || {
        let one = execution::<W>(threads, reads);
        all.lock().expect("counting does not panic").add(one);
    });
    let outcomes = *outcomes.lock().expect("counting does not panic");
    assert_eq!(outcomes.fault, Fault::default(), "{threads} threads, {reads:?}: {outcomes:?}");
    outcomes
}

fn execution<W: StepWakerModel>(threads: usize, reads: TrackerReads) -> Outcomes {
    let (parent, wake) = (Parent::new(), W::new());
    // The step has begun, and its body gave its waker to each thread. The waker of this poll is gone before they wake.
    let tracker = real_tracker::WakeTracker::new(&parent);
    let begins = wake.begin_poll(&tracker.waker());
    drop(tracker);
    let (notes, threads): (Vec<_>, Vec<_>) = (0..threads)
        .map(|_| {
            let (note, wake) = (Arc::new(AtomicBool::new(false)), wake.clone());
            let written = note.clone();
            let thread = thread::spawn(move || {
                // Only the wake orders this write before the next poll.
                written.store(true, Relaxed);
                wake.wake();
            });
            (note, thread)
        })
        .unzip();
    let mut outcomes = Outcomes::default();
    outcomes.fault.unless(begins, "the first poll of a step does not poll its body");
    drive(&parent, &wake, reads, &mut outcomes, || notes.iter().all(|note| note.load(Relaxed)));
    for thread in threads {
        thread.join().expect("the thread only wakes");
    }
    outcomes
}

/// Polls until the step has its result, or is reported as unpolled.
fn drive<W: StepWakerModel>(
    parent: &Parent,
    wake: &W,
    reads: TrackerReads,
    outcomes: &mut Outcomes,
    is_done: impl Fn() -> bool,
) {
    loop {
        let mut tracker = real_tracker::WakeTracker::new(parent);
        let waker = tracker.waker();
        if wake.begin_poll(&waker) && is_done() {
            wake.end();
            return;
        }
        drop(waker);
        let waits = match tracker.waker_state() {
            // The parent was woken too, or will be at once.
            WakerState::Woken => true,
            WakerState::Released | WakerState::Held => match wake.body_state() {
                BodyState::Waiting => true,
                BodyState::WakePending => {
                    outcomes.pending_wakes += 1;
                    thread::yield_now();
                    false
                }
                BodyState::Unpolled
                    if reads == TrackerReads::Two && tracker.waker_state() == WakerState::Woken =>
                {
                    outcomes.second_looks += 1;
                    false
                }
                BodyState::Unpolled => {
                    outcomes.fault.unless(false, "a polled step is reported as unpolled");
                    return;
                }
            },
        };
        if waits {
            outcomes.waits += 1;
            parent.wait();
        }
    }
}
