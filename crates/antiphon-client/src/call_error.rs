//! What ends a call, whose fault it is, and what can be done.

use crate::{
    ArgumentsError, Call, CallKind, PendingCall, ServerIdentity, answer::AnswerError,
    callback::CallbackError, fault::RequestFault,
};
use antiphon_wire::{AskKind, ErrorCode, ErrorObject};
use std::{error::Error as StdError, fmt, time::Duration};

/// Why a call has no result. Texts hold neither state nor answers.
pub struct CallError(Box<CallInner>);

struct CallInner {
    server: ServerIdentity,
    call: Option<Call>,
    kind: CallErrorKind,
    pending: Option<PendingCall>,
}

/// What ended a call.
#[derive(Debug)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// The arguments cannot be sent: the caller's mistake. Nothing was sent.
    Arguments(ArgumentsError),
    /// A request of the call has no result.
    Request(RequestFault),
    /// The server did not take back its own state. The client never starts over by itself: what the call did so far
    /// would be done again. [`CallError::restart`] makes a fresh call.
    StateRefused(ErrorObject),
    /// The server asked for something that no callback is attached for: the server's fault, unless it was declared to
    /// be answered by hand.
    NoCallback {
        /// The key of the ask.
        key: String,
        /// What it asks for.
        kind: AskKind,
        /// Whether only a part of it, such as tools for the model, was not declared.
        part: Option<&'static str>,
        /// Whether it was declared with [`declare`](super::ClientBuilder::declare): the mistake of whoever then left
        /// the call to callbacks.
        by_hand: bool,
    },
    /// A round holds more asks than allowed here.
    TooManyAsks {
        /// So many came.
        asks: usize,
        /// So many are allowed.
        limit: usize,
    },
    /// `on_round` refused the round.
    Refused {
        /// The ask it was refused for, if not the round as a whole.
        key: Option<String>,
        /// Why.
        reason: String,
    },
    /// A callback failed; its siblings were dropped.
    Callback {
        /// The key of its ask.
        key: String,
        /// Why.
        source: CallbackError,
    },
    /// An answer does not fit its ask; it was not sent.
    Answer(AnswerError),
    /// Not every ask has an answer; nothing was sent.
    MissingAnswers {
        /// The keys of those that have none.
        keys: Vec<String>,
    },
    /// The pending call belongs to another server; nothing was sent. [`PendingCall::retarget`] says that it does not.
    OtherServer {
        /// Where the pending call belongs.
        belongs_to: String,
    },
    /// The server went on asking.
    RoundLimit {
        /// So many rounds were answered.
        rounds: u32,
    },
    /// The server went on answering with state only.
    StateOnlyLimit,
    /// The whole call took too long.
    Deadline(Duration),
    /// The call was cancelled.
    Cancelled,
}

impl CallError {
    pub(crate) fn new(
        server: ServerIdentity,
        call: Option<Call>,
        kind: CallErrorKind,
        pending: Option<PendingCall>,
    ) -> Self {
        Self(Box::new(CallInner { server, call, kind, pending }))
    }

    /// What ended the call.
    pub fn kind(&self) -> &CallErrorKind {
        &self.0.kind
    }

    /// What ended the call.
    pub fn into_kind(self) -> CallErrorKind {
        self.0.kind
    }

    /// The server that was called.
    pub fn server(&self) -> &ServerIdentity {
        &self.0.server
    }

    /// What was called; none if its arguments were wrong.
    pub fn call(&self) -> Option<&Call> {
        self.0.call.as_ref()
    }

    /// The call as it stood, with the answers so far, if the server had asked something: complete it by hand and
    /// [`resume`](super::Client::resume) it, or [`drive`](super::Client::drive) it on.
    pub fn pending(&self) -> Option<&PendingCall> {
        self.0.pending.as_ref()
    }

    /// The same, to keep.
    pub fn into_pending(self) -> Option<PendingCall> {
        self.0.pending
    }

    /// The same call from its beginning. What it did so far, it may do again: ask the person first.
    pub fn restart(&self) -> Option<Call> {
        self.0.call.clone()
    }

    /// What the server said, where it answered with an error.
    pub fn server_error(&self) -> Option<&ErrorObject> {
        match &self.0.kind {
            CallErrorKind::StateRefused(error) => Some(error),
            CallErrorKind::Request(fault) => fault.server_error(),
            _ => None,
        }
    }

