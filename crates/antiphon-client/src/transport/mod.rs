//! The transports: HTTP, a child process, a pair of streams. Only the modules in here name sockets, pipes and HTTP.
//!
//! Every transport does one thing for a client: it sends a request and returns its response. A transport does not depend on
//! the meaning of the request or on the rounds of a call.

#[cfg(feature = "stdio")]
mod child;
#[cfg(feature = "http")]
mod http;
mod session;
mod stdio;

#[cfg(feature = "stdio")]
pub use child::{ChildCommand, ChildStderr, ChildTransport};
#[cfg(feature = "http")]
pub use http::{HttpTransport, HttpTransportBuilder, Token, TokenRequest};
pub use session::{IncomingRequest, OpeningLink, ServerMessage, SessionLink, SessionTransport};
pub use stdio::{StreamTransport, memory};

use antiphon_wire::{ErrorObject, ProtocolVersion, RequestId, escaped};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::{borrow::Cow, error::Error as StdError, fmt, sync::Arc, time::Duration};

/// The transport of a client to one server.
///
/// Dropping the future of [`exchange`](Self::exchange) cancels the request: the transport notifies the server in its own
/// way, and ignores a response that comes later.
pub trait Transport: Send + Sync + 'static {
    /// Sends one request and waits for its response. Notifications that belong to the request are passed to
    /// `on_notification` as they come.
    ///
    /// The outer error is the transport's; its kind shows if the server may have acted. The inner error is the server's.
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>>;

    /// Sends one notification of an extension. Resolves once the server has it, or has accepted it over HTTP. A transport that passes
    /// requests on to another passes notifications on too. Default: fails, and sends nothing.
    fn notify(&self, notification: OutgoingNotification) -> BoxFuture<'_, Result<(), TransportError>> {
        let text = format!("this transport sends no notifications: {:?} was not sent", notification.method);
        Box::pin(std::future::ready(Err(TransportError::new(TransportErrorKind::Unreachable, text))))
    }

    /// Ends the connection: closes streams, stops a child process. Requests that are under way fail.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// The name of the server until a result holds one: a URL, a command.
    fn target(&self) -> &str;

    /// Returns `true` if it sends [`OutgoingRequest::headers`], so that arguments must be repeated there. A transport that
    /// passes requests on to another returns what that one returns.
    ///
    /// > Clients using other transports (e.g., stdio) **MAY** ignore `x-mcp-header` annotations entirely.
    fn mirrors_parameters(&self) -> bool {
        false
    }

    /// The part that carries sessions of the revisions before 2026-07-28; none if they are not supported. A transport that
    /// passes requests on to another returns what that one returns.
    fn sessions(&self) -> Option<&dyn SessionTransport> {
        None
    }
}

impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        (**self).exchange(request, on_notification)
    }

    fn notify(&self, notification: OutgoingNotification) -> BoxFuture<'_, Result<(), TransportError>> {
        (**self).notify(notification)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        (**self).close()
    }

    fn target(&self) -> &str {
        (**self).target()
    }

    fn mirrors_parameters(&self) -> bool {
        (**self).mirrors_parameters()
    }

    fn sessions(&self) -> Option<&dyn SessionTransport> {
        (**self).sessions()
    }
}

/// The response of the server: a `result`, as JSON text, or its error.
pub type ServerReply = Result<Box<RawValue>, ErrorObject>;

/// One request, written as it is sent.
#[derive(Clone)]
#[non_exhaustive]
pub struct OutgoingRequest {
    /// The id, unique among the requests under way.
    pub id: RequestId,
    /// The method; HTTP repeats it in a header.
    pub method: Cow<'static, str>,
    /// `params.name` or `params.uri`, where the method has one; HTTP repeats it in a header.
    pub name: Option<String>,
    /// The protocol version in `_meta`; HTTP repeats it in a header.
    pub version: ProtocolVersion,
    /// Headers beyond those: `Mcp-Param-*`, with their values encoded. Only HTTP sends them.
    pub headers: Vec<(String, String)>,
    /// The whole message, without a newline at its end.
    pub body: Vec<u8>,
}

impl OutgoingRequest {
    /// A request without a name and without headers. `body` is the whole message.
    pub fn new(
        id: RequestId,
        method: impl Into<Cow<'static, str>>,
        version: ProtocolVersion,
        body: Vec<u8>,
    ) -> Self {
        Self { id, method: method.into(), name: None, version, headers: Vec::new(), body }
    }
}

