//! One pair of streams, from its first line to the end of its last request.

use crate::{
    serve::stdio::{in_flight::InFlight, line_streams::LineStreams},
    server::message_service::MessageService,
};
use antiphon_wire::framing::{LineBuffer, MAX_LINE};
use futures_util::{FutureExt as _, future::BoxFuture, stream::StreamExt as _};
use std::{
    future::{pending, poll_fn, ready},
    io,
    pin::pin,
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite};

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
            () = ready(()), if !in_flight.awaits_replies() => return Ok(()),
            () = &mut late => break,
            () = streams.shut_down() => break,
            message = poll_fn(|cx| in_flight.outbox.poll_pop(cx)) => streams.send(message).await?,
        }
    }
    tracing::warn!(open = in_flight.len(), "requests did not end within the drain time and were cancelled");
    Ok(())
}