    /// Whether the call was cancelled through its token.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0.kind, CallErrorKind::Cancelled)
    }

    /// Whether a request or the whole call took too long.
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.kind, CallErrorKind::Deadline(_) | CallErrorKind::Request(RequestFault::Timeout(_)))
    }

    /// Whether the server did not take back its own state.
    pub fn is_state_refused(&self) -> bool {
        matches!(self.0.kind, CallErrorKind::StateRefused(_))
    }

    /// Whether the server said that the resource does not exist.
    ///
    /// > clients **SHOULD** also accept `-32002` as a resource not found error, as earlier protocol versions used this
    /// > code.
    pub fn is_resource_not_found(&self) -> bool {
        const BEFORE: ErrorCode = ErrorCode(-32002);
        let (Some(call), Some(error)) = (self.call(), self.server_error()) else { return false };
        let named = || error.data.as_ref()?.get("uri")?.as_str();
        call.kind() == CallKind::Resource
            && (error.code == BEFORE
                || error.code == ErrorCode::INVALID_PARAMS && named() == Some(call.name()))
    }

    /// Whether a bound of this client ended the call.
    pub fn is_limit(&self) -> bool {
        matches!(
            self.0.kind,
            CallErrorKind::RoundLimit { .. }
                | CallErrorKind::StateOnlyLimit
                | CallErrorKind::TooManyAsks { .. }
                | CallErrorKind::Deadline(_)
        )
    }

    /// Whether attaching a callback would help.
    pub fn is_missing_callback(&self) -> bool {
        matches!(
            self.0.kind,
            CallErrorKind::NoCallback { .. } | CallErrorKind::Request(RequestFault::MissingCapability { .. })
        )
    }

    /// Whether the connection failed: nobody knows whether the server acted.
    pub fn is_transport(&self) -> bool {
        matches!(self.0.kind, CallErrorKind::Request(RequestFault::Transport(_)))
    }
}

impl fmt::Display for CallErrorKind {
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
            Self::NoCallback { key, kind, part, by_hand } => {
                let (what, cure) = not_supported(*kind);
                let (with, cure) = match part {
                    Some(part) => (format!(" with {part}"), format!("`sampling_{part}`")),
                    None => (String::new(), cure.to_owned()),
                };
                let why = match by_hand {
                    true => ", and it was declared only to be answered by hand (`begin`, `resume`)",
                    false => " although it was not declared",
                };
                write!(
                    f,
                    "{what}{with} not supported: the server asked it as `{key}`{why}; attach {cure} to answer it"
                )
            }
            Self::TooManyAsks { asks, limit } => {
                write!(f, "the server asked {asks} things at once; {limit} are allowed here (`max_asks`)")
            }
            Self::Refused { key: Some(key), reason } => {
                write!(f, "the ask `{key}` was refused here: {reason}")
            }
            Self::Refused { key: None, reason } => write!(f, "the round was refused here: {reason}"),
            Self::Callback { key, .. } => write!(f, "the callback for `{key}` failed"),
            Self::Answer(error) => error.fmt(f),
            Self::MissingAnswers { keys } => {
                write!(f, "nothing was sent: no answer yet to `{}`", keys.join("`, `"))
            }
            Self::OtherServer { belongs_to } => {
                write!(f, "nothing was sent: the pending call belongs to another server, {belongs_to}")
            }
            Self::RoundLimit { rounds } => {
                write!(f, "the server still asks after {rounds} answered rounds (`max_rounds`)")
            }
            Self::StateOnlyLimit => f.write_str(
                "the server keeps answering `not yet` without asking anything (`state_only_limits`)",
            ),
            Self::Deadline(limit) => write!(f, "the call did not end within {limit:?} and was cancelled"),
            Self::Cancelled => f.write_str("the call was cancelled"),
        }
    }
}

/// The words peers know, and the callback to attach.
fn not_supported(kind: AskKind) -> (&'static str, &'static str) {
    match kind {
        AskKind::Form => ("Elicitation", "`on_elicit` or `on_elicit_form`"),
        AskKind::Url => ("Elicitation", "`on_elicit` or `on_elicit_url`"),
        AskKind::Sampling => ("Sampling", "`on_sample`"),
        AskKind::Roots => ("List roots", "`on_roots`"),
        _ => ("This kind of ask", "a callback"),
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.call {
            Some(call) => write!(f, "{call} at {}: {}", self.0.server, self.0.kind),
            None => self.0.kind.fmt(f),
        }
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallError")
            .field("server", &self.0.server)
            .field("call", &self.0.call)
            .field("kind", &self.0.kind)
            .field("pending", &self.0.pending)
            .finish()
    }
}

impl StdError for CallError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.kind {
            CallErrorKind::Arguments(error) => error.source(),
            CallErrorKind::Request(fault) => fault.source(),
            CallErrorKind::Callback { source, .. } => Some(source.get_ref()),
            _ => None,
        }
    }
}
