//! The settings of a server on a pair of streams.

use crate::{
    serve::stdio::serving::{Settings, serve},
    server::message_service::MessageService,
};
use futures_util::future::{BoxFuture, pending};
use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
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

/// A server on a pair of streams, which [`serve_streams`] or [`serve_stdio`](crate::serve::stdio::serve_stdio) has not started
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
    /// process at once. Default: `true` for [`serve_stdio`](crate::serve::stdio::serve_stdio), `false` for [`serve_streams`].
    pub fn drain_at_end(mut self, on: bool) -> Self {
        self.settings.drain_at_end = on;
        self
    }

    /// Serves until this future is ready, or until the input ends. When the future is ready, no more is read, and the server
    /// [drains](crate::Server::drain). Default: SIGTERM or SIGINT for [`serve_stdio`](crate::serve::stdio::serve_stdio), none for
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
