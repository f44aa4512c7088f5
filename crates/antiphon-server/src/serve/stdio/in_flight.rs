//! The requests under way on one pair of streams, and its session, if there is one.

use crate::{
    Begun, Caller, Outbox, Received, ReplyMessage, Server, Session,
    serve::{batch, stdio::line_streams::LineStreams},
};
use antiphon_wire::framing::{Line, MAX_LINE};
use antiphon_wire::{
    CancelledParams, ErrorCode, ErrorObject, Incoming, RequestId, method, write_notification,
};
use futures_util::{
    future::{AbortHandle, Abortable, Aborted, BoxFuture},
    stream::FuturesUnordered,
};
use serde_json::value::RawValue;
use std::{collections::HashMap, io};
use tokio::io::{AsyncRead, AsyncWrite};

/// Answers the request in this line; `None` if that was cancelled.
async fn answer(
    server: Server,
    session: Option<Session>,
    line: Vec<u8>,
    outbox: Outbox,
) -> Option<ReplyMessage> {
    let caller = Caller::default().with_outbox(&outbox);
    let request = match server.read(&line) {
        Ok(Received::Request(request)) => request,
        Ok(Received::Legacy(Incoming::Request(request))) => {
            return match session {
                Some(session) => session.answer(&server, request, &caller).await,
                None => Some(Server::refuse_outside_of_session(Incoming::Request(request))),
            };
        }
        // It was a request when its id was read.
        Ok(_) => return Some(ReplyMessage::error(None, &ErrorObject::internal())),
        Err(refused) => return Some(refused),
    };
    Some(match server.begin(&request, &caller).await {
        Begun::Answered(reply) => reply,
        Begun::Open(subscription) => {
            // It may stay for days: what opened it does not.
            drop(request);
            drop(line);
            server.ended(subscription).await
        }
    })
}

/// What a request came to.
pub(crate) struct Answered {
    /// `None`: it was cancelled in its session.
    reply: Option<ReplyMessage>,
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
pub(crate) type Ended = (RequestId, Outbox, Result<Answered, Aborted>);

/// One request under way.
struct Running {
    handle: AbortHandle,
    outbox: Outbox,
}

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Request,
    Subscription,
    OfSession,
}

/// The requests under way: each has a handle by which it is cancelled.
pub(crate) struct InFlight {
    running: HashMap<RequestId, Running>,
    /// What they send before their replies.
    pub(crate) outbox: Outbox,
    pub(crate) replies: FuturesUnordered<BoxFuture<'static, Ended>>,
    /// From `initialize` on.
    session: Option<Session>,
    /// Leaves in the outbox what belongs to no request of the session.
    pub(crate) telling: BoxFuture<'static, ()>,
}

impl Default for InFlight {
    fn default() -> Self {
        Self {
            running: HashMap::new(),
            outbox: Outbox::default(),
            replies: FuturesUnordered::new(),
            session: None,
            telling: Box::pin(std::future::pending()),
        }
    }
}

impl InFlight {
    /// Begins what the line asks for, or answers it at once.
    pub(crate) fn take(&mut self, server: &Server, line: Line) -> Vec<ReplyMessage> {
        let Line::Whole(line) = line else {
            let error = ErrorObject::new(
                ErrorCode::INVALID_REQUEST,
                format!("the message is longer than {MAX_LINE} bytes"),
            );
            return vec![ReplyMessage::error(None, &error)];
        };
        if !self.has_batches() || !batch::is_batch(&line) {
            return self.take_one(server, line).into_iter().collect();
        }
        // Each is answered by itself, as soon as it is done.
        match batch::read(&line) {
            Ok(messages) => messages
                .into_iter()
                .filter_map(|message| self.take_one(server, message.get().as_bytes().to_vec()))
                .collect(),
            Err(error) => vec![ReplyMessage::error(None, &error)],
        }
    }

