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
    outbox::Outbox,
    session::{Session, Wait},
};
use antiphon_engine::Delivery;
use antiphon_wire::{AskSupport, InputRequest};
use std::time::Duration;

/// How questions reach the client, and where the record of the call is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Carrier {
    /// A question ends the request; the record travels in the sealed `requestState`.
    Sealed,
    /// In a session of a client before 2026-07-28: a question is sent at once, the handler waits, and the record is the
    /// running handler itself.
    Pushed,
}

/// The carrier of one leg.
#[derive(Debug)]
pub(crate) enum LegCarrier {
    /// A request of 2026-07-28: the record travels sealed in `requestState`.
    Sealed,
    /// A session of an earlier revision: the record lives in the running call.
    Pushed(Box<Pushed>),
}

impl LegCarrier {
    /// As handlers know it.
    pub(crate) fn kind(&self) -> Carrier {
        match self {
            Self::Sealed => Carrier::Sealed,
            Self::Pushed(_) => Carrier::Pushed,
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
            Self::Pushed(pushed) => pushed.session.withdraw(&pushed.outbox),
        }
    }
}

/// How a leg reaches a client in a session.
#[derive(Debug)]
pub(crate) struct Pushed {
    pub(crate) session: Session,
    /// The stream of the call.
    pub(crate) outbox: Outbox,
    /// How long an ask waits for its answer.
    pub(crate) wait: Wait,
    /// The scopes that an answer's sender must hold, as who began the call.
    pub(crate) scopes: Vec<String>,
}

impl Pushed {
    /// Ends the event stream of the call, where the client knows how to come back for the rest.
    pub(crate) fn close_stream(&self) {
        if self.session.version().has_elicitation_modes() {
            self.outbox.close_stream();
        }
    }
}
