//! A request of a session, or a batch of them: its task, and the events of the response on its connection.

use crate::{
    identity::{Caller, RequestHead},
    outbox::{MessageKind, Outbox},
    reply::{ReplyKind, ReplyMessage},
    serve::{
        http::{
            auth::Authorized,
            body::{EventSource, Rejection},
            fields::Accepts,
            legacy::{
                session_table::OpenSession,
                streams::{Reader, StreamItem, Writer},
            },
            reply::{HttpReply, stream_response},
            request_body::RequestBody,
        },
        is_batch, read,
    },
    server::message_service::{MessageService, MessageSession},
};
use antiphon_wire::{ErrorObject, Incoming, ProtocolVersion, write_error};
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use http::{StatusCode, request::Parts};
use hyper::body::Bytes;
use serde_json::value::RawValue;
use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep};

/// The time after which the response begins as an event stream, even if no event was sent: the stream has an id, by which
/// the client can resume it when the connection breaks.
const BEGIN_WITHIN: Duration = Duration::from_secs(1);

/// Runs a request, or a batch that holds one, on its own task. Returns the response for its connection. The notifications of a batch that
/// belong to extensions have another task: the response waits for requests only.
///
/// The task has the body until the reply: a handler may be entered again, with the same arguments. So the body stays in
/// the [budget](crate::RequestBudget), and [`Limits::session_request_bytes`](crate::Limits::session_request_bytes) limits
/// what one session has of it.
///
/// > Disconnection **SHOULD NOT** be interpreted as the client cancelling its request.
pub(crate) async fn respond<S: MessageService>(
    server: &S,
    open: &OpenSession<S::Session>,
    parts: Parts,
    body: RequestBody,
    authorized: Authorized,
    accepts: Accepts,
    times: StreamTimes,
) -> HttpReply {
    let (writer, reader) = open.streams.open();
    let session = open.session.clone();
    let primes = session.version().has_priming_events();
    let outbox = open.outbox.sibling();
    let head = Arc::new(RequestHead { headers: parts.headers, extensions: parts.extensions });
    let body = Arc::new(body);
    if is_batch(&body) {
        let (server, session) = (server.clone(), session.clone());
        let (head, body) = (Arc::clone(&head), Arc::clone(&body));
        tokio::spawn(async move {
            // The error of a notification has no place in the response of a batch.
            let _ = notify(&server, &session, &body, &authorized.caller_of(&head)).await;
        });
    }
    let running = tokio::spawn(async move {
        let caller = authorized.caller_of(&head);
        // Without event streams, the request sends nothing before its reply, and cannot ask.
        let caller = if accepts.events { caller.with_outbox(&outbox) } else { caller };
        run::<S>(&session, &caller, &outbox, &body, writer).await
    });
    let prime =
        |events: SessionEvents, reader: &str| if primes { events.first(reader.to_owned()) } else { events };
    let beginning = times.priming(&reader);
    let first = poll_fn(|cx| reader.poll_read(cx));
    let first =
        if accepts.events { tokio::time::timeout(BEGIN_WITHIN, first).await } else { Ok(first.await) };
    let events = match first {
        Ok(StreamItem::Event(event, true)) => {
            let message = event.message();
            reader.forget();
            // The task ends with the last event.
            return HttpReply::json(match running.await {
                Ok(Some(ReplyKind::InsufficientScope(needed))) => {
                    ReplyMessage::with_missing_scopes(message.into(), needed)
                }
                _ => ReplyMessage::result(message.into()),
            });
        }
        Ok(StreamItem::Event(event, false)) => {
            prime(SessionEvents::new(Some(reader), times.keep_alive), &beginning).first(event.into_bytes())
        }
        // The stream closes at once, and the client resumes it.
        Ok(StreamItem::Closed) | Err(_) => {
            prime(SessionEvents::new(Some(reader), times.keep_alive), &beginning)
        }
        // The request was cancelled and has no response.
        Ok(StreamItem::Done) if !accepts.events => return HttpReply::Accepted,
        Ok(StreamItem::Done) => SessionEvents::new(None, times.keep_alive),
        Ok(StreamItem::Over) => return HttpReply::Rejection(session_not_found()),
    };
    HttpReply::Response(Box::new(stream_response(events)))
}

/// The keep-alive time of event streams, and the time after which clients reconnect.
#[derive(Clone, Copy)]
pub(crate) struct StreamTimes {
    pub(crate) keep_alive: Duration,
    pub(crate) retry: Duration,
}

impl StreamTimes {
    /// Returns the event that lets a client reconnect before any other event.
    ///
    /// > The server **SHOULD** immediately send an SSE event consisting of an event ID and an empty `data` field in order
    /// > to prime the client to reconnect
    pub(crate) fn priming(&self, reader: &Reader) -> String {
        format!("id: {}\nretry: {}\ndata: \n\n", reader.behind(), self.retry.as_millis())
    }
}

