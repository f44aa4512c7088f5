//! The endpoint as a [`tower_service::Service`]: mount it in axum, or serve it with
//! [`serve_http`](super::serve_http).

use super::{
    HttpOptions,
    body::{EventStream, ReplyBody},
    guard::{Refused, check_agreement, check_head, too_large, too_slow},
};
use crate::server::{Begun, Caller, Outbox, Received, ReplyMessage, Server};
use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
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
    time::Duration,
};
use tower_service::Service;

/// An error of a request's body.
pub type BoxBodyError = Box<dyn StdError + Send + Sync>;

/// The MCP endpoint of a server. Cheap to clone.
///
/// While the server drains ([`Server::drain`]), each reply closes its connection: what the client asks next should reach
/// another instance.
///
/// Dropping the future of a call, as hyper does when the client goes away, cancels the request.
///
/// > The server **MUST** treat a client disconnect as cancellation of that request.
#[derive(Clone, Debug)]
pub struct HttpService {
    server: Server,
    options: Arc<HttpOptions>,
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
        Self { server, options: Arc::new(options) }
    }

    pub(super) fn options(&self) -> &HttpOptions {
        &self.options
    }

    /// Climbs the ladder; what the handler sends before its reply goes into the outbox.
    async fn reply<B>(self, request: Request<B>, outbox: Outbox) -> Reply
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<BoxBodyError>,
    {
        let (parts, body) = request.into_parts();
        if let Err(refused) = check_head(&parts, &self.options) {
            return Reply::Refused(Refused { unread: !body.is_end_stream(), ..refused });
        }
        let body = match read_body(body, &self.options).await {
            Ok(body) => body,
            Err(refused) => return Reply::Refused(refused),
        };
        let request = match self.server.read(&body) {
            Ok(Received::Request(request)) => request,
            // > If the server accepts it, the server **MUST** return HTTP status code `202 Accepted` with no body.
            Ok(Received::Notification(_)) => return Reply::Accepted,
            Ok(Received::Legacy(message)) => return Reply::Json(ReplyMessage::without_session(message)),
            Err(reply) => return Reply::Json(reply),
        };
        if let Err(error) = check_agreement(&self.server, &request, &parts.headers) {
            return Reply::Json(ReplyMessage::error(Some(&request.id), &error));
        }
        let caller = Caller::http(&parts.headers, &parts.extensions).with_outbox(&outbox);
        match self.server.begin(&request, &caller).await {
            Begun::Answered(reply) => Reply::Json(reply),
            Begun::Open(subscription) => {
                // It may stay for days: what opened it does not.
                drop(request);
                drop((body, parts));
                Reply::Json(subscription.ended(&self.server).await)
            }
        }
    }
}

/// What one POST comes to.
pub(super) enum Reply {
    /// Before its message was read.
    Refused(Refused),
    /// It was a notification.
    Accepted,
    /// A JSON-RPC response.
    Json(ReplyMessage),
}

/// One POST under way. It becomes a response when the reply is there, or when something is sent before it.
#[must_use = "a future does nothing unless it is polled"]
pub struct Exchange {
    /// Where `Connection` means something: before HTTP/2.
    server: Option<Server>,
    /// Taken along by the stream, once there is one.
    reply: Option<BoxFuture<'static, Reply>>,
    outbox: Outbox,
    keep_alive: Duration,
}

impl Future for Exchange {
    type Output = Result<Response<ReplyBody>, Infallible>;

    // > the server **MUST** return either `Content-Type: application/json` (a single JSON object) or
    // > `Content-Type: text/event-stream` (an SSE response stream).
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(mut reply) = self.reply.take() else { return Poll::Pending };
        let polled = reply.as_mut().poll(cx);
        let mut response = match polled {
            Poll::Ready(reply) if self.outbox.is_empty() => whole(reply),
            Poll::Ready(reply) => stream(EventStream::ending(self.outbox.clone(), reply)),
            Poll::Pending if self.outbox.is_empty() => {
                self.reply = Some(reply);
                return Poll::Pending;
            }
            Poll::Pending => stream(EventStream::new(self.outbox.clone(), reply, self.keep_alive)),
        };
        // What is asked next is better asked elsewhere.
        if self.server.as_ref().is_some_and(Server::is_draining) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Poll::Ready(Ok(response))
    }
}

async fn read_body<B>(body: B, options: &HttpOptions) -> Result<Bytes, Refused>
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
    let text = "The body could not be read".to_owned();
    Refused { status: StatusCode::BAD_REQUEST, text, unread: true }
}

/// A response that is there as a whole.
fn whole(reply: Reply) -> Response<ReplyBody> {
    match reply {
        Reply::Refused(refused) => plain(&refused),
        Reply::Accepted => with_status(StatusCode::ACCEPTED, Vec::new()),
        Reply::Json(reply) => {
            let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
            let mut response = with_status(status, reply.body);
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
    }
}

/// A response of which only the beginning is there.
fn stream(events: EventStream) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::from(events));
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
pub(super) struct Unread;

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
        let keep_alive = self.options.keep_alive;
        let server = (request.version() <= Version::HTTP_11).then(|| self.server.clone());
        let reply = Box::pin(service.reply(request, outbox.clone()));
        Exchange { server, reply: Some(reply), outbox, keep_alive }
    }
}
