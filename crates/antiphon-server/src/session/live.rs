//! A request of ours that waits for the client's response.

use crate::{
    outbox::{MessageKind, Outbox},
    session::session::{Arrived, Session, Waiting},
};
use antiphon_wire::{
    CancelledParams, InputRequest, LegacyAsk, RequestId, method, pacing::stretched, write_notification,
};
use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep, sleep},
};

/// How long an ask waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) limit: Duration,
    /// Progress begins it anew, up to so much in all; `None` where it does not.
    pub(crate) at_most: Option<Duration>,
}

/// What became of an ask.
pub(crate) enum AskEnd {
    Answer(Arrived),
    /// The session ended.
    SessionOver,
    /// Nothing came, for so long.
    TooLate(Duration),
}

/// An ask that is on its way. Dropped before its answer, it is taken back: the client is told that it is cancelled.
pub(crate) struct Live {
    session: Session,
    id: u64,
    /// `None` once it has come.
    arrival: Option<oneshot::Receiver<Arrived>>,
    /// Where it went, and where its cancellation goes.
    outbox: Option<Outbox>,
    wait: Wait,
    sent: Instant,
    over: Pin<Box<Sleep>>,
}

impl Live {
    pub(crate) fn new(session: Session, id: u64, arrival: oneshot::Receiver<Arrived>, wait: Wait) -> Self {
        let (sent, over) = (Instant::now(), Box::pin(sleep(wait.limit)));
        Self { session, id, arrival: Some(arrival), outbox: None, wait, sent, over }
    }

    /// Sends an ask as a request, on the stream that this outbox is for.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn send(
        session: &Session,
        outbox: &Outbox,
        scopes: &[String],
        request: &InputRequest,
        elicitation_id: Option<&str>,
        wait: Wait,
    ) -> Result<Self, String> {
        let mut live = session.begin_live(outbox, scopes, wait);
        let ask = LegacyAsk { request, version: session.version(), elicitation_id };
        let bytes = ask.write(&RequestId::from(live.id)).map_err(|fault| fault.to_string())?;
        if let Some(id) = elicitation_id {
            session.note_url(id);
        }
        outbox.push(MessageKind::Ask, bytes);
        live.outbox = Some(outbox.clone());
        Ok(live)
    }

    /// The client's answer, or why there will be none.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<AskEnd> {
        let Some(arrival) = &mut self.arrival else { return Poll::Pending };
        if let Poll::Ready(arrived) = Pin::new(arrival).poll(cx) {
            self.arrival = None;
            return Poll::Ready(arrived.map_or(AskEnd::SessionOver, AskEnd::Answer));
        }
        loop {
            ready!(self.over.as_mut().poll(cx));
            // Progress wakes nobody: what it changes is looked up when the time would be over.
            let heard =
                self.session.heard(self.id).map_or(Duration::ZERO, |heard| heard.duration_since(self.sent));
            let (end, limit) = stretched(self.wait.limit, self.wait.at_most, heard);
            match end.checked_sub(self.sent.elapsed()) {
                Some(rest) if !rest.is_zero() => self.over.set(sleep(rest)),
                _ => return Poll::Ready(AskEnd::TooLate(limit)),
            }
        }
    }

    /// It is not waited for, and nobody is told: the call itself is over for the client.
    pub(crate) fn forget(mut self) {
        self.outbox = None;
    }
}

impl Session {
    /// A request of ours that waits for the client.
    pub(crate) fn begin_live(&self, outbox: &Outbox, scopes: &[String], wait: Wait) -> Live {
        let (answer, arrival) = oneshot::channel();
        let mut state = self.state();
        state.last_id += 1;
        let id = state.last_id;
        let (outbox, scopes) = (outbox.clone(), scopes.to_vec());
        state.waiting.insert(id, Waiting { answer, outbox, scopes, progress: None });
        drop(state);
        Live::new(self.clone(), id, arrival, wait)
    }

    /// Takes back what this call asks.
    pub(crate) fn take_back(&self, outbox: &Outbox) {
        let mut state = self.state();
        let taken: Vec<_> = state.waiting.extract_if(|_, waiting| waiting.outbox.is_same(outbox)).collect();
        drop(state);
        for (id, _) in taken {
            tell_cancelled(outbox, id);
        }
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
pub(crate) fn tell_cancelled(outbox: &Outbox, id: u64) {
    // > When a party wants to cancel an in-progress request, it sends a `notifications/cancelled` notification
    match write_notification(method::CANCELLED, &CancelledParams::new(RequestId::from(id))) {
        Ok(bytes) => outbox.push(MessageKind::Ask, bytes),
        Err(fault) => tracing::error!(%fault, "a cancellation cannot be written as JSON"),
    }
}
