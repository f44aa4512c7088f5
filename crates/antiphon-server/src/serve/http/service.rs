//! The endpoint as a [`tower_service::Service`]: mount it in axum, or serve it with
//! [`serve_http`](super::serve_http).

use crate::{
    Begun, Outbox, Received, ReplyMessage, Server,
    serve::http::{
        HttpOptions,
        auth::{Authorized, authorize, metadata, scope_challenge, token_is_over},
        body::{EventStream, ReplyBody},
        guard::{Refused, check_agreement, check_head, too_large, too_slow},
        legacy,
    },
};
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body;
use http_body_util::BodyExt as _;
use hyper::body::{Buf as _, Bytes};
use std::{
    convert::Infallible,
    error::Error as StdError,
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;

/// An error of a request's body.
pub type BoxBodyError = Box<dyn StdError + Send + Sync>;

/// The MCP endpoint of a server. Cheap to clone. In an axum router, beside routes of yours:
///
/// ```ignore
/// let mcp = HttpService::new(server, HttpOptions::default());
/// let app = axum::Router::new().route("/health", get(health)).route_service("/mcp", mcp);
/// ```
///
/// While the server drains ([`Server::drain`]), each reply closes its connection: what the client asks next should reach
/// another instance.
///
/// Dropping the future of a call, as hyper does when the client goes away, cancels the request.
///
/// > The server **MUST** treat a client disconnect as cancellation of that request.
///
/// Clients of the revisions 2025-03-26 to 2025-11-25 are served on the same endpoint, unless the server is
/// [`modern_only`](crate::ServerBuilder::modern_only). Their sessions live in this value and its clones, and end
/// with the last of them; a request of a session goes on when its client goes away.
#[derive(Clone, Debug)]
pub struct HttpService {
    server: Server,
    options: Arc<HttpOptions>,
    /// `None` if nobody opens a session here.
    legacy: Option<Arc<legacy::Endpoint>>,
}

impl HttpService {
    /// The endpoint of this server.
    pub fn new(server: Server, options: HttpOptions) -> Self {
        if server.key_is_ephemeral() {
            tracing::warn!(
                server = server.name(),
                "state is sealed with a random key: right for one process; calls end with it, and no other instance \
                 can finish them (give all instances the same key ring: ANTIPHON_KEYS or a key file)"
            );
        }
        let options = Arc::new(options);
        let sessions = || Arc::new(legacy::Endpoint::new(server.clone(), Arc::clone(&options)));
        let legacy = server.has_sessions().then(sessions);
        Self { server, options, legacy }
    }

    /// Ends all legacy sessions, and what runs in them.
    pub(crate) fn end_sessions(&self) {
        if let Some(legacy) = &self.legacy {
            legacy.end_all();
        }
    }

    pub(crate) fn options(&self) -> &HttpOptions {
        &self.options
    }

    /// Climbs the ladder; what the handler sends before its reply goes into the outbox.
    async fn reply<B>(self, request: Request<B>, outbox: Outbox) -> Reply
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<BoxBodyError>,
    {
        let (mut parts, body) = request.into_parts();
        if let Some(metadata) = metadata(&parts, &self.options) {
            return Reply::Made(Box::new(metadata));
        }
        if let Err(refused) = check_head(&parts, &self.options, self.legacy.is_some()) {
            return Reply::Refused(Refused { unread: !body.is_end_stream(), ..refused });
        }
        let authorized = match authorize(&mut parts, &self.options, &self.server).await {
            Ok(authorized) => authorized,
            Err(refused) => return Reply::Refused(Refused { unread: !body.is_end_stream(), ..refused }),
        };
        if let Some(legacy) = self.legacy.as_ref().filter(|_| parts.method != Method::POST) {
            return legacy.get_or_delete(&parts, authorized);
        }
        let body = match read_body(body, &self.options, authorized).await {
            Ok(body) => body,
            Err(refused) => return Reply::Refused(refused),
        };
        // Boxed: what a modern request needs stays as small as it is.
        if let Some(legacy) = self.legacy.as_ref().filter(|_| legacy::is_of_session(&parts)) {
            return Box::pin(legacy.post(parts, body, authorized)).await;
        }
        let request = match self.server.read(&body) {
            Ok(Received::Request(request)) => request,
            // > If the server accepts it, the server **MUST** return HTTP status code `202 Accepted` with no body.
            Ok(Received::Notification(_)) => return Reply::Accepted,
            Ok(Received::Legacy(message)) => {
                let Some(legacy) = &self.legacy else {
                    return Reply::Json(Server::refuse_outside_of_session(message));
                };
                return Box::pin(legacy.without_session(
                    message,
                    &authorized.caller(&parts).with_outbox(&outbox),
                    &parts.headers,
                ))
                .await;
            }
            Err(reply) => {
                let Some(legacy) = &self.legacy else { return Reply::Json(reply) };
                let batch = Box::pin(legacy.batch_without_session(
                    &body,
                    authorized.caller(&parts).with_outbox(&outbox),
                    &parts.headers,
                ));
                return batch.await.unwrap_or(Reply::Json(reply));
            }
        };
        // The same snapshot for the check of the headers and for the call.
        let offered = self.server.offered();
        if let Err(error) = check_agreement(&offered, &request, &parts.headers) {
            return Reply::Json(ReplyMessage::error(Some(&request.id), &error));
        }
        let caller = authorized.caller(&parts).with_outbox(&outbox);
        match self.server.begin_with(&offered, &request, &caller).await {
            Begun::Answered(reply) => Reply::Json(reply),
            Begun::Open(subscription) => {
                // It may stay for days: what opened it does not.
                drop((request, offered));
                drop((body, parts));
                tokio::select! {
                    reply = self.server.ended(subscription) => Reply::Json(reply),
                    // It breaks off, and its client opens it again with the token it has then.
                    () = authorized.over(&self.server) => Reply::Refused(token_is_over()),
                }
            }
        }
    }
}

/// What one POST comes to.
pub(crate) enum Reply {
    /// Before its message was read.
    Refused(Refused),
    /// It was a notification.
    Accepted,
    /// A JSON-RPC response.
    Json(ReplyMessage),
    /// A status says it all.
    Empty(StatusCode),
    /// A response of a session, or something that is not MCP.
    Made(Box<Response<ReplyBody>>),
}

/// One POST under way. It becomes a response when the reply is there, or when something is sent before it.
#[must_use = "a future does nothing unless it is polled"]
pub struct Exchange {
    /// Where `Connection` means something: before HTTP/2.
    server: Option<Server>,
    /// Taken along by the stream, once there is one.
    reply: Option<BoxFuture<'static, Reply>>,
    outbox: Outbox,
    options: Arc<HttpOptions>,
}

impl Future for Exchange {
    type Output = Result<Response<ReplyBody>, Infallible>;

    // > the server **MUST** return either `Content-Type: application/json` (a single JSON object) or
    // > `Content-Type: text/event-stream` (an SSE response stream).
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut reply) = self.reply.take() else { return Poll::Pending };
        let polled = reply.as_mut().poll(cx);
        let mut response = match polled {
            Poll::Ready(reply) if self.outbox.is_empty() => whole(reply, &self.options),
            Poll::Ready(reply) => stream_response(EventStream::ending(self.outbox.clone(), reply)),
            Poll::Pending if self.outbox.is_empty() => {
                self.reply = Some(reply);
                return Poll::Pending;
            }
            Poll::Pending => {
                stream_response(EventStream::new(self.outbox.clone(), reply, self.options.keep_alive))
            }
        };
        // What is asked next is better asked elsewhere.
        if self.server.as_ref().is_some_and(Server::is_draining) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(Ok(response))
    }
}

