//! The driver's exchange with the client while a handler runs, by carrier.

use crate::call::{carrier::LegCarrier, leg_runtime::LegRuntime, pushed::PushedAsks};
use std::task::Context;

/// The end of a run of a handler.
pub(crate) enum HandlerEnd<R> {
    Returned(R),
    Suspended,
    Stopped,
    Cancelled,
}

/// The messages to and from the client while a handler runs.
pub(crate) enum Exchange<'f> {
    Sealed,
    Pushed(PushedAsks<'f>),
}

impl<'f> Exchange<'f> {
    /// Returns the exchange for the carrier of this leg.
    pub(crate) fn of(runtime: &'f LegRuntime) -> Self {
        match runtime.carrier() {
            LegCarrier::Sealed => Self::Sealed,
            LegCarrier::Pushed(pushed) => Self::Pushed(PushedAsks::new(runtime, pushed)),
        }
    }

    /// Delivers answers that have arrived. Returns true if there were any.
    pub(crate) fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Sealed => false,
            Self::Pushed(asks) => asks.receive(cx),
        }
    }

    /// Sends new questions, and withdraws those that are not asked any more. Returns true if the handler must be polled
    /// again.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Sealed => false,
            Self::Pushed(asks) => asks.send(cx),
        }
    }

    /// Returns true while people have time to answer, which does not count as the handler's time.
    pub(crate) fn waits_for_people(&self, runtime: &LegRuntime) -> bool {
        match self {
            Self::Sealed => false,
            Self::Pushed(_) => runtime.with(|leg| leg.waits_for_client()),
        }
    }

    /// Discards unsent messages if the call was cancelled.
    pub(crate) fn ended<R>(&mut self, ended: HandlerEnd<R>) -> HandlerEnd<R> {
        if let (Self::Pushed(asks), HandlerEnd::Cancelled) = (self, &ended) {
            asks.forget();
        }
        ended
    }
}
