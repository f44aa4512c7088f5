//! The client of Streamable HTTP: one POST per request.

mod answer;
mod core;
mod resume;
mod session;
mod sse_2024;
mod token;

pub use token::{Token, TokenRequest};

use crate::transport::{
    IncomingNotification, OpeningLink, OutgoingNotification, OutgoingRequest, ServerReply, SessionLink,
    SessionTransport, Transport, TransportError, TransportErrorKind::Setting,
};
use antiphon_connect::Connector;
use antiphon_wire::escaped;
use antiphon_wire::lock::Lock;
use core::{Core, host_of};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header, uri::Scheme};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use std::{
    error::Error as StdError,
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};
use token::{Authorizer, BearerProvider, NoToken, Provider};
use tokio::sync::watch;

/// A transport to a server at a URL.
///
/// Connections are kept and used again; each holds one request at a time. Redirects are not followed. A proxy is taken
/// from `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, never for this machine itself.
///
/// A notification on the stream of a request belongs to that request.
///
/// One transport is one authorization context: all its requests are sent as the same principal. The token of the principal
/// may change, but not its identity, because a client stores results. For another principal, make another transport and
/// another client.
pub struct HttpTransport {
    core: Arc<Core>,
}

/// The settings of an HTTP transport.
#[must_use]
#[derive(Clone)]
pub struct HttpTransportBuilder {
    url: String,
    /// The text that is shown in the place of the URL.
    name: Option<String>,
    headers: Vec<(String, String)>,
    /// An error if the URL is none that it can be for.
    authorizer: Option<Result<Arc<dyn Authorizer>, String>>,
    max_response: usize,
    connect_timeout: Duration,
}

impl HttpTransport {
    /// A transport to `url` with the usual settings. Nothing is connected yet.
    ///
    /// # Errors
    /// [`TransportError`] if the URL cannot be used; see [`HttpTransportBuilder::build`].
    pub fn new(url: impl Into<String>) -> Result<Self, TransportError> {
        Self::builder(url).build()
    }

    /// The settings of a transport to `url`: `http`, or `https` with the feature `https`; the host in ASCII.
    pub fn builder(url: impl Into<String>) -> HttpTransportBuilder {
        HttpTransportBuilder {
            url: url.into(),
            name: None,
            headers: Vec::new(),
            authorizer: None,
            max_response: antiphon_wire::sse::MAX_EVENT,
            connect_timeout: Duration::from_secs(10),
        }
    }
}

impl Transport for HttpTransport {
    // > **Streamable HTTP**: Closing the SSE response stream is the cancellation signal.
    // This future owns the response: dropping the future closes the connection.
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        Box::pin(self.core.unless_closed(self.core.post(request, on_notification)))
    }

    fn notify(&self, notification: OutgoingNotification) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(self.core.unless_closed(self.core.notify(notification)))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.core.client.lock().take();
        self.core.closed.send_replace(true);
        Box::pin(std::future::ready(()))
    }

    fn target(&self) -> &str {
        &self.core.target
    }

    fn mirrors_parameters(&self) -> bool {
        true
    }

    fn sessions(&self) -> Option<&dyn SessionTransport> {
        Some(self)
    }
}

impl SessionTransport for HttpTransport {
    fn probes_first(&self) -> bool {
        false
    }

    fn open(&self) -> Result<Arc<dyn SessionLink>, TransportError> {
        Ok(Arc::new(session::HttpLink::new(&self.core)))
    }

    fn open_older(&self) -> Option<OpeningLink<'_>> {
        Some(Box::pin(async {
            let link = self.core.unless_closed(sse_2024::EventsLink::open(&self.core)).await?;
            Ok(Arc::new(link) as Arc<dyn SessionLink>)
        }))
    }
}

