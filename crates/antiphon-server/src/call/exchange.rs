//! The driver's exchange with the client while a handler runs, by carrier.

use crate::call::{carrier::LegCarrier, leg_runtime::LegRuntime, pushed::Pusher};
use std::task::Context;

/// How running a handler ended.
pub(crate) enum HandlerEnd<R> {
    Returned(R),
    Suspended,
    Stopped,
    Cancelled,
}

/// What goes to the client and comes from it while a handler runs.
pub(crate) enum Exchange<'f> {
    Sealed,
    Pushed(Pusher<'f>),
}

impl<'f> Exchange<'f> {
    /// The part of the driver that belongs to the carrier of this leg.
    pub(crate) fn of(runtime: &'f LegRuntime) -> Self {
        match runtime.carrier() {
            LegCarrier::Sealed => Self::Sealed,
            LegCarrier::Pushed(pushed) => Self::Pushed(Pusher::new(runtime, pushed)),
        }
    }

    /// Takes the answers that have come. Whether there were any.
    pub(crate) fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Sealed => false,
            Self::Pushed(pusher) => pusher.receive(cx),
        }
    }

    /// Sends what is asked now, and takes back what is asked no more. Whether the handler is to be polled again.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Sealed => false,
            Self::Pushed(pusher) => pusher.send(cx),
        }
    }

    /// Whether people have time of their own now, which is none of the handler's.
    pub(crate) fn waits_for_people(&self, runtime: &LegRuntime) -> bool {
        match self {
            Self::Sealed => false,
            Self::Pushed(_) => runtime.with(|leg| leg.waits_for_client()),
        }
    }

    /// The call is over for the client: nothing more is sent.
    pub(crate) fn ended<R>(&mut self, ended: HandlerEnd<R>) -> HandlerEnd<R> {
        if let (Self::Pushed(pusher), HandlerEnd::Cancelled) = (self, &ended) {
            pusher.forget();
        }
        ended
    }
}
