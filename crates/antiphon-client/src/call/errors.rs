//! The error of a client: what ended a call or a request, whose fault it is, and what can be done.

use crate::{
    asks::{callbacks::AskFault, questions::ServerIdentity},
    call::{Call, CallKind, error_kind::ClientErrorKind, pending::PendingCall, task_handle::TaskHandle},
    request::fault::RequestFault,
    transport::{TransportError, TransportErrorKind},
};
use antiphon_wire::{ErrorCode, ErrorObject};
use std::{borrow::Cow, error::Error as StdError, fmt, time::Duration};

/// The reason why a call, or a request such as a list, has no result. Its texts hold neither state nor answers.
///
/// Its predicates sort it by what a caller can do. The texts of [`Display`](fmt::Display) name the cause; more about it may
/// be in [`source`](StdError::source). Texts of the server are escaped and cut there; [`server_error`](Self::server_error) and
/// [`kind`](Self::kind) have them as they were sent.
pub struct ClientError(Box<Inner>);

struct Inner {
    server: ServerIdentity,
    method: Cow<'static, str>,
    call: Option<Call>,
    kind: ClientErrorKind,
    pending: Option<PendingCall>,
    /// The task that the call became, if it may still run.
    task: Option<TaskHandle>,
    /// A request was under way when a deadline or a cancellation ended the call.
    interrupted: bool,
}

impl ClientError {
    /// An error of a request that belongs to no call.
    pub(crate) fn of_request(
        server: ServerIdentity,
        method: impl Into<Cow<'static, str>>,
        kind: impl Into<ClientErrorKind>,
    ) -> Self {
        let (method, kind) = (method.into(), kind.into());
        Self(Box::new(Inner {
            server,
            method,
            call: None,
            kind,
            pending: None,
            task: None,
            interrupted: false,
        }))
    }

    /// Returns the error of a call. `interrupted`: a request was under way when the call ended.
    pub(crate) fn of_call(
        server: ServerIdentity,
        call: Call,
        kind: ClientErrorKind,
        pending: Option<PendingCall>,
        interrupted: bool,
    ) -> Self {
        let method = Cow::Borrowed(call.method());
        Self(Box::new(Inner { server, method, call: Some(call), kind, pending, task: None, interrupted }))
    }

