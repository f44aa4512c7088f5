//! The life of a request on a shared channel, without any I/O.
//!
//! ```text
//! admit -> queued -> sent -> settled        the response arrived
//!             |        |---> failed         the connection ended, or a response to an unknown request was lost
//!             |        `---> abandoned      the caller is gone: the server gets a cancellation
//!             `------------> abandoned      the caller is gone: the request is never sent
//! ```

use crate::transport::{
    IncomingNotification, OutgoingRequest, ServerMessage, ServerReply, TransportError,
    TransportErrorKind::{Closed, TooLarge, Unreachable},
};
use antiphon_wire::{
    ErrorCode, ErrorObject, RequestId, lock::Lock, method, write_error, write_notification, write_result,
};
use serde::Serialize;
use serde_json::json;
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::{Notify, mpsc, oneshot};

/// The maximum size of the notifications that wait for one request's caller, in bytes. More are dropped; the response never
/// is.
const MAX_WAITING: usize = 16 * 1024 * 1024;

/// The maximum number of messages that wait for the session and belong to no request.
const MAX_RECEIVED: usize = 1024;
/// The maximum number of notifications and responses that wait to be written. A server that lets more of them wait does not
/// read.
const MAX_MESSAGES: usize = 1024;

/// Every request under way, and what is still to be written.
#[derive(Default)]
pub(crate) struct InFlightRequests {
    state: Lock<State>,
    /// Wakes the writer.
    written: Notify,
}

#[derive(Default)]
struct State {
    in_flight: HashMap<RequestId, RequestEntry>,
    outbox: VecDeque<Outgoing>,
    /// The reason why no request is taken any more.
    ended: Option<TransportError>,
    serial: u64,
    /// The legacy session, which gets the messages that belong to no request; none if there is no session.
    session: Option<mpsc::Sender<ServerMessage>>,
    /// The number of messages in the outbox that are neither requests nor cancellations.
    messages: usize,
    /// The highest number that is the id of a request.
    highest: u64,
    /// `true` once a response came to a request that was never made.
    had_stray: bool,
}

enum Outgoing {
    Request(RequestId),
    Cancelled(RequestId),
    Message(Vec<u8>),
}

struct RequestEntry {
    /// Distinguishes two requests with the same id: one that is settled and whose future still exists, and the next one.
    serial: u64,
    /// `None` once the writer has taken it.
    body: Option<Vec<u8>>,
    listens: bool,
    /// Not to be cancelled.
    opens: bool,
    notifications: mpsc::UnboundedSender<IncomingNotification>,
    /// The size of the notifications that wait in there, in bytes.
    waiting: Arc<AtomicUsize>,
    reply: oneshot::Sender<Result<ServerReply, TransportError>>,
}

/// The waiting side of one request. Dropping it abandons the request.
pub(crate) struct PendingResponse {
    requests: Arc<InFlightRequests>,
    id: RequestId,
    serial: u64,
    notifications: mpsc::UnboundedReceiver<IncomingNotification>,
    waiting: Arc<AtomicUsize>,
    reply: oneshot::Receiver<Result<ServerReply, TransportError>>,
}

impl PendingResponse {
    /// Passes on the notifications in their order, and then returns the response.
    pub(crate) async fn response(
        mut self,
        on_notification: &mut (dyn FnMut(IncomingNotification) + Send),
    ) -> Result<ServerReply, TransportError> {
        let waiting = Arc::clone(&self.waiting);
        let mut take = |notification: IncomingNotification| {
            waiting.fetch_sub(weight(&notification), Ordering::Relaxed);
            on_notification(notification);
        };
        loop {
            tokio::select! {
                biased;
                Some(notification) = self.notifications.recv() => take(notification),
                reply = &mut self.reply => {
                    while let Ok(notification) = self.notifications.try_recv() {
                        take(notification);
                    }
                    return reply.unwrap_or_else(|_| Err(TransportError::new(Closed, "the connection is closed")));
                }
            }
        }
    }
}

/// Returns the approximate size of a notification in bytes.
fn weight(notification: &IncomingNotification) -> usize {
    let params = notification.params.as_ref().map_or(0, |params| params.get().len());
    size_of::<IncomingNotification>() + notification.method.len() + params
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        self.requests.abandon(&self.id, self.serial);
    }
}

/// The request that a notification is for.
#[derive(PartialEq)]
pub(crate) enum Addressee {
    /// The request of this id.
    Request(RequestId),
    /// The subscription of this id, which ends with it.
    Ending(RequestId),
    /// Not messages: the only request under way, if there is exactly one.
    OnlyOne,
    /// Not messages: any request under way.
    AnyOne,
}

