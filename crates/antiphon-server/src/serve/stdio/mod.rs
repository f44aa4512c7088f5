//! A server on a pair of streams: its own standard input and output, or any other.

mod in_flight;
mod line_streams;

use crate::server::Server;
use antiphon_wire::framing::{LineBuffer, MAX_LINE};
use futures_util::{FutureExt as _, future::Aborted, stream::StreamExt as _};
use in_flight::InFlight;
use line_streams::LineStreams;
use std::{future::poll_fn, io, task::Poll};
use tokio::io::{AsyncRead, AsyncWrite};

/// The number of messages that are sent before the input is read again: the input may cancel the request that sends them.
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
    let mut streams = LineStreams::new(input, output);
    let mut lines = LineBuffer::new(MAX_LINE);
    let mut in_flight = InFlight::default();
    let mut in_a_row = 0;
    loop {
        tokio::select! {
            // Replies first: what needs no waiting is answered even if the input ends right behind it. What is left
            // waits in a handler, and `Limits::handlers` bounds those.
            biased;
            Some((id, outbox, answered)) = in_flight.replies.next(), if !in_flight.replies.is_empty() => {
                match answered {
                    Ok(answered) => in_flight.deliver(&id, answered, &mut streams).await?,
                    // > Servers [...] **MUST NOT** send any further messages for it.
                    //
                    // It may have left some while it was dropped.
                    Err(Aborted) => outbox.forget(),
                }
            }
            // What belongs to no request of a session is left while this is polled.
            () = &mut in_flight.telling => in_flight.telling = Box::pin(std::future::pending()),
            // Messages are left while handlers are polled, which has just happened.
            message = poll_fn(|_| in_flight.outbox.pop().map_or(Poll::Pending, Poll::Ready)) => {
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
            for reply in in_flight.take(server, line) {
                streams.send(reply.body).await?;
            }
        }
    }
}
