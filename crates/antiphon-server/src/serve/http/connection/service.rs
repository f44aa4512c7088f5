//! The endpoint as one connection uses it: requests and their bodies change the state of the connection, until it ends: by its
//! protocol, for want of a place, without a request, or at the shutdown.

use crate::{
    serve::http::{
        Exchange, HttpService, ReplyBody,
        body::RequestBodyUnread,
        connection::table::{Connection, Place, RequestGuard},
    },
    server::message_service::MessageService,
};
use antiphon_wire::escaped;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::{Bytes, Incoming};
use std::{
    convert::Infallible,
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{sync::watch, time::timeout};

/// The rest of a body without a length: too little to be read ahead, since requests may follow it.
const UNKNOWN_REST: usize = 1;

/// The endpoint of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionService<S: MessageService> {
    service: HttpService<S>,
    connection: Arc<Connection>,
    /// True if the last response left a part of its request's body unread.
    unread: Arc<AtomicBool>,
}

impl<S: MessageService> ConnectionService<S> {
    pub(crate) fn new(service: HttpService<S>, connection: &Arc<Connection>) -> Self {
        Self { service, connection: Arc::clone(connection), unread: Arc::default() }
    }

    pub(crate) fn unread(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.unread)
    }
}

impl<S: MessageService> hyper::service::Service<Request<Incoming>> for ConnectionService<S> {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = ConnectionExchange<S>;

    fn call(&self, request: Request<Incoming>) -> ConnectionExchange<S> {
        let (parts, body) = request.into_parts();
        let exchange = self.connection.begin().map(|guard| {
            let body = TrackedBody { body, connection: Arc::clone(&self.connection) };
            (self.service.clone().exchange(parts, body, Some(self.connection.address())), guard)
        });
        ConnectionExchange { exchange, unread: Arc::clone(&self.unread) }
    }
}

/// The future of a response.
pub(crate) struct ConnectionExchange<S: MessageService> {
    /// `None` if the connection is being closed, or the response is there.
    exchange: Option<(Exchange<S>, RequestGuard)>,
    unread: Arc<AtomicBool>,
}

impl<S: MessageService> Future for ConnectionExchange<S> {
    type Output = Result<Response<ResponseBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some((exchange, _)) = &mut self.exchange else { return Poll::Ready(Ok(no_place())) };
        let response = ready!(Pin::new(exchange).poll(cx))?;
        let is_unread = response.extensions().get::<RequestBodyUnread>().is_some();
        self.unread.store(is_unread, Ordering::Relaxed);
        let guard = self.exchange.take().map(|(_, guard)| guard);
        Poll::Ready(Ok(response.map(|body| ResponseBody { body, guard })))
    }
}

/// Returns the response to a request that arrived while its connection was closed: to make room, or after a long time without
/// a request.
pub(crate) fn no_place() -> Response<ResponseBody> {
    let text = Bytes::from_static(b"The server closes this connection; send the request again");
    let mut response = Response::new(ResponseBody { body: text.into(), guard: None });
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The body of a request. While it is being read, the connection reads in large pieces.
pub(crate) struct TrackedBody<B = Incoming> {
    body: B,
    connection: Arc<Connection>,
}

impl<B: Body> TrackedBody<B> {
    fn note_rest(&self) {
        let left =
            self.body.size_hint().exact().map_or(UNKNOWN_REST, |left| left.try_into().unwrap_or(usize::MAX));
        self.connection.set_body_left(left);
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.note_rest();
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if frame.data_ref().is_some_and(|data| !data.is_empty()) {
                    self.connection.piece();
                }
                self.note_rest();
            }
            Some(Err(_)) | None => self.connection.set_body_left(0),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for TrackedBody<B> {
    fn drop(&mut self) {
        self.connection.set_body_left(0);
    }
}

/// The body of a response. The request is under way until the body is dropped.
pub(crate) struct ResponseBody {
    body: ReplyBody,
    guard: Option<RequestGuard>,
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let (Some(_), Some(guard)) = (&frame, &self.guard) {
            guard.connection().piece();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The time in which a connection without a request ends after it lost its place: for a response to a request that arrived
/// at this moment, and for the frames that end HTTP/2.
const EVICTION_TIME: Duration = Duration::from_millis(100);

/// The same for a connection that was without a request for too long. Nobody waits for its place, so a slow client has time to
/// learn that it ends.
const CLOSING_TIME: Duration = Duration::from_secs(1);

/// The reasons to end a connection, besides those of its protocol.
#[derive(Debug)]
pub(super) struct Until<'a> {
    place: &'a Place,
    write_timeout: Duration,
    draining: watch::Receiver<bool>,
}

#[cfg_attr(not(feature = "http2"), allow(dead_code, reason = "the rest is for HTTP/2"))]
impl<'a> Until<'a> {
    pub(super) fn new(place: &'a Place, write_timeout: Duration, draining: watch::Receiver<bool>) -> Self {
        Self { place, write_timeout, draining }
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        self.place.connection()
    }

    /// Waits until the connection loses its place, or the server drains.
    pub(super) async fn ends(&mut self) {
        tokio::select! {
            () = self.place.connection().evicted() => {}
            () = drained(&mut self.draining) => {}
        }
    }

    /// Runs a connection to its end. `shut_down` ends it once its requests have ended; `idle_timeout` limits the time
    /// without a request: until the first one, until the next, and in both cases until its head is complete.
    pub(super) async fn run<C>(
        &mut self,
        connection: C,
        shut_down: impl Fn(Pin<&mut C>),
        idle_timeout: Duration,
    ) -> hyper::Result<()>
    where
        C: Future<Output = hyper::Result<()>>,
    {
        let Self { place, write_timeout, draining } = self;
        let state = place.connection();
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = state.evicted() => {
                shut_down(connection.as_mut());
                // A response may be on its way still.
                let time = if state.is_blocked() { *write_timeout } else { EVICTION_TIME };
                timeout(time, connection).await.unwrap_or(Ok(()))
            }
            () = state.idle_for(idle_timeout) => {
                // A request that arrives now is refused and not begun: nothing would be left of it.
                state.evict();
                shut_down(connection.as_mut());
                timeout(CLOSING_TIME, connection).await.unwrap_or(Ok(()))
            }
            () = drained(draining) => {
                shut_down(connection.as_mut());
                let ended = tokio::select! {
                    biased;
                    ended = connection.as_mut() => Some(ended),
                    () = state.idle_for(idle_timeout) => None,
                };
                match ended {
                    Some(ended) => ended,
                    None => {
                        state.evict();
                        timeout(CLOSING_TIME, connection).await.unwrap_or(Ok(()))
                    }
                }
            }
        };
        if let Err(error) = &ended {
            tracing::debug!(error = %escaped(&error), "a connection ended early");
        }
        ended
    }
}

/// Waits until the server drains.
async fn drained(draining: &mut watch::Receiver<bool>) {
    drop(draining.wait_for(|draining| *draining).await);
}