impl HttpTransportBuilder {
    /// Sends `authorization: Bearer TOKEN` with every request.
    pub fn bearer(self, token: impl fmt::Display) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    /// Requests a token from the provider before each request, and sends it as `authorization: Bearer TOKEN`. If the provider
    /// returns `None`, the token of [`bearer`](Self::bearer) is sent, if there is one. The provider is called often and
    /// concurrently, so it should store its token and renew the token only when necessary.
    ///
    /// If the server refuses the token (401) or requires more scopes (403 with `insufficient_scope`), the provider is called
    /// once more for each, with the challenge, and the request is sent again. A second refusal is the request's error. The
    /// first refusal is the error if the provider has no other token: see [`TransportError::challenge`]. If the provider fails
    /// before anything was sent, the error is [`Unreachable`](crate::transport::TransportErrorKind::Unreachable).
    ///
    /// ```
    /// use antiphon::client::transport::{HttpTransport, Token, TokenRequest};
    ///
    /// # async fn kept() -> Option<Token> { None }
    /// # async fn renewed(_: &str) -> Result<Option<Token>, std::io::Error> { Ok(None) }
    /// let transport = HttpTransport::builder("https://example.com/mcp")
    ///     .bearer_provider(async |request: TokenRequest| match &request.challenge {
    ///         None => Ok(kept().await),
    ///         Some(challenge) => renewed(challenge).await,
    ///     })
    ///     .build();
    /// ```
    ///
    /// > Clients **SHOULD** respond to these errors by requesting a new access token with an increased set of scopes via
    /// > a step-up authorization flow or handle the errors in other, appropriate ways.
    pub fn bearer_provider<F, Fut, E>(mut self, provider: F) -> Self
    where
        F: Fn(TokenRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Token>, E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let provider: Provider = Arc::new(move |request| {
            let asked = provider(request);
            Box::pin(async move { asked.await.map_err(|fault| NoToken::from(fault.into())) })
        });
        self.authorizer = Some(Ok(Arc::new(BearerProvider(provider))));
        self
    }

    /// Sends a header with every request. The headers of the protocol cannot be replaced.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the text that errors, logs and stored calls have in the place of the URL: the URL without its query unless set. For
    /// URLs whose host or path contains a secret.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The longest JSON answer, and the longest event of a stream, in bytes: 16 MiB unless set.
    pub fn max_response(mut self, bytes: usize) -> Self {
        self.max_response = bytes;
        self
    }

    /// The time limit to open a connection, with TLS: 10 seconds unless set.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Makes the transport. Nothing is connected yet.
    ///
    /// # Errors
    /// [`Setting`](crate::transport::TransportErrorKind::Setting) if the URL or a header cannot be used, or TLS cannot be set
    /// up. In a build without the feature `https`, a URL with `https` cannot be used.
    pub fn build(self) -> Result<HttpTransport, TransportError> {
        let unusable = |text: String| TransportError::new(Setting, text);
        let uri = parse_url(&self.url).map_err(unusable)?;
        let mut headers = HeaderMap::new();
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("antiphon/", env!("CARGO_PKG_VERSION"))),
        );
        for (name, value) in self.headers {
            let parsed = HeaderName::try_from(&name).ok().zip(HeaderValue::try_from(value).ok());
            let (name, mut value) =
                parsed.ok_or_else(|| unusable(format!("the header `{}` cannot be sent", escaped(&name))))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // > The client **MUST** include an `Accept` header listing both `application/json` and `text/event-stream` as
        // > supported content types.
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let connector = Connector::new(&uri, self.connect_timeout).map_err(unusable)?;
        if let Some(authorization) = connector.proxy_authorization() {
            headers.insert(header::PROXY_AUTHORIZATION, authorization.clone());
        }
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        // The query may hold a key.
        let without_query =
            || format!("{}://{}{}", uri.scheme_str().unwrap_or_default(), host_of(&uri), uri.path());
        let core = Core {
            client: Lock::new(Some(client)),
            target: self.name.unwrap_or_else(without_query),
            uri,
            headers,
            authorizer: self.authorizer.transpose().map_err(unusable)?,
            max_response: self.max_response,
            closed: watch::Sender::new(false),
            keeps_sessions: AtomicBool::new(false),
        };
        Ok(HttpTransport { core: Arc::new(core) })
    }
}

/// The texts do not repeat the URL: it may hold a key.
fn parse_url(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|fault| format!("the URL cannot be read: {fault}"))?;
    if !uri.scheme().is_some_and(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS) {
        return Err("the URL must begin with http:// or https://".into());
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err("the URL has no host".into());
    }
    if host_of(&uri).contains('@') {
        return Err("the URL holds a user name: send it as a header".into());
    }
    Ok(uri)
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").field("target", &self.core.target).finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpTransportBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpTransportBuilder").field("headers", &names).finish_non_exhaustive()
    }
}