/// Returns the rejection of a session that is unknown, belongs to another caller, or has ended: the same for all three.
///
/// > The server **MAY** terminate the session at any time, after which it **MUST** respond to requests containing that
/// > session ID with HTTP 404 Not Found.
pub(crate) fn session_not_found() -> Rejection {
    let text = "There is no such session here: it has ended, or it lives on another instance. Begin another with \
                `initialize`, without Mcp-Session-Id";
    Rejection { unread: false, ..Rejection::new(StatusCode::NOT_FOUND, text) }
}

/// Writes what a request sends, then its reply. Returns the kind of the reply to a single request.
async fn run<S: MessageService>(
    session: &S::Session,
    caller: &Caller<'_>,
    outbox: &Outbox,
    body: &[u8],
    writer: Writer,
) -> Option<ReplyKind> {
    let mut reply = pin!(answer::<S>(session, body, caller));
    let mut answered = None;
    poll_fn(|cx| {
        // The waker is registered first: a message between the check and the registration would wake no task.
        outbox.wake(cx);
        if answered.is_none()
            && let Poll::Ready(reply) = reply.as_mut().poll(cx)
        {
            answered = Some(reply);
        }
        while writer.poll_room(cx).is_ready() {
            match outbox.pop_with_kind() {
                Some((kind, message)) => {
                    writer.write(&message, !matches!(kind, MessageKind::Progress | MessageKind::Log));
                }
                None if outbox.take_closing() => writer.close_reader(),
                None if answered.is_some() => return Poll::Ready(()),
                None => return Poll::Pending,
            }
        }
        Poll::Pending
    })
    .await;
    let (reply, kind) = answered.flatten().unzip();
    writer.finish(reply.as_deref());
    kind.flatten()
}

/// Returns the response, and its kind unless it is that of a batch; `None` if every request was cancelled.
async fn answer<S: MessageService>(
    session: &S::Session,
    body: &[u8],
    caller: &Caller<'_>,
) -> Option<(Vec<u8>, Option<ReplyKind>)> {
    match Incoming::parse(body) {
        Ok(Incoming::Request(request)) => {
            let reply = session.call(request, caller).await?;
            let kind = reply.kind().clone();
            Some((reply.body, Some(kind)))
        }
        // The body was read before: a request, or a batch.
        _ => Some((BatchService::<S>::Session(session).answer_all(body, caller).await?, None)),
    }
}

/// Runs the handlers of the notifications in a body that belong to extensions.
///
/// # Errors
/// The reply that says why the last one was not accepted.
pub(crate) async fn notify<S: MessageService>(
    server: &S,
    session: &S::Session,
    body: &[u8],
    caller: &Caller<'_>,
) -> Result<(), ReplyMessage> {
    let batch = if is_batch(body) { read(body).unwrap_or_default() } else { Vec::new() };
    let mut messages: Vec<&[u8]> = batch.iter().map(|message| message.get().as_bytes()).collect();
    if messages.is_empty() {
        messages.push(body);
    }
    let mut notified = Ok(());
    for message in messages {
        if let Ok(Incoming::Notification(notification)) = Incoming::parse(message)
            && server.has_notification(&notification.method)
        {
            notified = server.notify(&notification, Some(session), caller).await;
        }
    }
    notified
}

/// Passes on the notifications and responses of a batch. Returns whether the batch holds a request.
///
/// # Errors
/// The error to answer the whole batch with.
pub(crate) fn receive_unanswered(
    body: &[u8],
    mut receive: impl FnMut(Incoming<'_>),
) -> Result<bool, ErrorObject> {
    let mut has_request = false;
    for message in read(body)? {
        match Incoming::parse(message.get().as_bytes()) {
            Ok(Incoming::Request(_)) | Err(_) => has_request = true,
            Ok(message) => receive(message),
        }
    }
    Ok(has_request)
}

/// The part that answers the requests of a batch.
pub(crate) enum BatchService<'a, S: MessageService> {
    Session(&'a S::Session),
    /// A server, for requests of this version that belong to no session.
    Server(&'a S, &'a ProtocolVersion),
}

impl<S: MessageService> BatchService<'_, S> {
    /// Answers one message, if it is a request; `None` if it is none, or was cancelled.
    async fn answer(&self, message: &RawValue, caller: &Caller<'_>) -> Option<Vec<u8>> {
        let request = match Incoming::parse(message.get().as_bytes()) {
            Ok(Incoming::Request(request)) => request,
            Ok(_) => return None,
            Err(unreadable) => return Some(write_error(unreadable.id.as_ref(), &unreadable.error)),
        };
        // An outbox each: a request that is cancelled drops its own messages.
        let outbox = caller.outbox.map(Outbox::for_another);
        let caller = Caller { outbox: outbox.as_ref(), ..*caller };
        match self {
            Self::Session(session) => Some(session.call(request, &caller).await?.body),
            Self::Server(server, version) => {
                let version = ProtocolVersion::clone(version);
                Some(server.call_without_session(request, version, &caller).await.body)
            }
        }
    }

    /// Answers the requests of a batch concurrently. Returns an array of the responses in the order of the requests, or
    /// `None` if every request was cancelled.
    pub(crate) async fn answer_all(&self, body: &[u8], caller: &Caller<'_>) -> Option<Vec<u8>> {
        let messages = read(body).unwrap_or_default();
        let replies: Vec<BoxFuture<'_, Option<Vec<u8>>>> =
            messages.into_iter().map(|message| self.answer(message, caller).boxed()).collect();
        let replies: Vec<Vec<u8>> = join_all(replies).await.into_iter().flatten().collect();
        if replies.is_empty() {
            return None;
        }
        let mut array = b"[".to_vec();
        array.extend(replies.join(&b','));
        array.push(b']');
        Some(array)
    }
}

