//! A request of ours that waits for the client's response.

use super::session::Session;
use crate::server::outbox::{Kind, Outbox};
use antiphon_wire::{
    CancelledParams, ErrorObject, InputRequest, LegacyAsk, RequestId, method, write_notification,
};
use serde_json::value::RawValue;
use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::sync::oneshot;

/// What the client answered: a result, as text, or an error.
pub(crate) type Arrived = Result<Box<RawValue>, ErrorObject>;

/// An ask that is on its way. Dropped before its answer, it is taken back: the client is told that it is cancelled.
pub(crate) struct Live {
    session: Session,
    id: u64,
    /// `None` once it has come.
    arrival: Option<oneshot::Receiver<Arrived>>,
    /// Where it went, and where its cancellation goes.
    outbox: Option<Outbox>,
}

impl Live {
    pub(super) fn new(session: Session, id: u64, arrival: oneshot::Receiver<Arrived>) -> Self {
        Self { session, id, arrival: Some(arrival), outbox: None }
    }

    /// Sends an ask as a request, on the stream that this outbox is for.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn send(
        session: &Session,
        outbox: &Outbox,
        request: &InputRequest,
        elicitation_id: Option<&str>,
    ) -> Result<Self, String> {
        let mut live = session.begin_live(outbox);
        let ask = LegacyAsk { request, version: session.version(), elicitation_id };
        let bytes = ask.write(&RequestId::from(live.id)).map_err(|fault| fault.to_string())?;
        if let Some(id) = elicitation_id {
            session.note_url(id);
        }
        outbox.push(Kind::Ask, bytes);
        live.outbox = Some(outbox.clone());
        Ok(live)
    }

    /// The client's answer. `None` if the session ended.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arrived>> {
        let Some(arrival) = &mut self.arrival else { return Poll::Pending };
        let arrived = std::task::ready!(Pin::new(arrival).poll(cx));
        self.arrival = None;
        Poll::Ready(arrived.ok())
    }

    /// It is not waited for, and nobody is told: the call itself is over for the client.
    pub(crate) fn forget(mut self) {
        self.outbox = None;
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.arrival.is_none() || !self.session.give_up(self.id) {
            return;
        }
        let Some(outbox) = &self.outbox else { return };
        tell_cancelled(outbox, self.id);
    }
}

/// Tells the client that this request of ours is cancelled.
pub(super) fn tell_cancelled(outbox: &Outbox, id: u64) {
    // > When a party wants to cancel an in-progress request, it sends a `notifications/cancelled` notification
    match write_notification(method::CANCELLED, &CancelledParams::new(RequestId::from(id))) {
        Ok(bytes) => outbox.push(Kind::Ask, bytes),
        Err(fault) => tracing::error!(%fault, "a cancellation cannot be written as JSON"),
    }
}
