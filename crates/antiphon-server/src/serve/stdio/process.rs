//! A server on its own standard input and output.
//!
//! Input and output have a thread each. The runtime waits for a read of [`tokio::io::Stdin`], and for a write of `Stdout`, before it
//! ends: a program would stay after a signal, until its client closes the pipe. These threads end with the process.

use crate::{
    serve::stdio::{ServeStreams, Settings, serve},
    server::message_service::MessageService,
};
use futures_util::future::BoxFuture;
use std::{
    future::{Future, pending},
    io::{self, Read as _, Write as _},
    pin::Pin,
    task::{Context, Poll, ready},
    thread,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
};

/// Returns a future that serves on standard input and output: until the input ends, or until SIGTERM or SIGINT (Ctrl-C).
/// Then the server [drains](crate::Server::drain), because the process ends: its tasks go to the next process at once, and
/// requests under way have [`drain_timeout`](ServeStreams::drain_timeout) to end.
///
/// > The server **MUST NOT** write anything to its `stdout` that is not a valid MCP message.
///
/// ```no_run
/// use antiphon::{serve::stdio::serve_stdio, server::Server};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("orders", "1.0").build()?;
/// serve_stdio(server).drain_timeout(Duration::from_secs(2)).await?;
/// # Ok(())
/// # }
/// ```
///
/// Standard input and output have a thread each, so that the runtime can end while one of them waits. The handlers of the two
/// signals stay installed, unless [`with_graceful_shutdown`](ServeStreams::with_graceful_shutdown) takes their place.
///
/// # Errors
/// If the streams fail.
///
/// # Panics
/// In a tokio runtime without I/O, where it cannot wait for signals.
pub fn serve_stdio(server: impl MessageService) -> ServeStreams<'static> {
    let start = |mut settings: Settings<'static>| {
        Box::pin(async move {
            let (input, output) = (StdInput::open()?, StdOutput::open()?);
            settings.shutdown.get_or_insert_with(|| Box::pin(stopped()));
            serve(input, output, server, settings).await
        }) as BoxFuture<'static, _>
    };
    ServeStreams::new(start).drain_at_end(true)
}

/// Returns a future that resolves at SIGTERM or SIGINT. The handlers are installed at once.
#[cfg(unix)]
pub(crate) fn stopped() -> impl Future<Output = ()> + Send {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    async move {
        match signals {
            (Ok(mut terminate), Ok(mut interrupt)) => {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            }
            // Without a handler, a signal ends the process.
            _ => pending().await,
        }
    }
}

/// Returns a future that resolves at Ctrl-C.
#[cfg(not(unix))]
pub(crate) fn stopped() -> impl Future<Output = ()> + Send {
    async {
        if tokio::signal::ctrl_c().await.is_err() {
            pending().await
        }
    }
}

/// The maximum number of bytes of one read or write.
const PIECE: usize = 64 * 1024;

/// Standard input.
pub(crate) struct StdInput {
    pieces: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// The last piece, and the number of its bytes that were taken.
    piece: (Vec<u8>, usize),
}

impl StdInput {
    pub(crate) fn open() -> io::Result<Self> {
        let (sender, pieces) = mpsc::channel(1);
        let read = move || {
            let mut buffer = vec![0; PIECE];
            loop {
                let piece = match io::stdin().read(&mut buffer) {
                    Ok(0) => return,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read.map(|count| buffer[..count].to_vec()),
                };
                let is_last = piece.is_err();
                if sender.blocking_send(piece).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("stdin".to_owned()).spawn(read)?;
        Ok(Self { pieces, piece: (Vec::new(), 0) })
    }
}

impl AsyncRead for StdInput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.piece.1 == self.piece.0.len() {
            match ready!(self.pieces.poll_recv(cx)) {
                Some(piece) => self.piece = (piece?, 0),
                None => return Poll::Ready(Ok(())),
            }
        }
        let (piece, taken) = &mut self.piece;
        let rest = &piece[*taken..];
        let rest = &rest[..rest.len().min(buffer.remaining())];
        buffer.put_slice(rest);
        *taken += rest.len();
        Poll::Ready(Ok(()))
    }
}

/// Standard output.
pub(crate) struct StdOutput {
    pieces: mpsc::Sender<Vec<u8>>,
    written: mpsc::Receiver<io::Result<()>>,
    is_writing: bool,
}

impl StdOutput {
    pub(crate) fn open() -> io::Result<Self> {
        let (pieces, mut receiver) = mpsc::channel::<Vec<u8>>(1);
        let (sender, written) = mpsc::channel(1);
        let write = move || {
            while let Some(piece) = receiver.blocking_recv() {
                let mut output = io::stdout().lock();
                let result = output.write_all(&piece).and_then(|()| output.flush());
                if sender.blocking_send(result).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("stdout".to_owned()).spawn(write)?;
        Ok(Self { pieces, written, is_writing: false })
    }

    /// Resolves when the last piece was written.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_writing {
            return Poll::Ready(Ok(()));
        }
        let written = ready!(self.written.poll_recv(cx));
        self.is_writing = false;
        Poll::Ready(written.unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into())))
    }
}

impl AsyncWrite for StdOutput {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_written(cx))?;
        let piece = &bytes[..bytes.len().min(PIECE)];
        // The thread has taken the last piece, so there is room.
        self.pieces.try_send(piece.to_vec()).map_err(|_gone| io::Error::from(io::ErrorKind::BrokenPipe))?;
        self.is_writing = true;
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_written(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}
