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

#[cfg(feature = "oauth")]
mod oauth {
    //! OAuth as the authorizer of a transport.

    use crate::transport::{
        HttpTransportBuilder, TransportError,
        http::token::{self, Authorizer, NoToken},
    };
    use antiphon_oauth::{Attempt, OAuth, Session};
    use antiphon_wire::header::{MCP_METHOD, MCP_NAME};
    use futures_util::{FutureExt as _, future::BoxFuture};
    use http::{HeaderMap, Request, StatusCode};
    use http_body_util::{BodyExt as _, Full};
    use hyper::body::Bytes;
    use serde::Deserialize;
    use std::sync::Arc;

    impl HttpTransportBuilder {
        /// Signs in by itself when the server demands authorization: every request then has a token of this OAuth client, which is
        /// renewed in time. It takes the place of [`bearer_provider`](Self::bearer_provider).
        ///
        /// Requests that meet a challenge at the same time wait for one sign-in. After a refused token, a request is sent once more
        /// with a renewed one; after that with one of a new sign-in. If the server requires more scopes, one sign-in asks for them,
        /// at most twice within ten minutes for one method and name. If there is no token, the refusal is the request's error, and its
        /// cause is an `antiphon_oauth::Error`. The time of a sign-in does not count for the time limit of a request: a person has ten
        /// minutes, or as long as the code for another device is valid.
        ///
        /// The guide's chapter `sign_in` has an example.
        pub fn oauth(mut self, oauth: &OAuth) -> Self {
            let session = oauth.session(&self.url);
            self.authorizer = Some(match session {
                Ok(session) => Ok(Arc::new(session) as Arc<dyn Authorizer>),
                Err(fault) => Err(fault.to_string()),
            });
            self
        }
    }

    impl Authorizer for Arc<Session> {
        fn attempt(&self) -> Box<dyn token::Attempt> {
            Box::new(Session::attempt(self))
        }
    }

    impl token::Attempt for Attempt {
        fn headers<'a>(
            &'a mut self,
            request: &'a Request<Full<Bytes>>,
        ) -> BoxFuture<'a, Result<HeaderMap, TransportError>> {
            Box::pin(async {
                let (method, uri) = (request.method().as_str(), request.uri().to_string());
                Self::headers(self, method, &uri).await.map_err(|fault| token::no_token(Arc::new(fault)))
            })
        }

        fn is_challenged(
            &mut self,
            request: &Request<Full<Bytes>>,
            status: StatusCode,
            headers: &HeaderMap,
        ) -> bool {
            Self::is_challenged(self, status, headers, || operation(request))
        }

        fn asks_people(&self) -> bool {
            true
        }

        fn renew(&mut self) -> BoxFuture<'_, Result<bool, NoToken>> {
            Box::pin(async {
                Self::renew(self).await.map_err(|fault| NoToken::from(Box::new(fault) as Box<_>))?;
                Ok(true)
            })
        }
    }

    /// The method and the name of a request. A request of a session has them in its body only.
    fn operation(request: &Request<Full<Bytes>>) -> String {
        #[derive(Deserialize)]
        struct Message {
            method: Option<String>,
            params: Option<Params>,
        }
        #[derive(Deserialize)]
        struct Params {
            name: Option<String>,
            uri: Option<String>,
        }
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        if let Some(method) = header(MCP_METHOD) {
            return format!("{method} {}", header(MCP_NAME).unwrap_or_default());
        }
        let body = request.body().clone().collect().now_or_never().and_then(Result::ok);
        let message = body.and_then(|body| serde_json::from_slice::<Message>(&body.to_bytes()).ok());
        let Some(Message { method, params }) = message else { return String::new() };
        let name = params.and_then(|params| params.name.or(params.uri)).unwrap_or_default();
        format!("{} {name}", method.unwrap_or_default())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn operations_of_requests() {
            let request = |method: Option<&str>, name: Option<&str>, body: &str| {
                let mut request = Request::new(Full::new(Bytes::copy_from_slice(body.as_bytes())));
                for (header, value) in [(MCP_METHOD, method), (MCP_NAME, name)] {
                    value.map(|value| request.headers_mut().insert(header, value.parse().unwrap()));
                }
                operation(&request)
            };
            for (method, name, body, expected) in [
                (Some("tools/call"), Some("a"), "", "tools/call a"),
                (Some("tools/list"), None, "", "tools/list "),
                (
                    None,
                    None,
                    r#"{"method":"tools/call","params":{"name":"b","arguments":{}}}"#,
                    "tools/call b",
                ),
                (None, None, r#"{"method":"resources/read","params":{"uri":"x:y"}}"#, "resources/read x:y"),
                (None, None, r#"{"method":"ping"}"#, "ping "),
                (None, None, "no", ""),
            ] {
                assert_eq!(request(method, name, body), expected);
            }
        }
    }
}
