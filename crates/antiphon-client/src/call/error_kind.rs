//! The kinds of a client's errors, and their texts.

use crate::{
    asks::callbacks::AskFault, call::ArgumentsError, lists::ListFault, request::fault::RequestFault,
};
use antiphon_wire::{ErrorObject, escaped};
use std::{fmt, time::Duration};

/// The kinds of [`ClientError`](crate::ClientError).
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientErrorKind {
    /// The arguments cannot be sent: the caller's mistake. Nothing was sent.
    Arguments(ArgumentsError),
    /// A request has no result.
    Request(RequestFault),
    /// The server refused its own state. The client never restarts a call by itself: the effects of the call so far would happen
    /// again. [`ClientError::restart`](crate::ClientError::restart) returns a new call.
    StateRefused(ErrorObject),
    /// An ask of the server was not answered.
    Ask(AskFault),
    /// Some asks have no answer; nothing was sent.
    MissingAnswers {
        /// The keys of the asks that have no answer.
        keys: Vec<String>,
    },
    /// The pending call, or the task, belongs to another server; nothing was sent. [`PendingCall::retarget`](crate::PendingCall::retarget) and
    /// [`TaskHandle::retarget`](crate::TaskHandle::retarget) change its server.
    OtherServer {
        /// The target of the server that it belongs to.
        belongs_to: String,
    },
    /// The server answered with state only, longer or more often than
    /// [`state_only_limits`](crate::ClientBuilder::state_only_limits) allow.
    StateOnlyLimit,
    /// The whole call took longer than its deadline.
    Deadline(Duration),
    /// The call was cancelled.
    Cancelled,
    /// The task that the call became was cancelled at the server.
    TaskCancelled {
        /// The reason, if the server sent one. It comes from the server: sanitize it before you show it.
        message: Option<String>,
    },
    /// The server has not answered since the task's TTL ended, more than a minute ago. It may have discarded the task.
    TaskExpired,
    /// A list returned the cursor of an earlier page again: the server's fault.
    CursorRepeated,
    /// A list has more pages than are followed.
    TooManyPages {
        /// The number of pages that are followed.
        limit: usize,
    },
    /// A list is longer than the limit for reading.
    ListTooLong {
        /// The number of bytes that are read.
        limit: usize,
    },
}

impl From<RequestFault> for ClientErrorKind {
    /// The fault of an ask on the way of a request is the fault of an ask.
    fn from(fault: RequestFault) -> Self {
        match fault {
            RequestFault::Ask(fault) => Self::Ask(*fault),
            fault => Self::Request(fault),
        }
    }
}

impl From<ListFault> for ClientErrorKind {
    fn from(fault: ListFault) -> Self {
        match fault {
            ListFault::Request(fault) => fault.into(),
            ListFault::CursorRepeated => Self::CursorRepeated,
            ListFault::TooManyPages { limit } => Self::TooManyPages { limit },
            ListFault::ListTooLong { limit } => Self::ListTooLong { limit },
        }
    }
}

impl fmt::Display for ClientErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments(error) => error.fmt(f),
            Self::Request(fault) => fault.fmt(f),
            Self::StateRefused(error) => write!(
                f,
                "the server did not take back the state of the call ({error}): it may have expired, or come to an \
                 instance without the shared key or to a restarted server, or the arguments or the user changed. \
                 Nothing was started over; calling again may repeat what the call did so far"
            ),
            Self::Ask(fault) => fault.fmt(f),
            Self::MissingAnswers { keys } => {
                write!(f, "nothing was sent: no answer yet to `{}`", escaped(&keys.join("`, `")))
            }
            Self::OtherServer { belongs_to } => {
                write!(
                    f,
                    "nothing was sent: the pending call or task belongs to another server, {}",
                    escaped(belongs_to)
                )
            }
            Self::StateOnlyLimit => f.write_str(
                "the server keeps answering `not yet` without asking anything (`state_only_limits`)",
            ),
            Self::Deadline(limit) => write!(f, "the call did not end within {limit:?} and was cancelled"),
            Self::Cancelled => f.write_str("the call was cancelled"),
            Self::TaskCancelled { message } => {
                f.write_str("the task was cancelled at the server")?;
                message.as_ref().map_or(Ok(()), |message| write!(f, ": {}", escaped(message)))
            }
            Self::TaskExpired => f.write_str(
                "the server has not answered since the TTL of the task ended, more than a minute ago",
            ),
            Self::CursorRepeated => {
                f.write_str("the server's list leads back to a page it had shown already")
            }
            Self::TooManyPages { limit } => {
                write!(f, "the server's list does not end after {limit} pages")
            }
            Self::ListTooLong { limit } => write!(f, "the server's list has more than {limit} bytes"),
        }
    }
}
