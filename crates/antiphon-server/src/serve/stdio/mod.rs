//! A server on a pair of streams: its own standard input and output, or any other.
//!
//! ```text
//!  read ──▶ requests in flight ──▶ replies
//!   │ the end of the input, or the shutdown
//!   ▼
//!  drain ──▶ replies, for `drain_timeout` ──▶ the others are dropped ──▶ steps and tasks end
//! ```

mod in_flight;
#[cfg(feature = "stdio")]
mod process;

#[cfg(feature = "stdio")]
pub use process::serve_stdio;

use crate::server::message_service::MessageService;
use antiphon_wire::framing::{LineBuffer, MAX_LINE};
use futures_util::{FutureExt as _, future::BoxFuture, stream::StreamExt as _};
use in_flight::InFlight;
use in_flight::LineStreams;
use std::{
    fmt,
    future::{Future, pending, poll_fn, ready},
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite};

/// Returns a future that serves on these streams until the input ends: requests of 2026-07-28, and, after an `initialize`, a
/// session of an earlier revision beside them. Requests are answered concurrently, each as soon as it is done.
///
/// No task is spawned: reading, the handlers and writing take turns in this future. Dropping the future cancels all requests.
///
/// A last line without a newline is a message. After the end of the input, requests under way have
/// [`drain_timeout`](ServeStreams::drain_timeout) to end, and their replies are written; questions of a session fail, because no
/// answer can arrive. Then the future waits for the steps that run ([`Server::steps_ended`](crate::Server::steps_ended)),
/// because the process may end with it. Other streams may serve the same server: it drains only with
/// [`drain_at_end`](ServeStreams::drain_at_end), or at the [shutdown](ServeStreams::with_graceful_shutdown).
///
/// # Security
/// The peer is the owner of the process ([`Caller::default`](crate::Caller)), also if the streams are a socket: no token is
/// verified, the peer needs no scopes, and no share of anonymous callers limits it. A transport for a network calls
/// [`MessageService`] itself, with [`Caller::remote`](crate::Caller::remote).
///
/// # Errors
/// If the streams fail, or if the client does not read for five minutes while a message waits to be written.
pub fn serve_streams<'a>(
    input: impl AsyncRead + Unpin + Send + 'a,
    output: impl AsyncWrite + Unpin + Send + 'a,
    server: impl MessageService,
) -> ServeStreams<'a> {
    ServeStreams::new(|settings| Box::pin(serve(input, output, server, settings)))
}

/// A server on a pair of streams, which [`serve_streams`] or [`serve_stdio`] has not started
/// yet. It runs when it is awaited; later changes of its settings have no effect.
#[must_use = "a server runs only when it is awaited"]
pub struct ServeStreams<'a> {
    settings: Settings<'a>,
    /// `None` after the start.
    start: Option<Start<'a>>,
    running: BoxFuture<'a, io::Result<()>>,
}

type Start<'a> = Box<dyn FnOnce(Settings<'a>) -> BoxFuture<'a, io::Result<()>> + Send + 'a>;

impl<'a> ServeStreams<'a> {
    pub(crate) fn new(start: impl FnOnce(Settings<'a>) -> BoxFuture<'a, io::Result<()>> + Send + 'a) -> Self {
        Self { settings: Settings::default(), start: Some(Box::new(start)), running: Box::pin(pending()) }
    }

    /// Sets the time that requests under way have to end after the end of the input, or after the shutdown. Those that have not
    /// ended by then are cancelled; steps that run in them are waited for ([`Server::steps_ended`](crate::Server::steps_ended)).
    /// Default 5 s. A shutdown that follows the end of the input ends this time.
    pub fn drain_timeout(mut self, time: Duration) -> Self {
        self.settings.drain_timeout = time;
        self
    }

    /// Sets whether the server [drains](crate::Server::drain) at the end of the input: subscriptions end, and tasks go to another
    /// process at once. Default: `true` for [`serve_stdio`], `false` for [`serve_streams`].
    pub fn drain_at_end(mut self, on: bool) -> Self {
        self.settings.drain_at_end = on;
        self
    }

    /// Serves until this future is ready, or until the input ends. When the future is ready, no more is read, and the server
    /// [drains](crate::Server::drain). Default: SIGTERM or SIGINT for [`serve_stdio`], none for
    /// [`serve_streams`].
    pub fn with_graceful_shutdown(mut self, shutdown: impl Future<Output = ()> + Send + 'a) -> Self {
        self.settings.shutdown = Some(Box::pin(shutdown));
        self
    }
}

impl Future for ServeStreams<'_> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(start) = self.start.take() {
            self.running = start(std::mem::take(&mut self.settings));
        }
        self.running.as_mut().poll(cx)
    }
}