    /// The same error, with the task that may still run.
    pub(crate) fn with_task(mut self, task: Option<TaskHandle>) -> Self {
        self.0.task = task;
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> &ClientErrorKind {
        &self.0.kind
    }

    /// The kind of the error, by value.
    pub fn into_kind(self) -> ClientErrorKind {
        self.0.kind
    }

    /// The server that was called.
    pub fn server(&self) -> &ServerIdentity {
        &self.0.server
    }

    /// The method of the request, such as `tools/call`.
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// The call; none if its arguments were wrong, or the request belongs to no call.
    pub fn call(&self) -> Option<&Call> {
        self.0.call.as_ref()
    }

    /// The pending call with the answers so far, if the server had asked something: complete it by hand and
    /// [`resume`](crate::Client::resume) it, or [`drive`](crate::Client::drive) it to its end.
    pub fn pending(&self) -> Option<&PendingCall> {
        self.0.pending.as_ref()
    }

    /// The pending call, by value. See [`pending`](Self::pending).
    pub fn into_pending(self) -> Option<PendingCall> {
        self.0.pending
    }

    /// The handle of the task that the call became, if the task may still run. It holds the answers that were not sent:
    /// [`Client::task`](crate::Client::task) continues it.
    pub fn task(&self) -> Option<&TaskHandle> {
        self.0.task.as_ref()
    }

    /// The handle of the task, by value. See [`task`](Self::task).
    pub fn into_task(self) -> Option<TaskHandle> {
        self.0.task
    }

    /// The same call from its beginning. Its effects so far may happen again: ask the person first.
    pub fn restart(&self) -> Option<Call> {
        self.0.call.clone()
    }

    /// The JSON-RPC error that the server answered with, if it did; also that in the body of an HTTP refusal.
    pub fn server_error(&self) -> Option<&ErrorObject> {
        match &self.0.kind {
            ClientErrorKind::StateRefused(error) => Some(error),
            ClientErrorKind::Request(fault) => fault.server_error(),
            _ => None,
        }
    }

    /// The transport's error, if no JSON-RPC response arrived. Its [`challenge`](TransportError::challenge) names the token that
    /// an HTTP server requires.
    pub fn transport_error(&self) -> Option<&TransportError> {
        match &self.0.kind {
            ClientErrorKind::Request(RequestFault::Transport(error)) => Some(error),
            _ => None,
        }
    }

    /// The time after which the server may accept the same request: the `Retry-After` of an HTTP server (in seconds), or else
    /// the `data.retryAfterMs` of the server's error, as in the errors with the reasons `busy`, `codec`, `store` and `in_flight`.
    /// A `Retry-After` of more than a day is ignored, and `retryAfterMs` is a day at most.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.0.kind {
            ClientErrorKind::Request(fault) => fault.retry_after(),
            _ => None,
        }
    }

    /// The HTTP status of an answer that refused the caller (401, 403, 429) or had no JSON-RPC response.
    pub fn http_status(&self) -> Option<u16> {
        match self.transport_error()?.kind() {
            TransportErrorKind::HttpStatus(status) => Some(status),
            _ => None,
        }
    }

    /// Returns `true` if the call was cancelled through its token, or its task was cancelled at the server.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0.kind, ClientErrorKind::Cancelled | ClientErrorKind::TaskCancelled { .. })
    }

    /// Returns `true` if a request or the whole call took too long, or the TTL of a task ended without an answer.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self.0.kind,
            ClientErrorKind::Deadline(_)
                | ClientErrorKind::TaskExpired
                | ClientErrorKind::Request(RequestFault::Timeout(_))
        )
    }

    /// Returns `true` if the server refused its own state.
    pub fn is_state_refused(&self) -> bool {
        matches!(self.0.kind, ClientErrorKind::StateRefused(_))
    }

    /// Returns `true` if the server requires an access token, or another one (HTTP 401). The server did not act.
    pub fn is_unauthorized(&self) -> bool {
        self.http_status() == Some(401)
    }

    /// Returns `true` if the server refused the caller (HTTP 403), for example for a missing scope. The server did not act.
    pub fn is_forbidden(&self) -> bool {
        self.http_status() == Some(403)
    }

    /// Returns `true` if the requested thing does not exist: there is no MCP endpoint at the URL (HTTP 404), the server has no
    /// such method (`-32601`), the resource [does not exist](Self::is_resource_not_found), or the server does not know the
    /// task, or no longer.
    pub fn is_not_found(&self) -> bool {
        let is_method = || self.server_error().is_some_and(|error| error.code == ErrorCode::METHOD_NOT_FOUND);
        let is_endpoint = self.http_status() == Some(404) && !self.is_session_lost();
        let is_task = matches!(self.0.kind, ClientErrorKind::Request(RequestFault::UnknownTask(_)));
        is_endpoint || is_method() || is_task || self.is_resource_not_found()
    }

    /// Returns `true` if the server reported that the resource does not exist.
    ///
    /// > clients **SHOULD** also accept `-32002` as a resource not found error, as earlier protocol versions used this
    /// > code.
    pub fn is_resource_not_found(&self) -> bool {
        let (Some(call), Some(error)) = (self.call(), self.server_error()) else { return false };
        let named = || error.data.as_ref()?.get("uri")?.as_str();
        call.kind() == CallKind::Resource
            && (error.code == ErrorCode::RESOURCE_NOT_FOUND
                || error.code == ErrorCode::INVALID_PARAMS && named() == Some(call.name()))
    }

    /// Returns `true` if the server has no room for the request now (HTTP 429, HTTP 503 with a [time](Self::retry_after) to
    /// try again, or an error whose `data.reason` is `busy`). The server did not act: the same request may succeed later.
    ///
    /// An HTTP 503 without such a time has an [unknown outcome](Self::is_unknown_outcome).
    pub fn is_busy(&self) -> bool {
        match self.http_status() {
            Some(429) => true,
            Some(503) if self.retry_after().is_some() => true,
            _ => self.server_error().is_some_and(|error| error.reason() == Some("busy")),
        }
    }

    /// Returns `true` if it is unknown whether the server acted on the call: the latest request may have been sent, and no
    /// response arrived; or the server answered that it does not know the effects so far (an error whose `data.reason` is
    /// `outcome_unknown`). Then ask the person before you repeat the call, unless the tool is idempotent.
    ///
    /// `false` means that nothing was sent, that the server refused the request, or that the server returned another error or
    /// a result. A [task](Self::is_task) is no answer: it may still run.
    pub fn is_unknown_outcome(&self) -> bool {
        if self.server_error().is_some_and(|error| error.reason() == Some("outcome_unknown")) {
            return true;
        }
        match &self.0.kind {
            ClientErrorKind::Request(RequestFault::Transport(error)) => match error.kind() {
                _ if error.is_session_lost() => false,
                TransportErrorKind::Setting | TransportErrorKind::Unreachable => false,
                // A server that is busy did not act. A proxy may send a 503 of its own after it has sent the request on.
                TransportErrorKind::HttpStatus(503) => !self.is_busy(),
                // A gateway that gives up, or a server that broke, may have acted.
                TransportErrorKind::HttpStatus(status) => status >= 500 && !matches!(status, 501 | 505),
                TransportErrorKind::Closed | TransportErrorKind::Malformed | TransportErrorKind::TooLarge => {
                    true
                }
            },
            ClientErrorKind::Request(RequestFault::Timeout(_) | RequestFault::Task { .. }) => true,
            _ => self.0.interrupted || self.0.task.is_some(),
        }
    }

    /// Returns `true` if the server made a task of the call that may still run. [`task`](Self::task) returns its handle, unless
    /// this client cannot follow such a task ([`RequestFault::Task`]).
    pub fn is_task(&self) -> bool {
        self.0.task.is_some() || matches!(self.0.kind, ClientErrorKind::Request(RequestFault::Task { .. }))
    }

    /// Returns `true` if the server acknowledged none of the changes that a subscription requested.
    pub fn is_nothing_acknowledged(&self) -> bool {
        matches!(self.0.kind, ClientErrorKind::Request(RequestFault::NothingAcknowledged))
    }

    /// Returns `true` if a bound of this client ended the call.
    pub fn is_limit(&self) -> bool {
        matches!(
            self.0.kind,
            ClientErrorKind::Ask(AskFault::RoundLimit { .. } | AskFault::TooManyAsks { .. })
                | ClientErrorKind::StateOnlyLimit
                | ClientErrorKind::Deadline(_)
                | ClientErrorKind::TooManyPages { .. }
                | ClientErrorKind::ListTooLong { .. }
        )
    }

    /// Returns `true` if attaching a callback would help.
    pub fn is_missing_callback(&self) -> bool {
        matches!(
            self.0.kind,
            ClientErrorKind::Ask(AskFault::NoCallback { .. })
                | ClientErrorKind::Request(RequestFault::MissingCapability { .. })
        )
    }

    /// Returns `true` if no JSON-RPC response arrived: the transport failed, or an HTTP status arrived instead.
    /// [`is_unknown_outcome`](Self::is_unknown_outcome) shows if the server may have acted.
    pub fn is_transport(&self) -> bool {
        self.transport_error().is_some()
    }

    fn is_session_lost(&self) -> bool {
        self.transport_error().is_some_and(TransportError::is_session_lost)
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { server, method, call, kind, task, .. } = &*self.0;
        if let (ClientErrorKind::Deadline(limit), Some(_)) = (kind, task) {
            let text =
                format_args!("the call did not end within {limit:?}; its task continues at the server");
            return match call {
                Some(call) => write!(f, "{call} at {server}: {text}"),
                None => write!(f, "{method} at {server}: {text}"),
            };
        }
        match (call, kind) {
            (Some(call), _) => write!(f, "{call} at {server}: {kind}"),
            (None, ClientErrorKind::Arguments(error)) => error.fmt(f),
            (None, _) => write!(f, "{method} at {server}: {kind}"),
        }
    }
}