/// Nobody who may not sends us megabytes.
async fn read_body<B>(body: B, options: &HttpOptions, _: Authorized) -> Result<Bytes, Refused>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<BoxBodyError>,
{
    let read = async {
        // Nearly every body is one frame, and stays where it is.
        let (mut body, mut first, mut joined) = (pin!(body), Bytes::new(), Vec::new());
        while let Some(frame) = body.frame().await {
            let Ok(mut data) = frame.map_err(unreadable)?.into_data() else { continue };
            let length = data.remaining();
            if first.len().max(joined.len()) + length > options.max_body {
                return Err(too_large(options));
            }
            let data = data.copy_to_bytes(length);
            if first.is_empty() {
                first = data;
                continue;
            }
            if joined.is_empty() {
                joined.extend_from_slice(&first);
            }
            joined.extend_from_slice(&data);
        }
        Ok(if joined.is_empty() { first } else { joined.into() })
    };
    tokio::time::timeout(options.body_time, read).await.unwrap_or_else(|_elapsed| Err(too_slow()))
}

fn unreadable(error: impl Into<BoxBodyError>) -> Refused {
    tracing::debug!(error = %error.into(), "a body could not be read");
    Refused::new(StatusCode::BAD_REQUEST, "The body could not be read")
}

/// A response that is there as a whole.
fn whole(reply: Reply, options: &HttpOptions) -> Response<ReplyBody> {
    match reply {
        Reply::Refused(refused) => plain(&refused),
        Reply::Accepted => with_status(StatusCode::ACCEPTED, Vec::new()),
        Reply::Json(reply) => {
            let mut response = json_response(reply.body.into());
            *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
            if !reply.scopes.is_empty() {
                let challenge = scope_challenge(options, &reply.scopes);
                response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            }
            response
        }
        Reply::Empty(status) => with_status(status, Vec::new()),
        Reply::Made(response) => *response,
    }
}

/// A JSON-RPC response, whole.
pub(crate) fn json_response(body: Bytes) -> Response<ReplyBody> {
    let mut response = with_status(StatusCode::OK, body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A response of which only the beginning is there.
pub(crate) fn stream_response(events: impl Into<ReplyBody>) -> Response<ReplyBody> {
    let mut response = Response::new(events.into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // > When initiating an SSE stream, servers **SHOULD** include the `X-Accel-Buffering: no` header
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn with_status(status: StatusCode, body: impl Into<Bytes>) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::from(body.into()));
    *response.status_mut() = status;
    response
}

fn plain(refused: &Refused) -> Response<ReplyBody> {
    tracing::debug!(status = refused.status.as_u16(), reason = refused.text, "request refused");
    let mut response = with_status(refused.status, refused.text.clone());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if refused.status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    if let Some(challenge) = &refused.challenge {
        headers.insert(header::WWW_AUTHENTICATE, challenge.clone());
    }
    if refused.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    if breaks_off(refused.status) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if refused.unread {
        response.extensions_mut().insert(Unread);
    }
    response
}

/// Marks a response whose request may still be on its way, so that the connection must not be closed on it.
#[derive(Clone, Copy)]
pub(crate) struct Unread;

/// Whether the body was given up half-way, so that nothing can follow on this connection.
fn breaks_off(status: StatusCode) -> bool {
    matches!(status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT | StatusCode::BAD_REQUEST)
}

impl<B> Service<Request<B>> for HttpService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxBodyError>,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Exchange;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (service, outbox) = (self.clone(), Outbox::default());
        let options = Arc::clone(&self.options);
        let server = (request.version() <= Version::HTTP_11).then(|| self.server.clone());
        let reply = Box::pin(service.reply(request, outbox.clone()));
        Exchange { server, reply: Some(reply), outbox, options }
    }
}