/// The events of one stream, until the stream or this connection ends.
pub(crate) struct SessionEvents {
    first: VecDeque<Bytes>,
    /// `None` once the stream has ended.
    reader: Option<Reader>,
    messages: Option<SessionMessages>,
    quiet: Pin<Box<Sleep>>,
    keep_alive: Duration,
    /// Ends the events when it resolves, such as at the expiry of the token.
    over: Option<BoxFuture<'static, ()>>,
}

/// The messages of a session that belong to no request. They are sent while a connection listens, and wait otherwise.
struct SessionMessages {
    sender: BoxFuture<'static, ()>,
    outbox: Outbox,
    writer: Writer,
    /// True once the server drains, or the session has ended.
    ended: bool,
}

impl SessionEvents {
    pub(crate) fn new(reader: Option<Reader>, keep_alive: Duration) -> Self {
        let quiet = Box::pin(tokio::time::sleep(keep_alive));
        Self { first: VecDeque::new(), reader, messages: None, quiet, keep_alive, over: None }
    }

    /// Ends the events when this future resolves.
    pub(crate) fn ending_with(self, over: BoxFuture<'static, ()>) -> Self {
        Self { over: Some(over), ..self }
    }

    /// Sends this event before all others.
    pub(crate) fn first(mut self, event: impl Into<Bytes>) -> Self {
        self.first.push_back(event.into());
        self
    }

    /// Adds the messages of the session that belong to no request.
    pub(crate) fn with_session_messages(
        mut self,
        session: &impl MessageSession,
        outbox: &Outbox,
        writer: Writer,
    ) -> Self {
        let (session, to) = (session.clone(), outbox.clone());
        let sender = Box::pin(async move { session.send_messages(&to).await });
        self.messages = Some(SessionMessages { sender, outbox: outbox.clone(), writer, ended: false });
        self
    }
}

impl EventSource for SessionEvents {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        // Polled first, so that a stream which is never silent ends as well.
        if self.over.as_mut().is_some_and(|over| over.as_mut().poll(cx).is_ready()) {
            (self.over, self.reader) = (None, None);
            self.first.clear();
        }
        if let Some(event) = self.first.pop_front() {
            return Poll::Ready(Some(event));
        }
        loop {
            let Some(reader) = &self.reader else { return Poll::Ready(None) };
            match reader.poll_read(cx) {
                Poll::Ready(StreamItem::Event(event, last)) => {
                    if last {
                        self.reader = None;
                    }
                    self.quiet.as_mut().reset(Instant::now() + self.keep_alive);
                    return Poll::Ready(Some(event.into_bytes()));
                }
                Poll::Ready(StreamItem::Done | StreamItem::Closed | StreamItem::Over) => self.reader = None,
                Poll::Pending => {
                    match self.messages.as_mut().map_or(Poll::Pending, |messages| messages.poll_write(cx)) {
                        Poll::Ready(true) => {}
                        Poll::Ready(false) => self.reader = None,
                        Poll::Pending => break,
                    }
                }
            }
        }
        ready!(self.quiet.as_mut().poll(cx));
        self.quiet.as_mut().reset(Instant::now() + self.keep_alive);
        Poll::Ready(Some(Bytes::from_static(b":\n\n")))
    }

    fn is_ended(&self) -> bool {
        self.first.is_empty() && self.reader.is_none()
    }
}

impl SessionMessages {
    /// Writes the next message; `false` when there will be no more.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if !self.ended {
            self.ended = self.sender.as_mut().poll(cx).is_ready();
        }
        match self.outbox.poll_pop(cx) {
            Poll::Ready(message) => {
                self.writer.write(&message, true);
                Poll::Ready(true)
            }
            Poll::Pending if self.ended => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::MAX_MESSAGES;
    use proptest::prelude::*;

    proptest! {
        /// Any input is read or rejected, and no batch has more messages than allowed.
        #[test]
        fn any_bytes_are_a_batch_or_not(bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            r#"[\[\]{},"a1: ]{0,200}"#.prop_map(String::into_bytes),
            prop::collection::vec(r#"1|\{"jsonrpc":"2.0","method":"m"\}"#, 0..80)
                .prop_map(|messages| format!("[{}]", messages.join(",")).into_bytes()),
        ]) {
            let mut heard = 0;
            let answered = receive_unanswered(&bytes, |_| heard += 1);
            prop_assert!(heard <= MAX_MESSAGES);
            prop_assert_eq!(answered.is_err(), read(&bytes).is_err());
            if let Ok(messages) = read(&bytes) {
                prop_assert!((1..=MAX_MESSAGES).contains(&messages.len()) && is_batch(&bytes));
            }
        }
    }
}