impl fmt::Debug for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientError")
            .field("server", &self.0.server)
            .field("method", &self.0.method)
            .field("call", &self.0.call)
            .field("kind", &self.0.kind)
            .field("pending", &self.0.pending)
            .field("task", &self.0.task)
            .finish_non_exhaustive()
    }
}

impl StdError for ClientError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.kind {
            ClientErrorKind::Arguments(error) => error.source(),
            ClientErrorKind::Request(fault) => fault.source(),
            ClientErrorKind::Ask(fault) => fault.source(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::TransportErrorKind::{Closed, HttpStatus, Malformed, TooLarge, Unreachable};
    use antiphon_wire::method;
    use serde_json::{Value, json};

    fn of(kind: impl Into<ClientErrorKind>) -> ClientError {
        ClientError::of_request(ServerIdentity::new("test", None), method::TOOLS_CALL, kind)
    }

    fn transport(kind: TransportErrorKind) -> RequestFault {
        RequestFault::Transport(TransportError::new(kind, "the cause"))
    }

    fn refused(code: ErrorCode, reason: &str) -> RequestFault {
        RequestFault::Server(ErrorObject::new(code, "no").with_data(json!({ "reason": reason })))
    }

    /// The names of the predicates that are true.
    fn check(error: &ClientError, expected: &[&str]) {
        let all: [(&str, bool); 8] = [
            ("unauthorized", error.is_unauthorized()),
            ("forbidden", error.is_forbidden()),
            ("not_found", error.is_not_found()),
            ("busy", error.is_busy()),
            ("unknown_outcome", error.is_unknown_outcome()),
            ("timeout", error.is_timeout()),
            ("cancelled", error.is_cancelled()),
            ("transport", error.is_transport()),
        ];
        let found: Vec<&str> = all.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
        assert_eq!(found, expected, "{error}");
    }

    #[test]
    fn predicates_are_true_of_these_errors() {
        for (kind, expected) in [
            (HttpStatus(401), &["unauthorized", "transport"][..]),
            (HttpStatus(403), &["forbidden", "transport"]),
            (HttpStatus(404), &["not_found", "transport"]),
            (HttpStatus(405), &["transport"]),
            (HttpStatus(429), &["busy", "transport"]),
            (HttpStatus(503), &["unknown_outcome", "transport"]),
            (HttpStatus(307), &["transport"]),
            (HttpStatus(500), &["unknown_outcome", "transport"]),
            (HttpStatus(502), &["unknown_outcome", "transport"]),
            (HttpStatus(504), &["unknown_outcome", "transport"]),
            (Unreachable, &["transport"]),
            (Closed, &["unknown_outcome", "transport"]),
            (Malformed, &["unknown_outcome", "transport"]),
            (TooLarge, &["unknown_outcome", "transport"]),
        ] {
            check(&of(transport(kind)), expected);
        }
        let later =
            TransportError::new(HttpStatus(503), "later").with_retry_after(Some(Duration::from_secs(1)));
        check(&of(RequestFault::Transport(later)), &["busy", "transport"]);
        let lost = TransportError::new(HttpStatus(404), "the session is unknown").session_lost();
        check(&of(RequestFault::Transport(lost)), &["transport"]);
        check(&of(RequestFault::Timeout(Duration::from_secs(1))), &["unknown_outcome", "timeout"]);
        check(&of(refused(ErrorCode::METHOD_NOT_FOUND, "")), &["not_found"]);
        check(&of(refused(ErrorCode::INTERNAL_ERROR, "busy")), &["busy"]);
        check(&of(refused(ErrorCode::INTERNAL_ERROR, "broken")), &[]);
        check(&of(refused(ErrorCode::INTERNAL_ERROR, "outcome_unknown")), &["unknown_outcome"]);
        check(&of(ClientErrorKind::CursorRepeated), &[]);
    }

    #[test]
    fn the_time_to_try_again_is_that_of_the_header_or_else_of_the_data() {
        const DAY: u64 = 24 * 60 * 60 * 1000;
        let error = |millis: Value| {
            let data = json!({ "reason": "store", "retryAfterMs": millis });
            ErrorObject::new(ErrorCode::INTERNAL_ERROR, "no").with_data(data)
        };
        let millis = |millis| Some(Duration::from_millis(millis));
        for (data, expected) in [
            (json!(1500), millis(1500)),
            (json!(0), millis(0)),
            (json!(DAY), millis(DAY)),
            (json!(DAY + 1), millis(DAY)),
            (json!(-1), None),
            (json!("1500"), None),
            (Value::Null, None),
        ] {
            assert_eq!(of(RequestFault::Server(error(data.clone()))).retry_after(), expected, "{data}");
        }
        let http = |header| {
            let refusal = TransportError::new(HttpStatus(429), "no").with_retry_after(header);
            of(RequestFault::Transport(refusal.with_server_error(Some(error(json!(1500))))))
        };
        assert_eq!(http(millis(7000)).retry_after(), millis(7000));
        assert_eq!(http(None).retry_after(), millis(1500));
        assert_eq!(of(ClientErrorKind::CursorRepeated).retry_after(), None);
    }

    #[test]
    fn a_call_that_was_interrupted_has_an_unknown_outcome() {
        let limit = Duration::from_secs(1);
        let check_call = |kind, interrupted, expected: &[&str]| {
            let server = ServerIdentity::new("test", None);
            check(&ClientError::of_call(server, Call::resource("a:b"), kind, None, interrupted), expected);
        };
        check_call(ClientErrorKind::Cancelled, true, &["unknown_outcome", "cancelled"]);
        check_call(ClientErrorKind::Cancelled, false, &["cancelled"]);
        check_call(ClientErrorKind::Deadline(limit), true, &["unknown_outcome", "timeout"]);
        check_call(ClientErrorKind::Deadline(limit), false, &["timeout"]);
        let gone = ErrorObject::new(ErrorCode::RESOURCE_NOT_FOUND, "gone");
        check_call(ClientErrorKind::Request(RequestFault::Server(gone)), false, &["not_found"]);
    }

    #[test]
    fn the_text_names_the_cause_once() {
        for (kind, text) in [
            (HttpStatus(401), "tools/call at test: the cause"),
            (Unreachable, "tools/call at test: no response came back: the cause"),
        ] {
            let error = of(transport(kind));
            assert_eq!(error.to_string(), text);
            assert!(error.source().is_none());
        }
    }
}
