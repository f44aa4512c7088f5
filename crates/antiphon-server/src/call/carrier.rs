//! Carriers: they transport questions to the client, and store the record of a call between its legs.
//!
//! | | sealed | pushed | task |
//! |---|---|---|---|
//! | a question | ends the leg, together with all pending questions | is sent at once; the handler waits | the same as sealed; beside a running step it is shown at once |
//! | the end of a leg | the record leaves in the token | the handler is entered again, with the record | the record stays in the task |
//! | a checkpoint | may end the leg | is passed | is passed |
//! | the time for the work behind a URL | [`Limits::url_retry_interval`] | as long as for an answer | [`Limits::max_answer_timeout`] |
//! | the time for which a reference in a URL is valid | 24 hours | 24 hours | 24 hours, or as long as the task exists |
//! | the time of the handler | [`Limits::handler_timeout`] | the same, without the time of people | as long as the task exists |
//!
//! Only this module and the modules that it uses distinguish the carriers. Handlers, and the futures that they await,
//! do not.

use crate::{
    options::limits::{Limits, URL_REF_WITHIN},
    outbox::Outbox,
    runtime::TASK_STATE,
    session::{AnswerTimeout, Session},
    task_registry::leg::TaskLeg,
};
use antiphon_engine::Delivery;
use antiphon_wire::{AskSupport, InputRequest};
use std::{sync::Arc, time::Duration};

/// The transport of questions to the client, and the place of the call's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Carrier {
    /// A question ends the request; the record travels in the sealed `requestState`.
    Sealed,
    /// A question that is sent at once, as a request of the server on the session of a client before 2026-07-28, while the
    /// handler waits. The record is in memory, on the session's instance.
    Pushed,
    /// The call has become a task: its record is kept by the server, and its questions wait there for the client.
    Task,
}

/// The carrier of one leg.
#[derive(Debug)]
pub(crate) enum LegCarrier {
    /// A request of 2026-07-28: the record is sealed in `requestState`.
    Sealed,
    /// A session of an earlier revision: the record is in the running call.
    Pushed(Box<Pushed>),
    /// A leg of a task: the record is sealed, and stays in the task.
    Task(Arc<TaskLeg>),
}

impl LegCarrier {
    /// Returns the public form of this carrier.
    pub(crate) fn kind(&self) -> Carrier {
        match self {
            Self::Sealed => Carrier::Sealed,
            Self::Pushed(_) => Carrier::Pushed,
            Self::Task(_) => Carrier::Task,
        }
    }

    /// Returns the leg in which answers arrive.
    pub(crate) fn delivery(&self) -> Delivery {
        match self {
            Self::Sealed | Self::Task(_) => Delivery::NextLeg,
            Self::Pushed(_) => Delivery::ThisLeg,
        }
    }

    /// Returns true if a leg may end at a checkpoint. A task moves to another process wherever its handler waits, so that it needs
    /// no checkpoint.
    pub(crate) fn has_checkpoints(&self) -> bool {
        matches!(self, Self::Sealed)
    }

    /// Returns what this question requires and this carrier does not support, regardless of the client's capabilities.
    pub(crate) fn lacks(&self, request: &InputRequest) -> AskSupport {
        match self {
            Self::Sealed | Self::Task(_) => AskSupport::NONE,
            Self::Pushed(pushed) => pushed.session.missing(request),
        }
    }

    /// Returns the time for which a check behind a URL is called before the URL is asked again. In a session no HTTP
    /// request waits, so the time is that of an answer; in a task, nobody waits at all.
    pub(crate) fn until(&self, limits: &Limits) -> Duration {
        match self {
            Self::Sealed => limits.url_retry_interval,
            Self::Task(_) => limits.max_answer_timeout,
            Self::Pushed(pushed) => pushed.wait.limit.min(limits.handler_timeout / 2),
        }
    }

    /// Returns the time for which a new reference in a URL is valid. A question of a task waits as long as the task exists.
    pub(crate) fn url_ref_timeout(&self) -> Duration {
        match self {
            Self::Sealed | Self::Pushed(_) => URL_REF_WITHIN,
            Self::Task(task) => task.state_ttl.max(URL_REF_WITHIN),
        }
    }

    /// Returns the limits of a leg. The legs of a task cost no client anything, and their record does not leave the server.
    pub(crate) fn limits(&self, limits: antiphon_engine::Limits) -> antiphon_engine::Limits {
        match self {
            Self::Sealed | Self::Pushed(_) => limits,
            Self::Task(_) => {
                let state = limits.state.max(TASK_STATE);
                antiphon_engine::Limits { legs: u16::MAX, state_only: u8::MAX, state, ..limits }
            }
        }
    }

    /// Ends the event stream of the call, if the call can continue without it.
    pub(crate) fn close_stream(&self) {
        match self {
            Self::Sealed | Self::Task(_) => {}
            Self::Pushed(pushed) => pushed.close_stream(),
        }
    }

    /// Withdraws all questions: the request is gone, and only a step still runs.
    pub(crate) fn detach(&self) {
        match self {
            Self::Sealed | Self::Task(_) => {}
            Self::Pushed(pushed) => pushed.session.withdraw(&pushed.outbox),
        }
    }
}

/// The connection of a leg to a client in a session.
#[derive(Debug)]
pub(crate) struct Pushed {
    pub(crate) session: Session,
    /// The stream of the call.
    pub(crate) outbox: Outbox,
    /// The time limit of an answer.
    pub(crate) wait: AnswerTimeout,
    /// The scopes that the sender of an answer must have, the same as for the call.
    pub(crate) scopes: Vec<String>,
    /// False if the tool does not accept an answer of this caller: nobody else can answer in its session.
    pub(crate) may_answer: bool,
}

impl Pushed {
    /// Ends the event stream of the call, if the client knows how to resume it.
    pub(crate) fn close_stream(&self) {
        if self.session.version().has_resumable_calls() {
            self.outbox.close_stream();
        }
    }
}
