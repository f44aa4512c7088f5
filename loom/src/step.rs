//! A step beside a question: threads wake the body of the step, and the driver looks whether the step is still polled, as
//! `leg/quiet.rs` does in `at_rest`.

use crate::{Fault, Quiet, Tracking, model, parent::Parent, real};
use loom::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

/// The standing of a step that is not being polled, for each compilation of it the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It waits for its own I/O.
    Waits,
    /// It was woken, its wake has arrived, and it was not polled.
    Unpolled,
    /// A wake is on its way.
    WakeUnderWay,
}

/// The waker of a step's body under the model.
pub trait Waking: Clone + Send + 'static {
    /// That of a step that was never polled.
    fn new() -> Self;
    /// Returns true if the body must be polled, now that the step is polled with this waker.
    fn begin_poll(&self, waker: &<real::Tracker as Tracking>::Waker) -> bool;
    /// Wakes.
    fn wake(&self);
    /// The standing of the step.
    fn standing(&self) -> Standing;
    /// The step is over.
    fn end(&self);
}

/// The action of the driver after its check of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// It looks at the tracker once more.
    Twice,
    /// It believes what it saw before.
    Once,
}

/// The counts over all executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The number of interleavings.
    pub executions: u64,
    /// The number of times a wake was in flight.
    pub under_way: u64,
    /// The number of times a step seemed abandoned and the second check of the tracker found a wake.
    pub second_looks: u64,
    /// The number of times the driver waited.
    pub waits: u64,
    fault: Fault,
}

impl Seen {
    fn add(&mut self, one: Self) {
        self.executions += 1;
        self.under_way += one.under_way;
        self.second_looks += one.second_looks;
        self.waits += one.waits;
        self.fault = Fault(self.fault.0.or(one.fault.0));
    }
}

/// Tries every order in which so many threads wake the body beside the driver. The step has its result once each has.
///
/// # Panics
/// If a wake is lost (the driver waits for ever), or the step is said not to be polled any more.
#[must_use]
pub fn explore<W: Waking>(threads: usize, looks: Looks) -> Seen {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Seen::default()));
    let all = std::sync::Arc::clone(&seen);
    model(threads).check(move || {
        let one = execution::<W>(threads, looks);
        all.lock().expect("counting does not panic").add(one);
    });
    let seen = *seen.lock().expect("counting does not panic");
    assert_eq!(seen.fault, Fault::default(), "{threads} threads, {looks:?}: {seen:?}");
    seen
}

fn execution<W: Waking>(threads: usize, looks: Looks) -> Seen {
    let (parent, wake) = (Parent::new(), W::new());
    // The step was begun, and its body gave its waker to each thread. The waker of this poll is gone when they wake.
    let tracker = real::Tracker::new(&parent);
    let begins = wake.begin_poll(&tracker.waker());
    drop(tracker);
    let (notes, threads): (Vec<_>, Vec<_>) = (0..threads)
        .map(|_| {
            let (note, wake) = (Arc::new(AtomicBool::new(false)), wake.clone());
            let written = note.clone();
            let thread = thread::spawn(move || {
                // Nothing but the wake orders this against the poll that follows.
                written.store(true, Relaxed);
                wake.wake();
            });
            (note, thread)
        })
        .unzip();
    let mut seen = Seen::default();
    seen.fault.unless(begins, "the first poll of a step passes its body by");
    drive(&parent, &wake, looks, &mut seen, || notes.iter().all(|note| note.load(Relaxed)));
    for thread in threads {
        thread.join().expect("it only wakes");
    }
    seen
}

/// Polls until the step has its result, or is said not to be polled any more.
fn drive<W: Waking>(parent: &Parent, wake: &W, looks: Looks, seen: &mut Seen, is_done: impl Fn() -> bool) {
    loop {
        let mut tracker = real::Tracker::new(parent);
        let waker = tracker.waker();
        if wake.begin_poll(&waker) && is_done() {
            wake.end();
            return;
        }
        drop(waker);
        let waits = match tracker.judge() {
            // The parent was woken too, or is about to be.
            Quiet::Woken => true,
            Quiet::Nobody | Quiet::Kept => match wake.standing() {
                Standing::Waits => true,
                Standing::WakeUnderWay => {
                    seen.under_way += 1;
                    thread::yield_now();
                    false
                }
                Standing::Unpolled if looks == Looks::Twice && tracker.judge() == Quiet::Woken => {
                    seen.second_looks += 1;
                    false
                }
                Standing::Unpolled => {
                    seen.fault.unless(false, "a step that is polled is said not to be polled any more");
                    return;
                }
            },
        };
        if waits {
            seen.waits += 1;
            parent.wait();
        }
    }
}
