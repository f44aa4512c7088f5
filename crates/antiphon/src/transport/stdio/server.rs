//! A server on a pair of streams: its own standard input and output, or any other.

use super::framing::{Line, LineBuffer, MAX_LINE};
use crate::{
    server::{Begun, Caller, Outbox, Received, ReplyMessage, Server},
    transport::patient::Patient,
};
use antiphon_wire::{CancelledParams, ErrorCode, ErrorObject, RequestId, method, write_notification};
use futures_util::{
    FutureExt as _,
    future::{AbortHandle, Abortable, Aborted, BoxFuture},
    stream::{FuturesUnordered, StreamExt as _},
};
use std::{collections::HashMap, future::poll_fn, io, pin::pin, task::Poll, time::Duration};
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
pub async fn serve_stdio(server: Server) -> io::Result<()> {
    serve_streams(server, tokio::io::stdin(), tokio::io::stdout()).await
}

/// Serves on these streams until the input ends. Requests are answered concurrently, each as soon as it is done.
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
            if let Some(reply) = flight.take(server, line) {
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

/// Answers the request in this line.
async fn answer(server: Server, line: Vec<u8>, outbox: Outbox) -> ReplyMessage {
    let request = match server.read(&line) {
        Ok(Received::Request(request)) => request,
        Ok(Received::Legacy(message)) => return ReplyMessage::without_session(message),
        // It was a request when its id was read.
        Ok(Received::Notification(_)) => return ReplyMessage::error(None, &ErrorObject::internal()),
        Err(refused) => return refused,
    };
    let caller = Caller::default().with_outbox(&outbox);
    match server.begin(&request, &caller).await {
        Begun::Answered(reply) => reply,
        Begun::Open(subscription) => {
            // It may stay for days: what opened it does not.
            drop(request);
            drop(line);
            subscription.ended(&server).await
        }
    }
}

/// What a request came to.
struct Answered {
    reply: ReplyMessage,
    /// It was a subscription, and the server ends it.
    tears_down: bool,
}

/// > A server **MUST** send `notifications/cancelled` referencing a `subscriptions/listen` request ID when it tears down
/// > that subscription stream
///
/// It follows the response, which says that the end was a graceful one.
fn torn_down(id: &RequestId) -> io::Result<Vec<u8>> {
    let mut params = CancelledParams::new(id.clone());
    params.reason = Some("the server ended the subscription".to_owned());
    write_notification(method::CANCELLED, &params).map_err(io::Error::other)
}

/// A request that ended, where it left its messages, and its reply unless it was cancelled.
type Ended = (RequestId, Outbox, Result<Answered, Aborted>);

/// The requests under way: each has a handle by which it is cancelled.
#[derive(Default)]
struct InFlight {
    running: HashMap<RequestId, (AbortHandle, Outbox)>,
    /// What they send before their replies.
    outbox: Outbox,
    replies: FuturesUnordered<BoxFuture<'static, Ended>>,
}

impl InFlight {
    /// Begins what the line asks for, or answers it at once.
    fn take(&mut self, server: &Server, line: Line) -> Option<ReplyMessage> {
        let Line::Whole(line) = line else {
            let error = ErrorObject::new(
                ErrorCode::INVALID_REQUEST,
                format!("the message is longer than {MAX_LINE} bytes"),
            );
            return Some(ReplyMessage::error(None, &error));
        };
        let (id, listens) = match server.read(&line) {
            Ok(Received::Request(request)) => {
                (request.id.clone(), request.method == method::SUBSCRIPTIONS_LISTEN)
            }
            Ok(Received::Notification(notification)) => {
                if notification.method == method::CANCELLED {
                    self.cancel(notification.params.map(|params| params.get()));
                }
                return None;
            }
            Ok(Received::Legacy(message)) => return Some(ReplyMessage::without_session(message)),
            Err(reply) => return Some(reply),
        };
        // > The request ID **MUST NOT** match the ID of any other request the sender has issued and not yet received
        // > a response for.
        if self.running.contains_key(&id) {
            let error = ErrorObject::invalid_request("a request with this id is under way");
            return Some(ReplyMessage::error(Some(&id), &error));
        }
        let (handle, registration) = AbortHandle::new_pair();
        let outbox = self.outbox.for_another();
        self.running.insert(id.clone(), (handle, outbox.clone()));
        let server = server.clone();
        let reply = answer(server, line, outbox.clone());
        self.replies.push(Box::pin(async move {
            let answered = Abortable::new(reply, registration).await.map(|reply| {
                let tears_down = listens && !reply.failed;
                Answered { reply, tears_down }
            });
            (id, outbox, answered)
        }));
        None
    }

    /// Sends the reply to this request, behind what waits to be sent before it.
    async fn deliver(
        &mut self,
        id: &RequestId,
        answered: Answered,
        streams: &mut Streams<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    ) -> io::Result<()> {
        self.running.remove(id);
        while let Some(message) = self.outbox.pop() {
            streams.send(message).await?;
        }
        streams.send(answered.reply.body).await?;
        if answered.tears_down {
            streams.send(torn_down(id)?).await?;
        }
        Ok(())
    }

    /// > Invalid cancellation notifications **SHOULD** be ignored
    fn cancel(&mut self, params: Option<&str>) {
        let Some(Ok(cancelled)) = params.map(serde_json::from_str::<CancelledParams>) else { return };
        if let Some((handle, outbox)) = self.running.remove(&cancelled.request_id) {
            tracing::debug!(id = %cancelled.request_id, reason = cancelled.reason, "request cancelled");
            handle.abort();
            outbox.forget();
        }
    }
}