impl InFlightRequests {
    /// Admits a request, which then waits to be written.
    pub(crate) fn admit(
        self: &Arc<Self>,
        request: OutgoingRequest,
    ) -> Result<PendingResponse, TransportError> {
        let mut state = self.state();
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        if state.in_flight.contains_key(&request.id) {
            let text = format!("a request of the id {} is under way already", request.id);
            return Err(TransportError::new(Unreachable, text));
        }
        let (to_notifications, notifications) = mpsc::unbounded_channel();
        let waiting = Arc::<AtomicUsize>::default();
        let (to_reply, reply) = oneshot::channel();
        state.serial += 1;
        let (id, serial) = (request.id, state.serial);
        state.outbox.push_back(Outgoing::Request(id.clone()));
        let entry = RequestEntry {
            serial,
            body: Some(request.body),
            listens: request.method == method::SUBSCRIPTIONS_LISTEN,
            // > The `initialize` request **MUST NOT** be cancelled by clients
            opens: request.method == method::INITIALIZE,
            notifications: to_notifications,
            waiting: Arc::clone(&waiting),
            reply: to_reply,
        };
        state.highest = state.highest.max(id.as_u64().unwrap_or_default());
        state.in_flight.insert(id.clone(), entry);
        drop(state);
        self.written.notify_one();
        Ok(PendingResponse { requests: Arc::clone(self), id, serial, notifications, waiting, reply })
    }

    /// The next message to write, with its id if it is a request; `None` once there will be no more.
    pub(crate) async fn next_outgoing(&self) -> Option<(Option<RequestId>, Vec<u8>)> {
        loop {
            {
                let mut state = self.state();
                while let Some(outgoing) = state.outbox.pop_front() {
                    match outgoing {
                        Outgoing::Cancelled(id) => return Some((None, cancelled(&id))),
                        Outgoing::Message(message) => {
                            state.messages -= 1;
                            return Some((None, message));
                        }
                        Outgoing::Request(id) => {
                            if let Some(body) =
                                state.in_flight.get_mut(&id).and_then(|entry| entry.body.take())
                            {
                                return Some((Some(id), body));
                            }
                        }
                    }
                }
                if state.ended.is_some() {
                    return None;
                }
            }
            self.written.notified().await;
        }
    }

    /// Begins a session: from now on it gets the messages that belong to no request.
    pub(crate) fn begin_session(&self) -> Result<mpsc::Receiver<ServerMessage>, TransportError> {
        let mut state = self.state();
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        let (session, received) = mpsc::channel(MAX_RECEIVED);
        state.session = Some(session);
        Ok(received)
    }

    /// Returns `true` if there is a session.
    pub(crate) fn in_session(&self) -> bool {
        self.state().session.is_some()
    }

