//! Carriers: where the record of a call lives between its legs, and how a question reaches the client.
//!
//! | | sealed | pushed |
//! |---|---|---|
//! | a question | ends the leg, with all that are asked now | is sent at once; the handler waits |
//! | the end of a leg | the record leaves in the token | the handler is entered again, with the record |
//! | a checkpoint | may end the leg | is passed |
//! | the time for what happens behind a URL | [`Limits::until`] | as long as for an answer |
//!
//! The difference stands here and in the modules named by it. Handlers, and the futures that they await, do not know it.

use crate::{
    Limits,
    call::{
        ctx,
        drive::Ended,
        flow::Flow,
        pushed::{Pushed, Pusher},
    },
};
use antiphon_engine::Delivery;
use antiphon_wire::{AskSupport, InputRequest};
use std::{task::Context, time::Duration};

/// The carrier of one leg.
#[derive(Debug)]
pub(crate) enum Carrier {
    /// A request of 2026-07-28: the record travels sealed in `requestState`.
    Sealed,
    /// A session of an earlier revision: the record lives in the running call.
    Pushed(Box<Pushed>),
}

impl Carrier {
    /// As handlers know it.
    pub(crate) fn kind(&self) -> ctx::Carrier {
        match self {
            Self::Sealed => ctx::Carrier::Sealed,
            Self::Pushed(_) => ctx::Carrier::Pushed,
        }
    }

    /// How answers come.
    pub(crate) fn delivery(&self) -> Delivery {
        match self {
            Self::Sealed => Delivery::NextLeg,
            Self::Pushed(_) => Delivery::ThisLeg,
        }
    }

    /// What this question needs that this carrier has no way for, whatever the client declared.
    pub(crate) fn lacks(&self, request: &InputRequest) -> AskSupport {
        match self {
            Self::Sealed => AskSupport::NONE,
            Self::Pushed(pushed) => pushed.session.missing(request),
        }
    }

    /// How long a check of what happens behind a URL is called before the URL is asked again: where nobody waits for a
    /// response to a request, as long as for an answer.
    pub(crate) fn until(&self, limits: &Limits) -> Duration {
        match self {
            Self::Sealed => limits.until,
            Self::Pushed(pushed) => pushed.wait.limit.min(limits.handler_time / 2),
        }
    }

    /// Ends the event stream of the call, where the call can go on without it.
    pub(crate) fn close_stream(&self) {
        match self {
            Self::Sealed => {}
            Self::Pushed(pushed) => pushed.close_stream(),
        }
    }

    /// The request is gone, and a step goes on: nobody is asked any more.
    pub(crate) fn detach(&self) {
        match self {
            Self::Sealed => {}
            Self::Pushed(pushed) => pushed.session.take_back(&pushed.outbox),
        }
    }

    /// The part of the driver that is this carrier's.
    pub(crate) fn exchange<'f>(&'f self, flow: &'f Flow) -> Exchange<'f> {
        match self {
            Self::Sealed => Exchange::Sealed,
            Self::Pushed(pushed) => Exchange::Pushed(Pusher::new(flow, pushed)),
        }
    }
}

/// What goes to the client and comes from it while a handler runs.
pub(crate) enum Exchange<'f> {
    Sealed,
    Pushed(Pusher<'f>),
}

impl Exchange<'_> {
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
    pub(crate) fn waits_for_people(&self, flow: &Flow) -> bool {
        match self {
            Self::Sealed => false,
            Self::Pushed(_) => flow.with(|leg| leg.waits_for_client()),
        }
    }

    /// The call is over for the client: nothing more is sent.
    pub(crate) fn ended<R>(&mut self, ended: Ended<R>) -> Ended<R> {
        if let (Self::Pushed(pusher), Ended::Cancelled) = (self, &ended) {
            pusher.forget();
        }
        ended
    }
}