    fn has_batches(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.version().has_batches())
    }

    fn take_one(&mut self, server: &Server, line: Vec<u8>) -> Option<ReplyMessage> {
        let (id, kind) = match server.read(&line) {
            Ok(Received::Request(request)) if request.method == method::SUBSCRIPTIONS_LISTEN => {
                (request.id.clone(), Kind::Subscription)
            }
            Ok(Received::Request(request)) => (request.id.clone(), Kind::Request),
            Ok(Received::Notification(notification)) => {
                self.hear(&notification);
                return None;
            }
            Ok(Received::Legacy(message)) => match (message, &self.session) {
                (Incoming::Request(request), Some(_)) => (request.id, Kind::OfSession),
                (Incoming::Response(response), Some(session)) => {
                    session.take_response(response);
                    return None;
                }
                (Incoming::Request(request), None) if request.method == method::INITIALIZE => {
                    return Some(self.initialize(server, &request));
                }
                // > The client **SHOULD NOT** send requests other than pings before the server has responded to the
                // > `initialize` request.
                (Incoming::Request(request), None) if request.method == method::PING => {
                    return Some(Session::pong(&request.id));
                }
                (message, _) => return Some(Server::refuse_outside_of_session(message)),
            },
            Err(reply) => return Some(reply),
        };
        // > The request ID **MUST NOT** match the ID of any other request the sender has issued and not yet received
        // > a response for.
        if self.running.contains_key(&id) {
            let error = ErrorObject::invalid_request("a request with this id is under way");
            return Some(ReplyMessage::error(Some(&id), &error));
        }
        self.begin(server, id, kind, line);
        None
    }

    fn begin(&mut self, server: &Server, id: RequestId, kind: Kind, line: Vec<u8>) {
        let (handle, registration) = AbortHandle::new_pair();
        let outbox = self.outbox.for_another();
        self.running.insert(id.clone(), Running { handle, outbox: outbox.clone() });
        let session = self.session.clone().filter(|_| kind == Kind::OfSession);
        let reply = answer(server.clone(), session, line, outbox.clone());
        self.replies.push(Box::pin(async move {
            let answered = Abortable::new(reply, registration).await.map(|reply| {
                let failed = reply.as_ref().is_none_or(ReplyMessage::is_error);
                Answered { reply, tears_down: kind == Kind::Subscription && !failed }
            });
            (id, outbox, answered)
        }));
    }

    fn initialize(&mut self, server: &Server, request: &antiphon_wire::Request<'_>) -> ReplyMessage {
        let (session, reply) = match server.initialize(request, &Caller::default()) {
            Ok(opened) => opened,
            Err(reply) => return reply,
        };
        let (teller, outbox) = (session.clone(), self.outbox.for_another());
        self.telling = Box::pin(async move { teller.tell(&outbox).await });
        self.session = Some(session);
        reply
    }

    /// Sends the reply to this request, behind what waits to be sent before it.
    pub(crate) async fn deliver(
        &mut self,
        id: &RequestId,
        answered: Answered,
        streams: &mut LineStreams<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    ) -> io::Result<()> {
        self.running.remove(id);
        while let Some(message) = self.outbox.pop() {
            streams.send(message).await?;
        }
        if let Some(reply) = answered.reply {
            streams.send(reply.body).await?;
        }
        if answered.tears_down {
            streams.send(torn_down(id)?).await?;
        }
        Ok(())
    }

    fn hear(&mut self, notification: &antiphon_wire::Notification<'_>) {
        // The session cancels what runs in it, and may still have to take back what it asked.
        let is_heard = self.session.as_ref().is_some_and(|session| session.hear(notification));
        if notification.method == method::CANCELLED && !is_heard {
            self.cancel(notification.params.map(RawValue::get));
        }
    }

    /// > Invalid cancellation notifications **SHOULD** be ignored
    ///
    /// One of a session is cancelled here if it has not begun there.
    fn cancel(&mut self, params: Option<&str>) {
        let Some(Ok(cancelled)) = params.map(serde_json::from_str::<CancelledParams>) else { return };
        let id = &cancelled.request_id;
        if let Some(Running { handle, outbox }) = self.running.remove(id) {
            tracing::debug!(%id, reason = cancelled.reason, "request cancelled");
            handle.abort();
            outbox.forget();
        }
    }
}
