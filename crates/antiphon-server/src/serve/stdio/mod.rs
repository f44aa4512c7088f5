//! A server on a pair of streams: its own standard input and output, or any other.

mod flight;

use crate::{serve::patient::Patient, server::Server};
use antiphon_wire::framing::{LineBuffer, MAX_LINE};
use flight::InFlight;
use futures_util::{FutureExt as _, future::Aborted, stream::StreamExt as _};
use std::{future::poll_fn, io, pin::pin, task::Poll, time::Duration};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// How long the client may leave its end unread while something waits to be written. Long: it may be stopped in a
/// debugger.
const WRITE_TIME: Duration = Duration::from_secs(5 * 60);

/// How long it may do so once the input has ended.
const WRITE_TIME_AT_END: Duration = Duration::from_secs(5);

/// So many bytes are read before they are looked at.
const READ_AHEAD: usize = 64 * 1024;

/// So many messages are sent before the input is looked at, which may cancel what sends them.
const MESSAGES_IN_A_ROW: u32 = 16;

/// Serves on standard input and output until the input ends.
///
/// > The server **MUST NOT** write anything to its `stdout` that is not a valid MCP message.
///
/// # Errors
/// If the streams fail.
#[cfg(feature = "stdio")]
pub async fn serve_stdio(server: Server) -> io::Result<()> {
    serve_streams(server, tokio::io::stdin(), tokio::io::stdout()).await
}

/// Serves on these streams until the input ends: requests that speak for themselves, and, from an `initialize` on, a session
/// of an earlier revision beside them. Requests are answered concurrently, each as soon as it is done.
///
/// No task and no channel: reading, the handlers and writing take turns in this future. Dropping it cancels all, and so
/// does the end of the input, but for replies that need no waiting. Once the input has ended, this waits for the steps that
/// ran then ([`Server::steps_ended`]): the process may end with it.
///
/// # Errors
/// If the streams fail, or if the client does not read for five minutes while something waits to be written.
pub async fn serve_streams(
    server: Server,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let served = serve_until_the_end(&server, input, output).await;
    server.steps_ended().await;
    served
}

async fn serve_until_the_end(
    server: &Server,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut streams = Streams {
        input,
        output: Patient::new(output, WRITE_TIME),
        read: Vec::with_capacity(READ_AHEAD),
        ended: false,
    };
    let mut lines = LineBuffer::new(MAX_LINE);
    let mut flight = InFlight::default();
    let mut in_a_row = 0;
    loop {
        tokio::select! {
            // Replies first: what needs no waiting is answered even if the input ends right behind it. What is left
            // waits in a handler, and `Limits::handlers` bounds those.
            biased;
            Some((id, outbox, answered)) = flight.replies.next(), if !flight.replies.is_empty() => {
                match answered {
                    Ok(answered) => flight.deliver(&id, answered, &mut streams).await?,
                    // > Servers [...] **MUST NOT** send any further messages for it.
                    //
                    // It may have left some while it was dropped.
                    Err(Aborted) => outbox.forget(),
                }
            }
            // What belongs to no request of a session is left while this is polled.
            () = &mut flight.telling => flight.telling = Box::pin(std::future::pending()),
            // Messages are left while handlers are polled, which has just happened.
            message = poll_fn(|_| flight.outbox.pop().map_or(Poll::Pending, Poll::Ready)) => {
                streams.send(message).await?;
                in_a_row += 1;
                if in_a_row < MESSAGES_IN_A_ROW {
                    continue;
                }
                in_a_row = 0;
                streams.read_more().now_or_never().transpose()?;
                if streams.is_over() {
                    return Ok(());
                }
            }
            // > Servers **SHOULD** exit promptly when their standard input is closed or reads return end-of-file.
            read = streams.read_more() => {
                read?;
                if streams.is_over() {
                    return Ok(());
                }
            }
        }
        lines.push(&streams.read);
        streams.read.clear();
        while let Some(line) = lines.next_line() {
            for reply in flight.take(server, line) {
                streams.send(reply.body).await?;
            }
        }
    }
}

/// The client's end, from here.
struct Streams<I, O> {
    input: I,
    output: Patient<O>,
    /// What was read and not yet looked at.
    read: Vec<u8>,
    /// Nothing more comes.
    ended: bool,
}

impl<I: AsyncRead + Unpin, O: AsyncWrite + Unpin> Streams<I, O> {
    /// Something that was not looked at, unless the input has ended. What was read ahead while a line was written is
    /// enough: nothing may follow it.
    async fn read_more(&mut self) -> io::Result<()> {
        if !self.ended && self.read.is_empty() {
            self.ended = self.input.read_buf(&mut self.read).await? == 0;
        }
        Ok(())
    }

    /// Whether the input has ended, and all of it was looked at.
    fn is_over(&self) -> bool {
        self.ended && self.read.is_empty()
    }

    /// Writes this line. While that waits, something is read ahead: the input may end, and then nobody waits for long.
    async fn send(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        let Self { input, output, read, ended } = self;
        let mut written = pin!(async {
            line.push(b'\n');
            output.write_all(&line).await?;
            output.flush().await
        });
        while !*ended && read.len() < READ_AHEAD {
            tokio::select! {
                biased;
                written = &mut written => return written,
                more = input.read_buf(read) => *ended = more? == 0,
            }
        }
        if !*ended {
            return written.await;
        }
        let late =
            |_elapsed| io::Error::new(io::ErrorKind::TimedOut, "the client has gone and does not read");
        tokio::time::timeout(WRITE_TIME_AT_END, written).await.map_err(late)?
    }
}
