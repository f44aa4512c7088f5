//! The client over any pair of byte streams: a child's pipes, a socket, memory.

mod in_flight_requests;
mod tasks;

use crate::transport::{
    IncomingNotification, OutgoingNotification, OutgoingRequest, ServerMessage, ServerReply, SessionLink,
    SessionTransport, Transport, TransportError, TransportErrorKind::Closed,
};
use antiphon_wire::{ProtocolVersion, framing::MAX_LINE, lock::Lock};
use futures_util::future::BoxFuture;
use in_flight_requests::InFlightRequests;
use std::{fmt, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
    task::JoinHandle,
};

/// The time limit to finish a partly written message when the connection is closed.
const LAST_WRITE: Duration = Duration::from_secs(1);

/// A transport to the server at the other end of a pair of byte streams.
///
/// All requests share the channel, so notifications find their request by their content:
/// - progress by its token, which must be the id of the request;
/// - what a subscription sends by the subscription's id;
/// - log messages name no request: they are handed to the request under way if there is exactly one;
/// - `notifications/cancelled` for a subscription is handed to it and ends it as `Closed`.
///
/// On a legacy session, all other messages belong to the session. Without a session, every other notification is dropped. At
/// most 16 MiB of notifications wait for one caller, and further ones are dropped. A subscription that reaches this limit
/// fails as [`TooLarge`](crate::transport::TransportErrorKind::TooLarge) instead, and is cancelled at the server.
///
/// Dropping the future of a request sends `notifications/cancelled`, unless the request was still waiting to be
/// written: then it never leaves. A response that comes later is ignored, as is one to an unknown request. A line that
/// is no message is logged and ignored; a hundred in a row end the connection. A line that is too long fails every
/// request that was sent, because it may have been the response to any of them; the connection stays open.
pub struct StreamTransport {
    requests: Arc<InFlightRequests>,
    target: String,
    tasks: Lock<Option<Tasks>>,
}

/// The two tasks of a connection; their number does not depend on the number of requests.
struct Tasks {
    reader: Task,
    writer: Task,
}

/// A task that ends with its owner.
#[derive(Debug)]
pub(crate) struct Task(JoinHandle<()>);

impl Task {
    pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }

    /// Waits for the end of the task, and aborts the task after `limit`.
    pub(crate) async fn end_within(mut self, limit: Duration) {
        if tokio::time::timeout(limit, &mut self.0).await.is_err() {
            self.0.abort();
            let _ = (&mut self.0).await;
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl StreamTransport {
    /// Returns a transport that reads from `reader` and writes to `writer`, with lines of at most 16 MiB. `target` is a name for
    /// the server at the other end.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        target: impl Into<String>,
    ) -> Self {
        Self::with_max_line(reader, writer, target, MAX_LINE)
    }

    /// The same, with lines of at most `max_line` bytes.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn with_max_line(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        target: impl Into<String>,
        max_line: usize,
    ) -> Self {
        let requests = Arc::<InFlightRequests>::default();
        let (to_read, to_write) = (Arc::clone(&requests), Arc::clone(&requests));
        let tasks = Tasks {
            reader: Task::spawn(async move { tasks::read(&to_read, reader, max_line).await }),
            writer: Task::spawn(async move { tasks::write(&to_write, writer).await }),
        };
        Self { requests, target: target.into(), tasks: Lock::new(Some(tasks)) }
    }

    /// The link of a session over these streams.
    pub(crate) fn link(&self) -> Result<StreamLink, TransportError> {
        StreamLink::new(&self.requests)
    }

    /// Returns `true` if no request is taken any more.
    #[cfg(feature = "stdio")]
    pub(crate) fn has_ended(&self) -> bool {
        self.requests.has_ended()
    }

    /// Fails the running requests and closes the writing side. Later messages of the server are read and ignored by the
    /// task that is given back.
    pub(crate) async fn close_writing(&self) -> Option<Task> {
        self.requests.end(TransportError::new(Closed, "this client closed the connection"));
        let tasks = self.tasks.lock().take();
        let Tasks { reader, writer } = tasks?;
        writer.end_within(LAST_WRITE).await;
        Some(reader)
    }
}

impl Transport for StreamTransport {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        Box::pin(async move { self.requests.admit(request)?.response(on_notification).await })
    }

    fn notify(&self, notification: OutgoingNotification) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(std::future::ready(self.requests.send(notification.body)))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(reader) = self.close_writing().await {
                reader.end_within(Duration::ZERO).await;
            }
        })
    }

    fn target(&self) -> &str {
        &self.target
    }

    fn sessions(&self) -> Option<&dyn SessionTransport> {
        Some(self)
    }
}

impl SessionTransport for StreamTransport {
    fn probes_first(&self) -> bool {
        true
    }

    /// The streams are one session: a second one takes the place of the first.
    fn open(&self) -> Result<Arc<dyn SessionLink>, TransportError> {
        Ok(Arc::new(self.link()?))
    }
}

impl fmt::Debug for StreamTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamTransport").field("target", &self.target).finish_non_exhaustive()
    }
}

// A legacy session over a pair of streams: all of it on one channel.

pub(crate) struct StreamLink {
    requests: Arc<InFlightRequests>,
    received: tokio::sync::Mutex<mpsc::Receiver<ServerMessage>>,
}

impl StreamLink {
    pub(crate) fn new(requests: &Arc<InFlightRequests>) -> Result<Self, TransportError> {
        Ok(Self {
            received: tokio::sync::Mutex::new(requests.begin_session()?),
            requests: Arc::clone(requests),
        })
    }
}

impl SessionLink for StreamLink {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        Box::pin(async move {
            let mut take =
                |notification: IncomingNotification| on_message(ServerMessage::Notification(notification));
            self.requests.admit(request)?.response(&mut take).await
        })
    }

    fn send(&self, message: Vec<u8>) -> BoxFuture<'_, Result<(), TransportError>> {
        Box::pin(std::future::ready(self.requests.send(message)))
    }

    fn established(&self, _: &ProtocolVersion) {}

    fn listen<'a>(
        &'a self,
        ready: &'a mut (dyn FnMut() + Send),
        on_message: &'a mut (dyn FnMut(ServerMessage) + Send),
    ) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(async move {
            ready();
            let mut received = self.received.lock().await;
            while let Some(message) = received.recv().await {
                on_message(message);
            }
            let gone = || TransportError::new(Closed, "another session took the place of this one");
            Err(self.requests.ended().unwrap_or_else(gone))
        })
    }

    fn is_over(&self) -> bool {
        self.requests.has_ended()
    }

    // > For the stdio transport, the client **SHOULD** initiate shutdown by: First, closing the input stream
    // The transport ends the streams, not the session.
    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

pub mod memory {
    //! A client and a server in one process, without sockets.

    use crate::transport::stdio::StreamTransport;
    use tokio::io::{DuplexStream, duplex as pipe};

    /// The number of bytes that one side may write before the other reads.
    const BUFFER: usize = 64 * 1024;

    /// A client's transport, the stream that the server reads from, and the stream that the server writes to.
    ///
    /// The framing is that of stdio. Either side sees the end of the other's stream when the other drops it.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn duplex() -> (StreamTransport, DuplexStream, DuplexStream) {
        // Each direction has its own pipe: dropping the writing end ends that pipe only.
        let (client_writer, server_reader) = pipe(BUFFER);
        let (server_writer, client_reader) = pipe(BUFFER);
        (StreamTransport::new(client_reader, client_writer, "memory"), server_reader, server_writer)
    }
}
