//! The engine's leg, which begins when it is needed.

use crate::in_place::boxed;
use antiphon_engine::{Leg, LegOutput, Setup};
use std::task::Waker;

/// The engine's leg of a request. A first leg begins when the handler asks, runs a step, or waits: a handler that only returns
/// a result never needs one.
pub(crate) struct LazyLeg {
    begun: Option<Box<Leg>>,
    /// The settings of a leg that has not begun.
    setup: Setup,
    /// The waker of the driver's task, once a poll of the handler has begun.
    parent: Option<Waker>,
    /// The waker of the present poll of the handler, if it is another one. It ends with the poll, because a clone that is
    /// alive afterwards counts as one that other code holds.
    tracking: Option<Waker>,
    /// True during a poll of the handler.
    is_polled: bool,
    /// True if the handler has returned.
    has_ended: bool,
}

impl LazyLeg {
    /// Returns a first leg, which begins later.
    pub(crate) fn first(setup: Setup) -> Self {
        Self { begun: None, setup, parent: None, tracking: None, is_polled: false, has_ended: false }
    }

    /// Returns a leg that has begun.
    pub(crate) fn begun(leg: Box<Leg>) -> Self {
        Self { begun: Some(leg), ..Self::first(Setup::default()) }
    }

    /// Returns the leg, if it has begun.
    pub(crate) fn get(&mut self) -> Option<&mut Leg> {
        self.begun.as_deref_mut()
    }

    /// Returns the leg, and begins it first if necessary: with the poll in which it is needed.
    pub(crate) fn leg(&mut self) -> &mut Leg {
        self.begun.get_or_insert_with(|| {
            let setup = std::mem::take(&mut self.setup);
            let mut leg = boxed(|| Leg::begin(setup));
            if let Some(parent) = self.parent.take() {
                leg.begin_poll(self.tracking.take().as_ref().unwrap_or(&parent), &parent);
                if !self.is_polled {
                    leg.end_poll();
                }
            }
            if self.has_ended {
                drop(leg.finish());
            }
            leg
        })
    }

    /// Begins a poll of the handler with `waker`; the driver itself was polled with `parent`. Returns the leg if it has begun,
    /// whose `begin_poll` the caller then calls.
    pub(crate) fn begin_poll(&mut self, waker: &Waker, parent: &Waker) -> Option<&mut Leg> {
        if self.begun.is_none() {
            (self.parent, self.is_polled) = (Some(parent.clone()), true);
            self.tracking = (!waker.will_wake(parent)).then(|| waker.clone());
        }
        self.get()
    }

    /// Ends the poll. Returns the leg if it has begun, whose `end_poll` the caller then calls.
    pub(crate) fn end_poll(&mut self) -> Option<&mut Leg> {
        self.is_polled = false;
        self.tracking = None;
        self.get()
    }

    /// Ends the leg after the handler returned a result. `None` if the leg has never begun: then there is nothing to keep.
    pub(crate) fn finish(&mut self) -> Option<Box<LegOutput>> {
        self.has_ended = true;
        self.get().map(Leg::finish)
    }
}
