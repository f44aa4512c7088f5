//! The ways to a server: HTTP, a child process, a pair of streams. Only the modules in here name sockets, pipes and HTTP.
//!
//! Every transport does one thing for a client: it takes a request there and its response back. What the request
//! says, and whether another round follows, is not its business.

#[cfg(feature = "stdio")]
mod child;
#[cfg(feature = "http")]
mod http;
pub mod memory;
mod session;
mod stdio;

#[cfg(feature = "stdio")]
pub use child::{ChildCommand, ChildStderr, ChildTransport};
#[cfg(feature = "http")]
pub use http::{HttpTransport, HttpTransportBuilder, Token, TokenRequest};
pub use session::{IncomingRequest, Opened, ServerMessage, SessionLink, Sessions};
pub use stdio::StreamTransport;

use antiphon_wire::{ErrorObject, ProtocolVersion, RequestId};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::{borrow::Cow, error::Error as StdError, fmt, sync::Arc};

/// The client's way to one server.
///
/// Dropping the future of [`exchange`](Self::exchange) cancels the request: the transport tells the server in its own
/// way, and ignores a response that comes later.
pub trait Transport: Send + Sync + 'static {
    /// Sends one request and waits for its response. Notifications that belong to the request are handed to
    /// `on_notification` as they come.
    ///
    /// The outer error is the transport's: nobody knows whether the server acted. The inner one is the server's.
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>>;

    /// Ends the connection: closes streams, stops a child process. Requests that are under way fail.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// What to call the server before it has told its name: a URL, a command.
    fn target(&self) -> &str;

    /// Whether it sends [`OutgoingRequest::headers`], so that arguments must be repeated there. A transport that passes
    /// requests on to another answers what that one answers.
    ///
    /// > Clients using other transports (e.g., stdio) **MAY** ignore `x-mcp-header` annotations entirely.
    fn mirrors_parameters(&self) -> bool {
        false
    }

    /// How sessions of the revisions before 2026-07-28 travel here; none if they do not. A transport that passes requests
    /// on to another answers what that one answers.
    fn sessions(&self) -> Option<&dyn Sessions> {
        None
    }
}

/// What the server answered: a `result`, as text, or its error.
pub type ServerReply = Result<Box<RawValue>, ErrorObject>;

/// One request, written once.
#[derive(Clone)]
pub struct OutgoingRequest {
    /// Unique among the requests under way.
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

impl fmt::Debug for OutgoingRequest {
    /// Neither body nor headers: they hold arguments, state and answers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingRequest")
            .field("id", &self.id)
            .field("method", &self.method)
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// One notification that came with a request.
#[derive(Clone, Debug)]
pub struct IncomingNotification {
    /// What happened.
    pub method: String,
    /// With what.
    pub params: Option<Box<RawValue>>,
}

/// Why no response came back. Cheap to clone: one broken connection fails many requests.
#[derive(Clone, Debug)]
pub struct TransportError {
    kind: TransportErrorKind,
    text: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
    is_final: bool,
    session_lost: bool,
    challenge: Option<Arc<str>>,
}

/// Whose fault it was, as far as the transport can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// The server could not be reached: the request did not leave.
    Unreachable,
    /// The connection ended before the response came: the request may have been acted upon.
    Closed,
    /// The server answered with something that is not a response to this request.
    Malformed,
    /// The server answered with an HTTP status that carries no JSON-RPC response.
    HttpStatus(u16),
    /// The answer is longer than allowed here.
    TooLarge,
}

impl TransportError {
    /// An error with one sentence that says what happened.
    pub fn new(kind: TransportErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), source: None, is_final: false, session_lost: false, challenge: None }
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

    /// The same error, from a transport that can begin anew.
    pub(crate) fn not_for_good(mut self) -> Self {
        self.is_final = false;
        self
    }

    /// Whether no later request on the same transport can succeed: it was closed, or its only connection is gone.
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// The same error, from a server that does not know the session any more and did nothing.
    #[must_use]
    pub fn session_lost(mut self) -> Self {
        self.session_lost = true;
        self
    }

    /// Whether the server said that it does not know the session of the request, so that it did not act on it.
    pub fn is_session_lost(&self) -> bool {
        self.session_lost
    }

    /// The `WWW-Authenticate` of the refusal (several joined by `, `), where an HTTP server sent one: what kind of token
    /// it wants, and where to get it.
    pub fn challenge(&self) -> Option<&str> {
        self.challenge.as_deref()
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

    /// What kind of error this is.
    pub fn kind(&self) -> TransportErrorKind {
        self.kind
    }
}

impl fmt::Display for TransportError {
    /// One layer: the cause is its source.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for TransportError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn StdError + 'static))
    }
}
