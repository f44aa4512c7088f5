//! A model of the suspension of a handler. The models compile the sources `wake_tracker.rs` and `step_waker.rs` of the crate
//! `antiphon-engine` with replacements for the parts of the standard library, and run them in every order of threads.
//!
//! The properties of [`poll_model`] and [`driver_model`]:
//! - No wake is lost: the driver polls again, and that poll sees what was written before the wake.
//! - The state is never *released* while other code can still wake the handler, or has woken it.
//! - The driver's loop ends, and the handler has received every message that was sent.
//!
//! The properties of [`step_model`]:
//! - No wake of a step's body is lost: the body is polled again, and sees what was written before the wake.
//! - A step is never reported as unpolled while a wake of its body has not reached the handler.
//!
//! The models can fail: [`faulty`] has protocols and orderings that lose a wake, and the tests require the models to find each.

pub mod counted_arc;
pub mod driver_model;
pub mod faulty;
pub mod parent;
pub mod poll_model;
pub mod real_counted_arc;
pub mod real_step_waker;
pub mod real_tracker;
pub mod step_model;

use parent::Parent;

/// The state of a poll's waker, one type for all compilations of the tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakerState {
    /// The waker is released: only an answer can wake the handler.
    Released,
    /// The waker was woken.
    Woken,
    /// A clone of the waker is held.
    Held,
}

/// A tracker in the model.
pub trait TrackerModel: 'static {
    /// The waker of the handler's poll.
    type Waker: WakerModel;
    /// Returns a waker of the parent itself.
    fn parent(parent: &Parent) -> Self::Waker;
    /// Creates the tracker of one poll.
    fn new(parent: &Parent) -> Self;
    /// Returns the waker of the poll.
    fn waker(&self) -> Self::Waker;
    /// Returns the state of the waker.
    fn waker_state(&mut self) -> WakerState;
}

/// A waker in the model.
pub trait WakerModel: Clone + Send + 'static {
    /// Wakes, then drops the waker.
    fn wake(self);
    /// Wakes.
    fn wake_by_ref(&self);
}

/// The first violated property. An execution notes it and continues to its end, because loom does not allow a panic
/// while threads have not started. `explore` panics at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault(pub Option<&'static str>);

impl Fault {
    fn unless(&mut self, holds: bool, otherwise: &'static str) {
        if !holds {
            self.0.get_or_insert(otherwise);
        }
    }
}

/// Returns a model that tries every order of the driver and one other thread. With two other threads, the model tries
/// at most three preemptions, with more threads at most two.
fn model(threads: usize) -> loom::model::Builder {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = match threads {
        0 | 1 => None,
        2 => Some(3),
        _ => Some(2),
    };
    builder
}
