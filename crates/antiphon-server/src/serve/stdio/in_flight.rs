//! The requests in flight on one pair of streams, which carry one message per line, and the session, if one was opened.

use crate::{
    errors::refusal::Refusal,
    identity::Caller,
    outbox::Outbox,
    quota::{RequestBudget, RequestBytes},
    reply::ReplyMessage,
    request::receive::{Received, without_session},
    serve::{self, WriteTimeout},
    server::message_service::{CallOutcome, MessageService, MessageSession as _},
};
use antiphon_wire::{
    CancelledParams, ErrorCode, ErrorObject, Incoming, RequestId, escaped,
    framing::{Line, MAX_LINE},
    method, write_notification,
};
use futures_util::{
    future::{AbortHandle, Abortable, Aborted, BoxFuture},
    stream::FuturesUnordered,
};
use serde_json::value::RawValue;
use std::{collections::HashMap, future::pending, io, pin::pin, time::Duration};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// A line, or a message of a batch, with its part of the budget.
struct Message {
    line: Vec<u8>,
    reserved: RequestBytes,
}

/// Answers the request in this line; `None` if the request was cancelled. The line is read again: its first reader needs the id
/// before this future exists, and the request borrows from the line.
async fn answer<S: MessageService>(
    server: S,
    session: Option<S::Session>,
    Message { line, reserved }: Message,
    outbox: Outbox,
) -> Option<ReplyMessage> {
    let caller = Caller::default().with_outbox(&outbox);
    let request = match server.read(&line) {
        Ok(Received::Request(request)) => request,
        Ok(Received::Legacy(Incoming::Request(request))) => {
            return match session {
                Some(session) => session.call(request, &caller).await,
                None => Some(without_session(Incoming::Request(request)).into()),
            };
        }
        // The line was read as a request before.
        Ok(_) => return Some(ReplyMessage::error(None, &ErrorObject::internal())),
        Err(refused) => return Some(refused),
    };
    let offers = server.offers();
    let outcome = server.call(&offers, &request, &caller).await;
    Some(match outcome {
        CallOutcome::Reply(reply) => reply,
        CallOutcome::Open(subscription) => {
            // A subscription may stay open for days: the memory of its request is freed.
            drop((request, offers));
            drop((line, reserved));
            subscription.await
        }
    })
}

/// A request that was not cancelled by a notification on the stream itself.
pub(crate) struct Completed {
    /// `None` if the request was cancelled in its session.
    reply: Option<ReplyMessage>,
    /// True if the request was a subscription that the server ends.
    closes_subscription: bool,
}

/// > A server **MUST** send `notifications/cancelled` referencing a `subscriptions/listen` request ID when it tears down
/// > that subscription stream
///
/// The notification follows the response, which says that the end was graceful.
fn subscription_closed(id: &RequestId) -> io::Result<Vec<u8>> {
    let mut params = CancelledParams::new(id.clone());
    params.reason = Some("the server ended the subscription".to_owned());
    write_notification(method::CANCELLED, &params).map_err(io::Error::other)
}

/// The end of a request: its id, its outbox, and its reply unless it was cancelled.
pub(crate) type RequestEnd = (RequestId, Outbox, Result<Completed, Aborted>);

/// The parts of a request in flight by which it is cancelled.
struct InFlightRequest {
    kind: RequestKind,
    handle: AbortHandle,
    outbox: Outbox,
}

/// The kind of a request. It decides who answers the request, and what follows the reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    Call,
    Subscription,
    InSession,
}

/// The requests in flight, by their ids.
pub(crate) struct InFlight<S: MessageService> {
    server: S,
    budget: RequestBudget,
    requests: HashMap<RequestId, InFlightRequest>,
    /// The messages before the replies, of all requests.
    pub(crate) outbox: Outbox,
    pub(crate) replies: FuturesUnordered<BoxFuture<'static, RequestEnd>>,
    /// The handlers of notifications that run.
    pub(crate) notified: FuturesUnordered<BoxFuture<'static, ()>>,
    /// The session, after `initialize`. A further `initialize` replaces it.
    session: Option<S::Session>,
    /// The session before, which has ended.
    previous: Option<S::Session>,
    /// Puts the messages of the session that belong to no request into the outbox.
    pub(crate) session_messages: BoxFuture<'static, ()>,
}

