//! HTTP/2 without TLS, by prior knowledge: a client that knows that the server speaks it, such as a proxy, which ends TLS.
//!
//! Each stream is a request with a task of its own, because a proxy sends the requests of many clients over one connection.
//! The tasks end with their connection.

use crate::{
    quota::QuotaLimits,
    serve::http::{
        HttpService,
        connection::{
            read_ahead::ReadAhead,
            service::{ConnectionExchange, ConnectionService, ResponseBody, Until, no_place},
            table::Connection,
        },
        request_body::StreamPlace,
    },
    server::message_service::MessageService,
};
use antiphon_wire::lock::Lock;
use http::{Request, Response, header};
use http_body::{Body, Frame, SizeHint};
use hyper::{
    body::{Bytes, Incoming},
    rt::Executor,
    server::conn::http2,
    service::Service,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    future::{Future, pending},
    pin::Pin,
    sync::{Arc, MutexGuard},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

/// The maximum number of requests at a time on one connection.
const STREAMS: u32 = 100;

/// The bytes of bodies that a client may send before a handler reads them: the smallest window that a connection can have.
const WINDOW: u32 = 65_535;

/// The maximum length of a frame, the smallest that HTTP/2 allows.
const FRAME: u32 = 16 * 1024;

/// The bytes of a response that wait in a stream for the client to read.
const PIECE: usize = 8 * 1024;

/// The bytes of the table of header fields that the two sides have in common.
const HEADER_TABLE: u32 = 4096;

/// The maximum number of requests that a client resets before they are accepted. One more ends the connection.
const PENDING_RESETS: usize = 20;

/// The maximum number of requests that the server resets because of errors of the client. One more ends the connection.
const ERROR_RESETS: usize = 32;

/// Serves a stream of HTTP/2 to its end. Returns any other stream.
pub(super) async fn serve_if_http2<I, S>(
    mut stream: ReadAhead<I>,
    service: &HttpService<S>,
    until: &mut Until<'_>,
) -> Option<ReadAhead<I>>
where
    I: AsyncRead + AsyncWrite + Unpin + Send,
    S: MessageService,
{
    let is_http2 = tokio::select! {
        biased;
        is_http2 = timeout(service.options().header_timeout, stream.is_http2()) => is_http2,
        () = until.ends() => return None,
    };
    match is_http2 {
        Ok(Ok(true)) => {}
        Ok(Ok(false)) => return Some(stream),
        Ok(Err(_)) | Err(_) => return None,
    }
    let (options, limits) = (service.options(), stream_limits(service));
    let tasks = StreamTasks { streams: Arc::default(), write_timeout: options.write_timeout };
    let _tasks_end = AbortOnDrop(Arc::clone(&tasks.streams));
    let service = StreamService {
        service: ConnectionService::new(service.clone(), until.connection()),
        connection: Arc::clone(until.connection()),
        streams: Arc::clone(&tasks.streams),
        limits,
    };
    let connection = http2::Builder::new(tasks)
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(ERROR_RESETS)
        .max_header_list_size(u32::try_from(options.max_head).unwrap_or(u32::MAX))
        .header_table_size(HEADER_TABLE)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(FRAME)
        .max_send_buf_size(PIECE)
        .serve_connection(TokioIo::new(stream), service);
    // The error is in the log already.
    let _ = until.run(connection, |connection| connection.graceful_shutdown(), options.header_timeout).await;
    None
}

/// Returns the limits of the streams of all connections: as many as there may be connections. One address may have as many of
/// them as connections, and one principal a quarter; a single connection may always use all of its own.
fn stream_limits<S: MessageService>(service: &HttpService<S>) -> QuotaLimits {
    let (options, own) = (service.options(), STREAMS as usize);
    let all = options.connections.max(own);
    let limits = service.budget().limits_of(all, (all / 4).max(own), options.address_connections().max(own));
    QuotaLimits { anonymous: limits.anonymous.max(own), ..limits }
}

/// The endpoint of one HTTP/2 connection.
struct StreamService<S: MessageService> {
    service: ConnectionService<S>,
    connection: Arc<Connection>,
    streams: Arc<Streams>,
    limits: QuotaLimits,
}

impl<S: MessageService> Service<Request<Incoming>> for StreamService<S> {
    type Response = Response<StreamBody>;
    type Error = Infallible;
    type Future = StreamExchange<S>;

    fn call(&self, mut request: Request<Incoming>) -> StreamExchange<S> {
        let Some(place) = self.connection.begin_stream(self.limits) else {
            return StreamExchange { exchange: None };
        };
        request.extensions_mut().insert(Arc::clone(&place));
        let stream = Arc::new(Stream {
            connection: Arc::clone(&self.connection),
            _place: place,
            waits_since: Lock::default(),
        });
        // hyper passes the future of this request to the executor before it calls the service again.
        *lock(&self.streams.begun) = Some(Arc::clone(&stream));
        StreamExchange { exchange: Some((self.service.call(request), stream)) }
    }
}

/// The state of one stream.
#[derive(Debug)]
struct Stream {
    connection: Arc<Connection>,
    _place: Arc<StreamPlace>,
    /// The time at which a piece of the response was ready, until the client allows the next.
    waits_since: Lock<Option<Instant>>,
}

impl Stream {
    /// Waits until the client has not read for this time.
    async fn is_stalled(&self, limit: Duration) {
        loop {
            let waits_since = *lock(&self.waits_since);
            let until = waits_since.unwrap_or_else(Instant::now) + limit;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// The future of a response.
struct StreamExchange<S: MessageService> {
    /// `None` if there are too many streams.
    exchange: Option<(ConnectionExchange<S>, Arc<Stream>)>,
}

impl<S: MessageService> Future for StreamExchange<S> {
    type Output = Result<Response<StreamBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (mut response, stream) = match &mut self.exchange {
            None => (no_place(), None),
            Some((exchange, stream)) => (ready!(Pin::new(exchange).poll(cx))?, Some(Arc::clone(stream))),
        };
        // HTTP/2 has no such header: a connection that ends says so in a frame.
        response.headers_mut().remove(header::CONNECTION);
        Poll::Ready(Ok(response.map(|body| StreamBody { body, rest: Bytes::new(), stream })))
    }
}

/// The body of a response, in small pieces: each waits until the client has read those before it.
struct StreamBody {
    body: ResponseBody,
    /// The rest of the last message.
    rest: Bytes,
    stream: Option<Arc<Stream>>,
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(stream) = &self.stream {
            *lock(&stream.waits_since) = None;
        }
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)?).map(Frame::into_data) {
                Some(Ok(data)) => self.rest = data,
                Some(Err(other)) => return Poll::Ready(Some(Ok(other))),
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(length);
        if let Some(stream) = &self.stream {
            stream.connection.piece();
            *lock(&stream.waits_since) = Some(Instant::now());
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        self.body.size_hint().exact().map_or_else(SizeHint::default, |body| SizeHint::with_exact(body + rest))
    }
}

/// The tasks of one connection's streams.
#[derive(Debug, Default)]
struct Streams {
    tasks: Lock<JoinSet<()>>,
    /// The stream that has begun and has no task yet.
    begun: Lock<Option<Arc<Stream>>>,
}

/// The executor of one connection: its tasks end with it, or when their client does not read.
#[derive(Clone, Debug)]
struct StreamTasks {
    streams: Arc<Streams>,
    write_timeout: Duration,
}

impl<F> Executor<F> for StreamTasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let (stream, limit) = (lock(&self.streams.begun).take(), self.write_timeout);
        let stalled = async move {
            match stream {
                Some(stream) => stream.is_stalled(limit).await,
                None => pending().await,
            }
        };
        let mut tasks = lock(&self.streams.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            tokio::select! {
                biased;
                () = future => {}
                () = stalled => tracing::debug!("a request was cancelled: its client does not read the response"),
            }
        });
    }
}

/// Ends the tasks of a connection.
struct AbortOnDrop(Arc<Streams>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        lock(&self.0.tasks).abort_all();
    }
}

fn lock<T>(mutex: &Lock<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
