//! A request of the server that waits for the client's response.

use crate::{
    outbox::{MessageKind, Outbox},
    session::{ClientResponse, PendingRequest, Session},
    trace::otel,
};
use antiphon_wire::{
    CancelledParams, InputRequest, LegacyAsk, RequestId, escaped, method, pacing::stretched,
    write_notification,
};
use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, SystemTime},
};
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep, sleep},
};
use tracing::{Level, enabled};

/// The time limit of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerTimeout {
    pub(crate) limit: Duration,
    /// The maximum in all, if progress restarts the limit; `None` if it does not.
    pub(crate) at_most: Option<Duration>,
}

/// The end of a question.
pub(crate) enum AskEnd {
    Answer(ClientResponse),
    /// The session ended.
    SessionOver,
    /// No answer arrived within this time.
    TooLate(Duration),
}

/// A question to send.
pub(crate) struct Question<'a> {
    /// The key of the question in its call.
    pub(crate) key: &'a str,
    pub(crate) request: &'a InputRequest,
    /// The id of a URL.
    pub(crate) elicitation_id: Option<&'a str>,
    /// The id of the task that asks.
    pub(crate) related_task: Option<&'a str>,
}

/// A question that was sent. Dropping it before its answer cancels it: the client receives a cancellation.
pub(crate) struct OutboundRequest {
    session: Session,
    id: u64,
    /// `None` after the response has arrived.
    arrival: Option<oneshot::Receiver<ClientResponse>>,
    /// The outbox of the question, for its cancellation.
    outbox: Option<Outbox>,
    wait: AnswerTimeout,
    sent: Instant,
    over: Pin<Box<Sleep>>,
    /// True if its answer is counted here.
    counts: bool,
}

impl OutboundRequest {
    pub(crate) fn new(
        session: Session,
        id: u64,
        arrival: oneshot::Receiver<ClientResponse>,
        wait: AnswerTimeout,
    ) -> Self {
        let (sent, over) = (Instant::now(), Box::pin(sleep(wait.limit)));
        Self { session, id, arrival: Some(arrival), outbox: None, wait, sent, over, counts: false }
    }

    /// Sends a question as a request, on the stream of this outbox.
    ///
    /// # Errors
    /// If the question cannot be written as JSON.
    pub(crate) fn send(
        session: &Session,
        outbox: &Outbox,
        scopes: &[String],
        question: &Question<'_>,
        wait: AnswerTimeout,
    ) -> Result<Self, String> {
        let &Question { key, request, elicitation_id, related_task } = question;
        let mut outbound = session.begin_request(outbox, scopes, key, wait);
        let ask = LegacyAsk { request, version: session.version(), elicitation_id };
        let id = RequestId::from(outbound.id);
        let written = match related_task {
            Some(task) => ask.write_for_task(&id, task),
            None => ask.write(&id),
        };
        let bytes = written.map_err(|fault| fault.to_string())?;
        if let Some(id) = elicitation_id {
            session.note_url(id);
        }
        outbox.push(MessageKind::Ask, bytes);
        // The asks of a task are those of its rounds, which are counted.
        outbound.counts = related_task.is_none();
        if outbound.counts {
            session.0.sessions.metrics.ask(request);
        }
        outbound.outbox = Some(outbox.clone());
        Ok(outbound)
    }

    /// Polls for the client's answer, or for the reason for which there will be none.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<AskEnd> {
        let Some(arrival) = &mut self.arrival else { return Poll::Pending };
        if let Poll::Ready(arrived) = Pin::new(arrival).poll(cx) {
            self.arrival = None;
            if let Ok(Ok(answer)) = &arrived
                && self.counts
            {
                self.count(answer.get());
            }
            return Poll::Ready(arrived.map_or(AskEnd::SessionOver, AskEnd::Answer));
        }
        loop {
            ready!(self.over.as_mut().poll(cx));
            // Progress wakes no task: it is looked up when the time limit is reached.
            let last_progress = self
                .session
                .last_progress(self.id)
                .map_or(Duration::ZERO, |last_progress| last_progress.duration_since(self.sent));
            let (end, limit) = stretched(self.wait.limit, self.wait.at_most, last_progress);
            match end.checked_sub(self.sent.elapsed()) {
                Some(rest) if !rest.is_zero() => self.over.set(sleep(rest)),
                _ => return Poll::Ready(AskEnd::TooLate(limit)),
            }
        }
    }

    /// Counts an answer, and the time that the person took.
    fn count(&self, answer: &str) {
        let (metrics, waited) = (&self.session.0.sessions.metrics, self.sent.elapsed());
        metrics.answer(answer);
        metrics.waited(waited);
        if enabled!(Level::INFO) {
            let now = SystemTime::now();
            otel::waited(None, None, now.checked_sub(waited).unwrap_or(now), now);
        }
    }

    /// Discards the question without a cancellation: the call itself is over for the client.
    pub(crate) fn forget(mut self) {
        self.outbox = None;
    }
}

impl Session {
    /// Registers a request of the server, which waits for the client.
    pub(crate) fn begin_request(
        &self,
        outbox: &Outbox,
        scopes: &[String],
        key: &str,
        wait: AnswerTimeout,
    ) -> OutboundRequest {
        let (answer, arrival) = oneshot::channel();
        let mut state = self.state();
        state.last_id += 1;
        let id = state.last_id;
        // Otherwise the answer is dropped here, and its request ends as one of a session that is over.
        if !state.asks_ended {
            let (outbox, scopes, key) = (outbox.clone(), scopes.to_vec(), key.to_owned());
            state.pending.insert(id, PendingRequest { answer, outbox, scopes, key, progress: None });
        }
        drop(state);
        OutboundRequest::new(self.clone(), id, arrival, wait)
    }

    /// Cancels the questions of this call.
    pub(crate) fn withdraw(&self, outbox: &Outbox) {
        let mut state = self.state();
        let taken: Vec<_> = state.pending.extract_if(|_, pending| pending.outbox.is_same(outbox)).collect();
        drop(state);
        for (id, _) in taken {
            send_cancelled(outbox, id);
        }
    }
}

impl Drop for OutboundRequest {
    fn drop(&mut self) {
        if self.arrival.is_none() || !self.session.stop_waiting(self.id) {
            return;
        }
        let Some(outbox) = &self.outbox else { return };
        send_cancelled(outbox, self.id);
    }
}

/// Sends the client a cancellation of this request.
pub(crate) fn send_cancelled(outbox: &Outbox, id: u64) {
    // > When a party wants to cancel an in-progress request, it sends a `notifications/cancelled` notification
    match write_notification(method::CANCELLED, &CancelledParams::new(RequestId::from(id))) {
        Ok(bytes) => outbox.push(MessageKind::Ask, bytes),
        Err(fault) => tracing::error!(fault = %escaped(&fault), "a cancellation cannot be written as JSON"),
    }
}
