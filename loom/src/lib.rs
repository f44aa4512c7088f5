//! A model of the suspension of a handler: `tracker.rs` and `step_wake.rs` of the crate `antiphon-engine`, the sources
//! themselves, with stand-ins for what they take from the standard library, in every order in which the threads around them
//! can run.
//!
//! What is shown, in [`one_poll`] and [`driver`]:
//! - a wake is never lost: the driver polls again, and that poll sees what was written before the wake;
//! - *Nobody* is never said while somebody can still wake the handler, or has;
//! - the driver's loop ends, and has taken what was sent to the handler by then.
//!
//! In [`step`]:
//! - a wake of a step's body is never lost: the body is polled again, and sees what was written before the wake;
//! - a step is never said to be polled no more while a wake of its body is on its way to the handler.
//!
//! And that the model can fail: [`wrong`] has protocols and orderings that lose a wake, and each is found.

pub mod counted;
pub mod driver;
pub mod one_poll;
pub mod parent;
pub mod real;
pub mod real_counted;
pub mod real_step;
pub mod step;
pub mod wrong;

use parent::Parent;

/// The verdict of a tracker after a poll, one type for all implementations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quiet {
    /// Only an answer can wake the handler.
    Nobody,
    /// The handler was woken.
    Woken,
    /// A clone of the waker exists.
    Kept,
}

/// A tracker under the model.
pub trait Tracking: 'static {
    /// The waker type that the handler is polled with.
    type Waker: Wakes;
    /// The waker of the parent itself.
    fn parent(parent: &Parent) -> Self::Waker;
    /// A tracker for one poll.
    fn new(parent: &Parent) -> Self;
    /// Its waker.
    fn waker(&self) -> Self::Waker;
    /// Returns the verdict after a poll.
    fn judge(&mut self) -> Quiet;
}

/// The operations of a waker that the model uses.
pub trait Wakes: Clone + Send + 'static {
    /// Wakes, and drops the waker after it.
    fn wake(self);
    /// Wakes.
    fn wake_by_ref(&self);
}

/// The first thing that was found wrong. An execution says so and goes on to its end: a panic within one would drop what
/// threads hold that have yet to start, which loom does not allow. Whoever explores panics when all is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault(pub Option<&'static str>);

impl Fault {
    fn unless(&mut self, holds: bool, otherwise: &'static str) {
        if !holds {
            self.0.get_or_insert(otherwise);
        }
    }
}

/// Tries every order of the driver and one other thread. Beside more of them, every order in which the threads are
/// interrupted, where they need not wait, at most three times in all; beside three of them, twice.
fn model(threads: usize) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = match threads {
        0 | 1 => None,
        2 => Some(3),
        _ => Some(2),
    };
    builder
}