impl<S: MessageService> InFlight<S> {
    pub(crate) fn new(server: S) -> Self {
        Self {
            budget: server.request_budget(),
            server,
            requests: HashMap::new(),
            outbox: Outbox::default(),
            replies: FuturesUnordered::new(),
            notified: FuturesUnordered::new(),
            session: None,
            previous: None,
            session_messages: Box::pin(pending()),
        }
    }

    /// Processes one line. Returns the replies that need no waiting.
    pub(crate) fn receive(&mut self, line: Line) -> Vec<ReplyMessage> {
        let Line::Whole(line) = line else {
            let error = ErrorObject::new(
                ErrorCode::INVALID_REQUEST,
                format!("the message is longer than {MAX_LINE} bytes"),
            );
            return vec![ReplyMessage::error(None, &error)];
        };
        if !self.has_batches() || !serve::is_batch(&line) {
            return self.receive_one(line, true).into_iter().collect();
        }
        // Each request has a reply of its own, as soon as it is done.
        match serve::read(&line) {
            Ok(messages) => messages
                .into_iter()
                .filter_map(|message| self.receive_one(message.get().as_bytes().to_vec(), false))
                .collect(),
            Err(error) => vec![ReplyMessage::error(None, &error)],
        }
    }

    fn has_batches(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.version().has_batches())
    }

    /// `alone`: the message is not part of a batch.
    fn receive_one(&mut self, line: Vec<u8>, alone: bool) -> Option<ReplyMessage> {
        let (id, kind) = match self.server.read(&line) {
            Ok(Received::Request(request)) if request.method == method::SUBSCRIPTIONS_LISTEN => {
                (request.id.clone(), RequestKind::Subscription)
            }
            Ok(Received::Request(request)) => (request.id.clone(), RequestKind::Call),
            Ok(Received::Notification(notification)) => {
                self.notify(&notification);
                if self.server.has_notification(&notification.method) {
                    self.begin_notification(line);
                }
                return None;
            }
            Ok(Received::Legacy(message)) => match (message, &self.session) {
                // > The `initialize` request **MUST NOT** be part of a JSON-RPC batch
                (Incoming::Request(request), _) if alone && request.method == method::INITIALIZE => {
                    return Some(self.initialize(request));
                }
                (Incoming::Request(request), Some(_)) => (request.id, RequestKind::InSession),
                (Incoming::Response(response), Some(session)) => {
                    return session.respond(response, &Caller::default()).err();
                }
                // > The client **SHOULD NOT** send requests other than pings before the server has responded to the
                // > `initialize` request.
                (Incoming::Request(request), None) if request.method == method::PING => {
                    return Some(ReplyMessage::pong(&request.id));
                }
                (message, _) => return Some(without_session(message).into()),
            },
            Err(reply) => return Some(reply),
        };
        // > The request ID **MUST NOT** match the ID of any other request the sender has issued and not yet received
        // > a response for.
        if self.requests.contains_key(&id) {
            let error = ErrorObject::invalid_request("a request with this id is under way");
            return Some(ReplyMessage::error(Some(&id), &error));
        }
        let mut reserved = RequestBytes::default();
        if self.budget.reserve(&mut reserved, line.len(), MAX_LINE, &Caller::default()).is_err() {
            let error = Refusal::Busy.to_error();
            return Some(match kind {
                RequestKind::InSession => ReplyMessage::session_error(&id, &error),
                _ => ReplyMessage::error(Some(&id), &error),
            });
        }
        self.begin(id, kind, Message { line, reserved });
        None
    }

    /// Begins to run the handler of a notification that belongs to an extension.
    fn begin_notification(&mut self, line: Vec<u8>) {
        let mut reserved = RequestBytes::default();
        if self.budget.reserve(&mut reserved, line.len(), MAX_LINE, &Caller::default()).is_err() {
            tracing::debug!("a notification was dropped: too many bytes of requests wait");
            return;
        }
        let (server, session) = (self.server.clone(), self.session.clone());
        self.notified.push(Box::pin(async move {
            let _reserved = reserved;
            let Ok(Received::Notification(notification)) = server.read(&line) else { return };
            let notified = server.notify(&notification, session.as_ref(), &Caller::default()).await;
            if let Err(refused) = notified {
                let (method, reply) = (escaped(&notification.method), String::from_utf8_lossy(&refused.body));
                tracing::debug!(method = ?method, reply = ?escaped(&*reply), "a notification was not accepted");
            }
        }));
    }

    fn begin(&mut self, id: RequestId, kind: RequestKind, message: Message) {
        let (handle, registration) = AbortHandle::new_pair();
        let outbox = self.outbox.for_another();
        self.requests.insert(id.clone(), InFlightRequest { kind, handle, outbox: outbox.clone() });
        let session = self.session.clone().filter(|_| kind == RequestKind::InSession);
        let reply = answer(self.server.clone(), session, message, outbox.clone());
        self.replies.push(Box::pin(async move {
            let answered = Abortable::new(reply, registration).await.map(|reply| {
                let failed = reply.as_ref().is_none_or(ReplyMessage::is_error);
                Completed { reply, closes_subscription: kind == RequestKind::Subscription && !failed }
            });
            (id, outbox, answered)
        }));
    }

    /// Opens a session. It replaces the session of these streams, if there is one: bridges pass several clients on to one
    /// child, one after another.
    fn initialize(&mut self, request: antiphon_wire::Request<'_>) -> ReplyMessage {
        self.end_session();
        let (session, reply) = match self.server.initialize(request, &Caller::default()) {
            Ok(opened) => opened,
            Err(reply) => return reply,
        };
        if let Some(previous) = self.previous.take() {
            session.follows(&previous);
        }
        let (sender, outbox) = (session.clone(), self.outbox.for_another());
        self.session_messages = Box::pin(async move { sender.send_messages(&outbox).await });
        self.session = Some(session);
        reply
    }

    /// Ends the session and its requests in flight. Their replies are not sent: the next client may use the same ids.
    fn end_session(&mut self) {
        let Some(session) = self.session.take() else { return };
        session.end();
        self.session_messages = Box::pin(pending());
        for (_, request) in self.requests.extract_if(|_, request| request.kind == RequestKind::InSession) {
            request.handle.abort();
            request.outbox.forget();
        }
        self.previous = Some(session);
    }

    /// Begins the time after the end of the input: the client answers no questions any more.
    pub(crate) fn end_input(&self) {
        if let Some(session) = &self.session {
            session.input_ended();
        }
    }

    /// Returns whether replies are awaited after the end of the input. A subscription ends only if the server drains.
    pub(crate) fn awaits_replies(&self) -> bool {
        let is_awaited = |request: &InFlightRequest| {
            request.kind != RequestKind::Subscription || self.server.is_draining()
        };
        !self.notified.is_empty() || self.requests.values().any(is_awaited)
    }

    /// Returns the number of requests in flight.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Sends the messages that wait, then the reply to this request, unless it was cancelled.
    pub(crate) async fn deliver(
        &mut self,
        (id, outbox, answered): RequestEnd,
        streams: &mut LineStreams<'_, impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    ) -> io::Result<()> {
        let Ok(completed) = answered else {
            // > Servers [...] **MUST NOT** send any further messages for it.
            //
            // The handler may have pushed messages while it was dropped.
            outbox.forget();
            return Ok(());
        };
        self.requests.remove(&id);
        while let Some(message) = self.outbox.pop() {
            streams.send(message).await?;
        }
        if let Some(reply) = completed.reply {
            streams.send(reply.body).await?;
        }
        if completed.closes_subscription {
            streams.send(subscription_closed(&id)?).await?;
        }
        Ok(())
    }

    fn notify(&mut self, notification: &antiphon_wire::Notification<'_>) {
        // The session cancels its own requests: it may have to cancel asks of theirs first.
        let is_cancelled = self.session.as_ref().is_some_and(|session| session.notify(notification));
        if notification.method == method::CANCELLED && !is_cancelled {
            self.cancel(notification.params.map(RawValue::get));
        }
    }

    /// > Invalid cancellation notifications **SHOULD** be ignored
    ///
    /// A request of a session that has not begun there is cancelled here.
    fn cancel(&mut self, params: Option<&str>) {
        let Some(Ok(cancelled)) = params.map(serde_json::from_str::<CancelledParams>) else { return };
        let id = &cancelled.request_id;
        if let Some(InFlightRequest { handle, outbox, .. }) = self.requests.remove(id) {
            let reason = cancelled.reason.as_deref().map(|text| tracing::field::debug(escaped(text)));
            tracing::debug!(id = %escaped(&id), reason, "request cancelled");
            handle.abort();
            outbox.forget();
        }
    }
}

