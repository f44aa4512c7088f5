//! The faults that the bench can inject.

use std::fmt;

/// A fault in a call. Legs count from 1, and the first leg has no request state. Polls of a leg's handler count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The replica crashes. The handler is neither polled nor dropped afterwards, so its guards do not run. The same
    /// request is then sent to a new replica.
    Crash {
        /// The leg.
        leg: u16,
        /// The number of polls before the crash; 0 is before the request arrives.
        polls: usize,
    },
    /// The connection breaks, which cancels the request. The same request is then sent again.
    Disconnect {
        /// The leg.
        leg: u16,
        /// The number of polls before the connection breaks.
        polls: usize,
    },
    /// The replica drains during this leg: a handler that reaches a [checkpoint](crate::server::Ctx::checkpoint)
    /// continues on another replica.
    Drain {
        /// The leg.
        leg: u16,
    },
    /// Two replicas alternate, leg by leg.
    Move,
    /// The request of this leg is sent twice. The bench uses the reply to the second one.
    Duplicate {
        /// The leg.
        leg: u16,
        /// The time and the replica of the second request.
        timing: DuplicateTiming,
    },
    /// The request of an older leg, with its state and answers, is sent again after a later leg. If the later leg is the
    /// last one, the repeated call is continued to its end.
    Replay {
        /// The older leg, from 2.
        leg: u16,
        /// The leg after whose reply the older leg is sent.
        after: u16,
    },
    /// The request state of this leg is altered at one position after the other. The server must reject each altered
    /// state without running a handler. Then the correct state is sent.
    Tamper {
        /// The leg, from 2.
        leg: u16,
    },
    /// The request state of this leg arrives after its expiry. The server must reject it or ask the round again,
    /// depending on its [`OnExpired`](crate::server::operations::OnExpired) setting.
    Expire {
        /// The leg, from 2.
        leg: u16,
    },
    /// The newer build runs from this leg on.
    Upgrade {
        /// The leg, from 2.
        leg: u16,
    },
    /// The request of this leg contains only the first of several answers.
    PartialAnswers {
        /// The leg, from 2.
        leg: u16,
    },
    /// The answers of each leg are in reverse order.
    ReversedAnswers,
    /// The request of this leg contains an answer to a question that was not asked.
    UnsolicitedAnswer {
        /// The leg.
        leg: u16,
    },
    /// The answers of this leg are invalid. The server must ask the questions again.
    InvalidAnswers {
        /// The leg, from 2.
        leg: u16,
    },
    /// The user takes almost the whole lifetime of each round to answer.
    SlowUser,
    /// The whole call is made by a client of 2025-11-25: it opens a session, and answers the questions that the server sends
    /// while the handler runs. The fault does not happen where no session can make the call: if the tool is always a task, if the
    /// server is [`modern_only`](crate::server::ServerBuilder::modern_only), or if the call ends because URLs must be opened
    /// [first](crate::server::asks::InputRequired::urls_first).
    Session,
    /// The whole call is made in a session, and the instance crashes that holds the session: no reply comes, and no other
    /// instance knows the session. Somebody then calls again in a new session, at another replica. That is another call, with
    /// other keys: it must end as a call does, and each of the two may have its effects once.
    SessionCrash {
        /// The number of polls of the call before the crash, from 1.
        polls: usize,
    },
}

/// The time and the replica of the second request of [`Fault::Duplicate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DuplicateTiming {
    /// The second request is sent after the reply to the first, which is lost, to the same replica.
    AfterReply,
    /// Both requests are in flight at the same time, at the same replica.
    Concurrent,
    /// Both requests are in flight at the same time, at two replicas.
    ConcurrentOnAnotherReplica,
}

impl Fault {
    /// Returns true if the request of the first leg is sent a second time.
    pub(super) fn repeats_first_leg(&self) -> bool {
        match self {
            Self::Crash { leg, polls } | Self::Disconnect { leg, polls } => *leg == 1 && *polls > 0,
            Self::Duplicate { leg, .. } => *leg == 1,
            _ => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash { leg, polls: 0 } => write!(f, "crash before leg {leg}"),
            Self::Crash { leg, polls } => write!(f, "crash after poll {polls} of leg {leg}"),
            Self::Disconnect { leg, polls } => write!(f, "connection broken after poll {polls} of leg {leg}"),
            Self::Drain { leg } => write!(f, "replica drained in leg {leg}"),
            Self::Move => f.write_str("another replica on each leg"),
            Self::Duplicate { leg, timing: DuplicateTiming::AfterReply } => {
                write!(f, "leg {leg} sent again after its reply")
            }
            Self::Duplicate { leg, timing: DuplicateTiming::Concurrent } => {
                write!(f, "leg {leg} sent twice at once")
            }
            Self::Duplicate { leg, .. } => write!(f, "leg {leg} sent to two replicas at once"),
            Self::Replay { leg, after } => write!(f, "leg {leg} sent again after leg {after}"),
            Self::Tamper { leg } => write!(f, "state of leg {leg} changed"),
            Self::Expire { leg } => write!(f, "state of leg {leg} expired"),
            Self::Upgrade { leg } => write!(f, "newer build from leg {leg} on"),
            Self::PartialAnswers { leg } => write!(f, "only the first answer in leg {leg}"),
            Self::ReversedAnswers => f.write_str("answers in reverse order"),
            Self::UnsolicitedAnswer { leg } => write!(f, "an unsolicited answer in leg {leg}"),
            Self::InvalidAnswers { leg } => write!(f, "invalid answers in leg {leg}"),
            Self::SlowUser => f.write_str("a user who takes almost all the time of each round"),
            Self::Session => f.write_str("a client in a session of 2025-11-25"),
            Self::SessionCrash { polls } => {
                write!(f, "a session lost in a crash after poll {polls} of its call")
            }
        }
    }
}
