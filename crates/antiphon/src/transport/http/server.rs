//! The endpoint as a [`tower_service::Service`]: mount it in axum, or serve it with
//! [`serve_http`](super::serve_http).

use super::{
    HttpOptions,
    guard::{Refused, check_agreement, check_head, too_large, too_slow},
};
use crate::server::{Caller, Received, ReplyMessage, Server};
use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Buf as _, Bytes};
use std::{
    convert::Infallible,
    error::Error as StdError,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;

/// An error of a request's body.
pub type BoxBodyError = Box<dyn StdError + Send + Sync>;

/// The MCP endpoint of a server. Cheap to clone.
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

    async fn exchange<B>(self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: Body + Send,
        B::Data: Send,
        B::Error: Into<BoxBodyError>,
    {
        let (parts, body) = request.into_parts();
        if let Err(refused) = check_head(&parts, &self.options) {
            return plain(&refused);
        }
        let body = match read_body(body, &self.options).await {
            Ok(body) => body,
            Err(refused) => return plain(&refused),
        };
        let request = match self.server.read(&body) {
            Ok(Received::Request(request)) => request,
            // > If the server accepts it, the server **MUST** return HTTP status code `202 Accepted` with no body.
            Ok(Received::Notification(_)) => return status_only(StatusCode::ACCEPTED),
            Err(reply) => return json(reply),
        };
        if let Err(error) = check_agreement(&request, &parts.headers) {
            return json(ReplyMessage::error(Some(&request.id), &error));
        }
        let caller = Caller::http(&parts.headers, &parts.extensions);
        json(self.server.answer(&request, &caller).await)
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
    Refused { status: StatusCode::BAD_REQUEST, text: "The body could not be read".to_owned() }
}

fn json(reply: ReplyMessage) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(reply.body)));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn plain(refused: &Refused) -> Response<Full<Bytes>> {
    tracing::debug!(status = refused.status.as_u16(), reason = refused.text, "request refused");
    let mut response = Response::new(Full::new(Bytes::from(refused.text.clone())));
    *response.status_mut() = refused.status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if refused.status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    if leaves_body_unread(refused.status) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether the rest of the body may still be on its way, so that nothing can follow on this connection.
fn leaves_body_unread(status: StatusCode) -> bool {
    matches!(status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT | StatusCode::BAD_REQUEST)
}

fn status_only(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = status;
    response
}

impl<B> Service<Request<B>> for HttpService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxBodyError>,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.exchange(request).await) })
    }
}