    /// Passes a message that belongs to no request to the session. Returns `false` if there is no session, or it has no room.
    pub(crate) fn offer(&self, message: ServerMessage) -> bool {
        let session = self.state().session.clone();
        let Some(session) = session else { return false };
        // > The receiver **MUST** respond promptly with an empty response
        // So a ping is answered here, also if the session is busy or has not begun.
        if let ServerMessage::Request(ping) = &message
            && ping.method == method::PING
        {
            return write_result(&ping.id, &json!({})).is_ok_and(|pong| self.send(pong).is_ok());
        }
        match session.try_send(message) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(ServerMessage::Request(request))) => {
                let busy = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "too many requests wait here already");
                self.send(write_error(Some(&request.id), &busy)).is_ok()
            }
            Err(_) => false,
        }
    }

    /// Writes a notification or a response.
    pub(crate) fn send(&self, message: Vec<u8>) -> Result<(), TransportError> {
        let mut state = self.state();
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        if state.messages >= MAX_MESSAGES {
            drop(state);
            let error = TransportError::new(Closed, "the server does not read the answers to its requests");
            self.end(error.clone());
            return Err(error);
        }
        state.messages += 1;
        state.outbox.push_back(Outgoing::Message(message));
        drop(state);
        self.written.notify_one();
        Ok(())
    }

    /// The reason why no request is taken any more, if that is so.
    pub(crate) fn ended(&self) -> Option<TransportError> {
        self.state().ended.clone()
    }

    /// Returns `true` if the request was sent and has no response.
    pub(crate) fn is_sent(&self, id: &RequestId) -> bool {
        self.state().in_flight.get(id).is_some_and(|entry| entry.body.is_none())
    }

    /// Returns `true` once: for the first response to a request that was never made. A response may come late.
    pub(crate) fn is_first_stray(&self, id: &RequestId) -> bool {
        let number = id.as_u64().or_else(|| id.text_as_number()?.as_u64());
        let mut state = self.state();
        let is_stray = number.is_none_or(|number| number > state.highest);
        is_stray && !std::mem::replace(&mut state.had_stray, true)
    }

    /// Delivers a response to its request. `false` if no request waits for it, or the request was not sent yet.
    pub(crate) fn settle(&self, id: &RequestId, outcome: Result<ServerReply, TransportError>) -> bool {
        let entry = {
            let mut state = self.state();
            if state.in_flight.get(id).is_none_or(|entry| entry.body.is_some()) {
                return false;
            }
            state.in_flight.remove(id)
        };
        entry.is_some_and(|entry| entry.reply.send(outcome).is_ok())
    }

    /// Delivers an error without an id to the only sent request. `false` if there is none, or more than one.
    pub(crate) fn settle_only(&self, error: ErrorObject) -> bool {
        let mut state = self.state();
        let mut sent = state.in_flight.iter().filter(|(_, entry)| entry.body.is_none());
        let (Some((id, _)), None) = (sent.next(), sent.next()) else { return false };
        let id = id.clone();
        let entry = state.in_flight.remove(&id);
        entry.is_some_and(|entry| entry.reply.send(Ok(Err(error))).is_ok())
    }

    /// Delivers a notification to its request, or returns the notification if no request waits for it.
    pub(crate) fn notify(
        &self,
        addressee: &Addressee,
        notification: IncomingNotification,
    ) -> Result<(), IncomingNotification> {
        let state = self.state();
        let entry = match addressee {
            Addressee::Request(id) => state.in_flight.get(id),
            Addressee::Ending(id) => state.in_flight.get(id).filter(|entry| entry.listens),
            Addressee::AnyOne => state.in_flight.values().find(|entry| !entry.listens),
            Addressee::OnlyOne => {
                let mut calls = state.in_flight.values().filter(|entry| !entry.listens);
                calls.next().filter(|_| calls.next().is_none())
            }
        };
        let Some(entry) = entry else { return Err(notification) };
        let weight = weight(&notification);
        let fits = entry.waiting.load(Ordering::Relaxed) + weight <= MAX_WAITING;
        match addressee {
            // Without this notification, the change would be lost. So the subscription ends, and the client requests
            // everything again.
            Addressee::Request(id) if !fits && entry.listens => {
                drop(state);
                self.fail_listening(id);
            }
            // A dropped notification may end a subscription: it is the last one of that subscription.
            Addressee::Request(_) | Addressee::OnlyOne | Addressee::AnyOne if !fits => {
                tracing::warn!("too many notifications wait for one request: one is dropped");
            }
            _ => {
                entry.waiting.fetch_add(weight, Ordering::Relaxed);
                let _ = entry.notifications.send(notification);
            }
        }
        Ok(())
    }

    /// Fails a subscription whose caller does not take its notifications, and cancels it at the server.
    fn fail_listening(&self, id: &RequestId) {
        let text = "too many changes wait to be read: the subscription was cancelled";
        let mut state = self.state();
        let Some(entry) = state.in_flight.remove(id) else { return };
        state.outbox.push_back(Outgoing::Cancelled(id.clone()));
        let _ = entry.reply.send(Err(TransportError::new(TooLarge, text)));
        drop(state);
        self.written.notify_one();
    }

    /// Fails every request that was sent, and cancels it at the server.
    pub(crate) fn fail_sent(&self, error: &TransportError) {
        let mut state = self.state();
        for (id, entry) in state.in_flight.extract_if(|_, entry| entry.body.is_none()).collect::<Vec<_>>() {
            state.outbox.push_back(Outgoing::Cancelled(id));
            let _ = entry.reply.send(Err(error.clone()));
        }
        drop(state);
        self.written.notify_one();
    }

    /// Fails every request that was not sent, and takes no more. Responses are still handed over.
    pub(crate) fn end_writing(&self, error: TransportError) {
        let error = error.for_good();
        let mut state = self.state();
        state.outbox.clear();
        (state.messages, state.session) = (0, None);
        for (_, entry) in state.in_flight.extract_if(|_, entry| entry.body.is_some()) {
            let _ = entry.reply.send(Err(error.clone()));
        }
        state.ended.get_or_insert(error);
    }

    /// Fails every request, and takes no more.
    pub(crate) fn end(&self, error: TransportError) {
        let error = error.for_good();
        let mut state = self.state();
        state.outbox.clear();
        (state.messages, state.session) = (0, None);
        for (_, entry) in state.in_flight.drain() {
            let _ = entry.reply.send(Err(error.clone()));
        }
        state.ended.get_or_insert(error);
        drop(state);
        self.written.notify_one();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state().ended.is_some()
    }

    fn abandon(&self, id: &RequestId, serial: u64) {
        let mut state = self.state();
        if state.in_flight.get(id).is_none_or(|entry| entry.serial != serial) {
            return;
        }
        let Some(entry) = state.in_flight.remove(id) else { return };
        if entry.body.is_some() {
            // > Cancellation notifications **MUST** only reference requests that: Were previously issued by the client
            state.outbox.retain(|outgoing| !matches!(outgoing, Outgoing::Request(queued) if queued == id));
        } else if state.ended.is_none() && !entry.opens {
            // > To cancel an in-flight request, the client **MUST** send a `notifications/cancelled` notification
            // > referencing the request's ID.
            state.outbox.push_back(Outgoing::Cancelled(id.clone()));
            drop(state);
            self.written.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

fn cancelled(id: &RequestId) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        request_id: &'a RequestId,
        reason: &'static str,
    }
    let params = Params { request_id: id, reason: "the client no longer waits for the response" };
    // The message holds an id and a text only, which serde_json can always write.
    write_notification(method::CANCELLED, &params).unwrap_or_default()
}