/// The time in which the client must read while a line waits to be written. Long: a client may be stopped in a debugger.
const WRITE_TIME: Duration = Duration::from_secs(5 * 60);

/// The same time after the end of the input.
const WRITE_TIME_AT_END: Duration = Duration::from_secs(5);

/// The number of bytes that are read ahead.
const READ_AHEAD: usize = 64 * 1024;

/// The streams of one client, with what was read ahead. The shutdown ends the input too.
pub(crate) struct LineStreams<'a, I, O> {
    input: I,
    output: WriteTimeout<O>,
    /// The bytes that were read and not yet processed.
    pub(crate) read: Vec<u8>,
    shutdown: BoxFuture<'a, ()>,
    /// `None` before the end of the input.
    end: Option<InputEnd>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum InputEnd {
    Eof,
    Shutdown,
}

impl InputEnd {
    fn after_read(count: usize) -> Option<Self> {
        (count == 0).then_some(Self::Eof)
    }
}

impl<'a, I: AsyncRead + Unpin, O: AsyncWrite + Unpin> LineStreams<'a, I, O> {
    pub(crate) fn new(input: I, output: O, shutdown: BoxFuture<'a, ()>) -> Self {
        let (output, read) = (WriteTimeout::new(output, WRITE_TIME), Vec::with_capacity(READ_AHEAD));
        Self { input, output, read, shutdown, end: None }
    }