impl fmt::Debug for OutgoingRequest {
    /// Formats neither body nor headers: they hold arguments, state and answers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingRequest")
            .field("id", &self.id)
            .field("method", &self.method)
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// One notification of the client to a server of 2026-07-28, written as it is sent.
#[derive(Clone)]
#[non_exhaustive]
pub struct OutgoingNotification {
    /// The method; HTTP repeats it in a header.
    pub method: Cow<'static, str>,
    /// The protocol version in `_meta`; HTTP repeats it in a header.
    pub version: ProtocolVersion,
    /// The whole message, without a newline at its end.
    pub body: Vec<u8>,
}

impl OutgoingNotification {
    pub(crate) fn new(method: Cow<'static, str>, version: ProtocolVersion, body: Vec<u8>) -> Self {
        Self { method, version, body }
    }
}

impl fmt::Debug for OutgoingNotification {
    /// Formats no body: it holds what the program sends.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingNotification").field("method", &self.method).finish_non_exhaustive()
    }
}

/// One notification of the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IncomingNotification {
    /// The method.
    pub method: String,
    /// The notification's `params`, as raw JSON text.
    pub params: Option<Box<RawValue>>,
    /// Set if the transport itself says that it waits for a person who signs in, or that this is over: no server can send that.
    pub(crate) waits: Option<bool>,
}

impl IncomingNotification {
    /// A notification of the server, for transports outside of this crate.
    pub fn new(method: impl Into<String>, params: Option<Box<RawValue>>) -> Self {
        Self { method: method.into(), params, waits: None }
    }

    /// Says that the transport begins or ends to wait for a person.
    #[cfg(feature = "http")]
    pub(crate) fn waiting(waits: bool) -> Self {
        Self { method: String::new(), params: None, waits: Some(waits) }
    }
}

/// The reason why no response arrived. Cheap to clone: one broken connection fails many requests.
#[derive(Clone, Debug)]
pub struct TransportError {
    kind: TransportErrorKind,
    text: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
    is_final: bool,
    session_lost: bool,
    challenge: Option<Arc<str>>,
    server_error: Option<Arc<ErrorObject>>,
    retry_after: Option<Duration>,
}

/// The maximum number of characters of the text of an error.
const TEXT_LIMIT: usize = 1000;

/// The longest time to try again that a server may name. A longer one is ignored.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// The kinds of [`TransportError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// A setting cannot be used, such as a URL: no transport was made.
    Setting,
    /// The server could not be reached: the request was not sent.
    Unreachable,
    /// The connection ended before the response arrived: the server may have acted on the request.
    Closed,
    /// The server answered with something that is not a response to this request.
    Malformed,
    /// The server answered with an HTTP status that carries no JSON-RPC response.
    HttpStatus(u16),
    /// The answer is longer than allowed here.
    TooLarge,
}

impl TransportError {
    /// Returns an error with a text of one sentence.
    pub fn new(kind: TransportErrorKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            source: None,
            is_final: false,
            session_lost: false,
            challenge: None,
            server_error: None,
            retry_after: None,
        }
    }

    /// The same error with its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The same error, from a transport on which no later request can succeed.
    #[must_use]
    pub fn for_good(mut self) -> Self {
        self.is_final = true;
        self
    }

    /// The same error, from a transport on which later requests can succeed.
    #[cfg(any(feature = "http", feature = "stdio"))]
    pub(crate) fn not_for_good(mut self) -> Self {
        self.is_final = false;
        self
    }

    /// Returns `true` if no later request on the same transport can succeed: it was closed, or its only connection has ended.
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Marks the error as coming from a server that no longer has the session and did nothing.
    #[must_use]
    pub fn session_lost(mut self) -> Self {
        self.session_lost = true;
        self
    }

    /// Returns `true` if the server reported an unknown session, so that it did not act on the request.
    pub fn is_session_lost(&self) -> bool {
        self.session_lost
    }

    /// The `WWW-Authenticate` of the refusal (several joined by `, `), if an HTTP server sent one. The header names the kind of
    /// token that the server requires, and the place to get one.
    pub fn challenge(&self) -> Option<&str> {
        self.challenge.as_deref()
    }

    /// The JSON-RPC error in the body of the refusal, as the HTTP server sent it.
    pub fn server_error(&self) -> Option<&ErrorObject> {
        self.server_error.as_deref()
    }

    /// The time after which the HTTP server may accept the request: its `Retry-After` in seconds, of at
    /// most a day.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    #[cfg(any(feature = "http", test))]
    pub(crate) fn with_server_error(mut self, error: Option<ErrorObject>) -> Self {
        self.server_error = error.map(Arc::new);
        self
    }

    #[cfg(any(feature = "http", test))]
    pub(crate) fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after = wait;
        self
    }

    #[cfg(feature = "http")]
    pub(crate) fn with_challenge(mut self, challenge: Option<String>) -> Self {
        self.challenge = challenge.map(Arc::from);
        self
    }

    #[cfg(feature = "http")]
    pub(crate) fn caused_by(mut self, source: Arc<dyn StdError + Send + Sync>) -> Self {
        self.source = Some(source);
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> TransportErrorKind {
        self.kind
    }
}

impl fmt::Display for TransportError {
    /// Writes the text of this error without its source, escaped and cut.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escaped(&self.text).limit(TEXT_LIMIT).fmt(f)
    }
}

impl StdError for TransportError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn StdError + 'static))
    }
}