impl fmt::Debug for ServeStreams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServeStreams").finish_non_exhaustive()
    }
}

/// The default of `drain_timeout`.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of messages that are sent before the input is read again: the input may cancel the request that sends them.
const MESSAGES_IN_A_ROW: u32 = 16;

/// The settings of a server on a pair of streams.
pub(crate) struct Settings<'a> {
    /// The time for requests under way after the end of the input.
    pub(crate) drain_timeout: Duration,
    /// True if the server drains at the end of the input.
    pub(crate) drain_at_end: bool,
    /// `None` if only the input ends.
    pub(crate) shutdown: Option<BoxFuture<'a, ()>>,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Self { drain_timeout: DRAIN_TIMEOUT, drain_at_end: false, shutdown: None }
    }
}

/// Serves until the input has ended, and all that has begun has ended too.
pub(crate) async fn serve(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    server: impl MessageService,
    settings: Settings<'_>,
) -> io::Result<()> {
    let served = serve_requests(&server, input, output, settings).await;
    server.finished().await;
    served
}

/// Serves until all replies are written. The requests that are still under way then are dropped with this future.
async fn serve_requests(
    server: &impl MessageService,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    settings: Settings<'_>,
) -> io::Result<()> {
    let Settings { drain_timeout, drain_at_end, shutdown } = settings;
    let mut streams = LineStreams::new(input, output, shutdown.unwrap_or_else(|| Box::pin(pending())));
    let mut in_flight = InFlight::new(server.clone());
    let received = receive(&mut streams, &mut in_flight).await;
    if drain_at_end || streams.is_shut_down() {
        server.drain();
    }
    received?;
    in_flight.end_input();
    answer_the_rest(&mut streams, &mut in_flight, drain_timeout).await
}

/// Receives messages and answers them, until the end of the input.
async fn receive<S: MessageService>(
    streams: &mut LineStreams<'_, impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    in_flight: &mut InFlight<S>,
) -> io::Result<()> {
    let mut lines = LineBuffer::new(MAX_LINE);
    let mut in_a_row = 0;
    loop {
        tokio::select! {
            // Replies first: what is done leaves before more begins.
            biased;
            Some(end) = in_flight.replies.next(), if !in_flight.replies.is_empty() => {
                in_flight.deliver(end, streams).await?;
            }
            Some(()) = in_flight.notified.next(), if !in_flight.notified.is_empty() => {}
            () = &mut in_flight.session_messages => {
                in_flight.session_messages = Box::pin(pending());
            }
            message = poll_fn(|cx| in_flight.outbox.poll_pop(cx)) => {
                streams.send(message).await?;
                in_a_row += 1;
                if in_a_row < MESSAGES_IN_A_ROW {
                    continue;
                }
                in_a_row = 0;
                streams.read_more().now_or_never().transpose()?;
            }
            read = streams.read_more() => read?,
        }
        lines.push(&streams.read);
        streams.read.clear();
        while let Some(line) = lines.next_line().or_else(|| streams.is_at_eof().then(|| lines.finish())?) {
            for reply in in_flight.receive(line) {
                streams.send(reply.body).await?;
            }
        }
        if streams.is_over() {
            return Ok(());
        }
    }
}

/// Answers the requests under way after the end of the input, for this time at most.
async fn answer_the_rest<S: MessageService>(
    streams: &mut LineStreams<'_, impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    in_flight: &mut InFlight<S>,
    at_most: Duration,
) -> io::Result<()> {
    let mut late = pin!(tokio::time::sleep(at_most));
    loop {
        tokio::select! {
            // Replies first: those that are ready at the end of the time still leave.
            biased;
            Some(end) = in_flight.replies.next(), if !in_flight.replies.is_empty() => {
                in_flight.deliver(end, streams).await?;
            }
            Some(()) = in_flight.notified.next(), if !in_flight.notified.is_empty() => {}
            () = ready(()), if !in_flight.awaits_replies() => return Ok(()),
            () = &mut late => break,
            () = streams.shut_down() => break,
            message = poll_fn(|cx| in_flight.outbox.poll_pop(cx)) => streams.send(message).await?,
        }
    }
    tracing::warn!(open = in_flight.len(), "requests did not end within the drain time and were cancelled");
    Ok(())
}
