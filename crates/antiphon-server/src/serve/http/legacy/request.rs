//! A request of a session: its task, and the response on its connection.

use crate::{
    identity::{caller::Caller, head::RequestHead},
    outbox::{MessageKind, Outbox},
    reply::{ReplyKind, ReplyMessage},
    serve::http::{
        accept::Accepts,
        auth::Authorized,
        legacy::{
            batch::BatchService,
            session_events::SessionEvents,
            session_table::OpenSession,
            streams::{Reader, StreamItem, Writer},
        },
        rejection::Rejection,
        reply::{HttpReply, stream_response},
        request_body::RequestBody,
    },
    server::message_service::{MessageService, MessageSession as _},
};
use antiphon_wire::Incoming;
use http::{StatusCode, request::Parts};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

/// The time after which the response begins as an event stream, even if no event was sent: the stream has an id, by which
/// the client can resume it when the connection breaks.
const BEGIN_WITHIN: Duration = Duration::from_secs(1);

/// Runs a request, or a batch that holds one, on its own task. Returns the response for its connection.
///
/// The task has the body until the reply: a handler may be entered again, with the same arguments. So the body stays in
/// the [budget](crate::RequestBudget), and [`Limits::session_request_bytes`](crate::Limits::session_request_bytes) limits
/// what one session has of it.
///
/// > Disconnection **SHOULD NOT** be interpreted as the client cancelling its request.
pub(crate) async fn respond<S: MessageService>(
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
    let running = tokio::spawn(async move {
        let head = Arc::new(RequestHead { headers: parts.headers, extensions: parts.extensions });
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