    /// Reads more bytes, unless some wait to be processed or the input has ended. Bytes that were read ahead while a line
    /// was written come first: there may be no others.
    pub(crate) async fn read_more(&mut self) -> io::Result<()> {
        if self.end.is_none() && self.read.is_empty() {
            self.end = tokio::select! {
                // An input that is always ready does not delay the shutdown.
                biased;
                () = &mut self.shutdown => Some(InputEnd::Shutdown),
                count = self.input.read_buf(&mut self.read) => InputEnd::after_read(count?),
            };
        }
        Ok(())
    }

    /// Returns whether the input has ended, and all of it was processed.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some() && self.read.is_empty()
    }

    /// Returns the same, but not after a shutdown, which may have come in the middle of a line.
    pub(crate) fn is_at_eof(&self) -> bool {
        self.is_over() && !self.is_shut_down()
    }

    /// Returns whether the shutdown has ended the input.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.end == Some(InputEnd::Shutdown)
    }

    /// Resolves at a shutdown after the end of the input. Not to be awaited again after that.
    pub(crate) async fn shut_down(&mut self) {
        if self.is_shut_down() {
            return pending().await;
        }
        (&mut self.shutdown).await;
    }

    /// Writes one line. While the write waits, input is read ahead: after the end of the input the write has less time.
    pub(crate) async fn send(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        let Self { input, output, read, shutdown, end } = self;
        let mut written = pin!(async {
            line.push(b'\n');
            output.write_all(&line).await?;
            output.flush().await
        });
        while end.is_none() {
            tokio::select! {
                biased;
                written = &mut written => return written,
                () = &mut *shutdown => *end = Some(InputEnd::Shutdown),
                count = input.read_buf(read), if read.len() < READ_AHEAD => *end = InputEnd::after_read(count?),
            }
        }
        let late = |_elapsed| io::Error::new(io::ErrorKind::TimedOut, "the client does not read any more");
        tokio::time::timeout(WRITE_TIME_AT_END, written).await.map_err(late)?
    }
}
