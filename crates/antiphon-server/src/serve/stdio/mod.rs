//! A server on a pair of streams: its own standard input and output, or any other.

mod in_flight;
mod line_streams;

use crate::{
    message_service::MessageService,
    serve::stdio::{in_flight::InFlight, line_streams::LineStreams},
};
use antiphon_wire::framing::{LineBuffer, MAX_LINE};
use futures_util::{FutureExt as _, future::Aborted, stream::StreamExt as _};

use std::{future::poll_fn, io};
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
pub async fn serve_stdio(server: impl MessageService) -> io::Result<()> {
    serve_streams(tokio::io::stdin(), tokio::io::stdout(), server).await
}

/// Serves on these streams until the input ends: requests of 2026-07-28, and, after an `initialize`, a session of an earlier
/// revision beside them. Requests are answered concurrently, each as soon as it is done.
///
/// No task is spawned: reading, the handlers and writing take turns in this future. Dropping the future cancels all
/// requests. The end of the input cancels the requests that wait. After the end of the input, the future waits for the steps
/// that run ([`Server::steps_ended`](crate::Server::steps_ended)), because the process may end with it.
///
/// # Security
/// The peer is the owner of the process ([`Caller::default`](crate::Caller)), also if the streams are a socket: no token is
/// verified, the peer needs no scopes, and no share of anonymous callers limits it. A transport for a network calls
/// [`MessageService`] itself, with [`Caller::remote`](crate::Caller::remote).
///
/// # Errors
/// If the streams fail, or if the client does not read for five minutes while a message waits to be written.
pub async fn serve_streams(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    server: impl MessageService,
) -> io::Result<()> {
    let served = serve_until_the_end(&server, input, output).await;
    server.finished().await;
    served
}

async fn serve_until_the_end(
    server: &impl MessageService,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut streams = LineStreams::new(input, output);
    let mut lines = LineBuffer::new(MAX_LINE);
    let mut in_flight = InFlight::new(server.clone());
    let mut in_a_row = 0;
    loop {
        tokio::select! {
            // Replies first: a request that needs no waiting is answered even if the input ends right after it. The others
            // wait in handlers, and `Limits::handlers` limits those.
            biased;
            Some((id, outbox, answered)) = in_flight.replies.next(), if !in_flight.replies.is_empty() => {
                match answered {
                    Ok(answered) => in_flight.deliver(&id, answered, &mut streams).await?,
                    // > Servers [...] **MUST NOT** send any further messages for it.
                    //
                    // The handler may have pushed messages while it was dropped.
                    Err(Aborted) => outbox.forget(),
                }
            }
            () = &mut in_flight.session_messages => {
                in_flight.session_messages = Box::pin(std::future::pending());
            }
            message = poll_fn(|cx| in_flight.outbox.poll_pop(cx)) => {
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
            for reply in in_flight.receive(line) {
                streams.send(reply.body).await?;
            }
        }
    }
}
