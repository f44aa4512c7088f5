//! One session: what its handshake said, and what is under way in it.

use crate::{
    Limits, Outbox,
    read::read_object,
    session::{
        sessions::{AskedToOpen, Sessions},
        shares::Share,
    },
    subscribe::hub::Membership,
};
use antiphon_seal::{Digest, Principal};
use antiphon_wire::{
    AskSupport, CancelledParams, ElicitRequest, ErrorObject, FieldKind, FormField, InputRequest, LogLevel,
    Notification, ProgressParams, ProtocolVersion, RequestId, Response, method,
};
use futures_util::{future::AbortHandle, task::AtomicWaker};
use serde_json::value::RawValue;
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{sync::oneshot, time::Instant};

/// So many ids of URL questions are remembered in one session, the latest ones.
const URLS: usize = 64;

/// A legacy session. Clones are the same session; it ends with the last of them, or before that by
/// [`end`](Self::end).
#[derive(Clone)]
pub(crate) struct Session(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    /// All sessions of the server.
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) version: ProtocolVersion,
    /// What its client can be asked.
    pub(crate) asks: AskSupport,
    pub(crate) client_info: Option<Box<RawValue>>,
    /// Whose it is.
    pub(crate) principal: Option<Digest>,
    /// What it hears of; nothing, where it has no stream of its own.
    pub(crate) membership: Option<Membership>,
    pub(crate) state: Mutex<State>,
    /// Wakes who tells the client what belongs to no request.
    pub(crate) teller: AtomicWaker,
    pub(crate) _place: Option<Share>,
}

/// What changes while it is open.
#[derive(Default)]
pub(crate) struct State {
    /// The lowest level of log messages that the client wants; without it, what is worth telling.
    pub(crate) level: Option<LogLevel>,
    /// The client's requests, each with what cancels it.
    pub(crate) running: HashMap<RequestId, AbortHandle>,
    /// Our requests that wait for the client.
    pub(crate) waiting: HashMap<u64, Waiting>,
    pub(crate) last_id: u64,
    /// URL questions the client was asked, the oldest first.
    pub(crate) urls: VecDeque<String>,
    /// Those among them that are finished, and not yet told: as many at most, the latest ones.
    pub(crate) finished: VecDeque<String>,
    pub(crate) ended: bool,
}

/// What the client answered: a result, as text, or an error.
pub(crate) type Arrived = Result<Box<RawValue>, ErrorObject>;

/// Who waits for the client's response.
pub(crate) struct Waiting {
    pub(crate) answer: oneshot::Sender<Arrived>,
    /// That of the call which asks.
    pub(crate) outbox: Outbox,
    /// What who answers must hold: what the call needs.
    pub(crate) scopes: Vec<String>,
    /// How far the client said last that it is, and when.
    pub(crate) progress: Option<(f64, Instant)>,
}

impl Session {
    /// The version that was agreed on.
    pub(crate) fn version(&self) -> &ProtocolVersion {
        &self.0.version
    }

    /// What its client declared it can be asked.
    pub(crate) fn asks(&self) -> AskSupport {
        self.0.asks
    }

    /// What of this request its client cannot be asked.
    ///
    /// > [2025-06-18] form schemas are limited to flat objects with primitive properties only
    ///
    /// Neither such a form nor its answer holds a list.
    pub(crate) fn missing(&self, request: &InputRequest) -> AskSupport {
        let mut asks = self.asks();
        if let InputRequest::Elicit(ElicitRequest::Form { requested_schema, .. }) = request {
            let is_list = |field: &FormField| matches!(field.kind, FieldKind::Many { .. });
            asks.form &=
                self.0.version.has_elicitation_modes() || !requested_schema.fields().iter().any(is_list);
        }
        asks.missing(request.needs())
    }

    /// The client's name and version, as sent.
    pub(crate) fn client_info(&self) -> Option<&RawValue> {
        self.0.client_info.as_deref()
    }

    /// The lowest level of log messages that go out.
    ///
    /// > If no `logging/setLevel` request has been sent from the client, the server **MAY** decide which messages to send
    /// > automatically.
    pub(crate) fn level(&self) -> LogLevel {
        self.state().level.unwrap_or(LogLevel::Info)
    }

    /// Takes a place among the handlers that run in sessions; `None` if all are taken.
    pub(crate) fn handler(&self, principal: Option<&Principal>, limits: &Limits) -> Option<Share> {
        self.0.sessions.handler(principal, limits)
    }

    /// Takes notice of something that the client tells. Whether it cancels something that runs.
    pub(crate) fn hear(&self, notification: &Notification<'_>) -> bool {
        // > Invalid cancellation notifications **SHOULD** be ignored
        if notification.method == method::CANCELLED
            && let Some(params) = notification.params
            && let Ok(cancelled) = serde_json::from_str::<CancelledParams>(params.get())
        {
            // Its id is its own until it is over.
            let running = self.state().running.get(&cancelled.request_id).cloned();
            let Some(handle) = running else { return false };
            tracing::debug!(id = %cancelled.request_id, reason = cancelled.reason, "request cancelled");
            handle.abort();
            return true;
        }
        if notification.method == method::PROGRESS
            && let Some(dropped) = self.hear_progress(notification.params)
        {
            tracing::debug!(dropped, "progress of nothing that is asked");
        }
        false
    }

    /// Somebody is at work on an ask. Returns why it was dropped, if it was.
    fn hear_progress(&self, params: Option<&RawValue>) -> Option<&'static str> {
        let Some(Ok(told)) = params.map(|params| read_object::<ProgressParams>(params, "params")) else {
            return Some("its params cannot be read");
        };
        // > Progress notifications **MUST** only reference tokens that: Were provided in an active request
        // That is the request's id.
        let Some(id) = told.progress_token.as_u64() else { return Some("its token is none of ours") };
        let Some(progress) = told.progress.as_f64().filter(|progress| progress.is_finite()) else {
            return Some("its progress is no number");
        };
        let mut state = self.state();
        let Some(waiting) = state.waiting.get_mut(&id) else { return Some("nobody waits for its request") };
        // > The `progress` value **MUST** increase with each notification, even if the total is unknown.
        if waiting.progress.is_some_and(|(last, _)| progress <= last) {
            return Some("it does not increase");
        }
        waiting.progress = Some((progress, Instant::now()));
        drop(state);
        tracing::debug!(id, progress, "progress of an ask");
        None
    }

    /// When the client told progress of this request of ours, if it did.
    pub(crate) fn heard(&self, id: u64) -> Option<Instant> {
        self.state().waiting.get(&id)?.progress.map(|(_, heard)| heard)
    }

    /// Takes the client's response to a request of ours. One that nobody waits for is dropped.
    pub(crate) fn take_response(&self, response: Response<'_>) {
        let Some(id) = response.id.as_ref().and_then(RequestId::as_u64) else { return };
        let Some(waiting) = self.state().waiting.remove(&id) else {
            tracing::debug!(id, "a response that nobody waits for");
            return;
        };
        // Who waited may just have gone.
        let _ = waiting.answer.send(response.outcome.map(ToOwned::to_owned));
    }

    /// Nobody waits for the client's response to this request of ours any more. Whether it was still missing.
    pub(crate) fn give_up(&self, id: u64) -> bool {
        self.state().waiting.remove(&id).is_some()
    }

    /// The client is asked to open a URL under this id.
    pub(crate) fn note_url(&self, id: &str) {
        let mut state = self.state();
        if state.urls.iter().any(|known| known == id) {
            return;
        }
        let oldest = if state.urls.len() >= URLS { state.urls.pop_front() } else { None };
        state.urls.push_back(id.to_owned());
        drop(state);
        let sessions = &self.0.sessions;
        if let Some(oldest) = oldest {
            sessions.forget_asked(&oldest, self.0.address());
        }
        let this: Arc<dyn AskedToOpen> = self.0.clone();
        sessions.note_asked(id, Arc::downgrade(&this));
    }

    /// Ends it: what runs in it is cancelled.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        let running = std::mem::take(&mut state.running);
        state.waiting.clear();
        drop(state);
        for handle in running.into_values() {
            handle.abort();
        }
        self.0.teller.wake();
    }

    /// Whether it has ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.state().ended
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state()
    }
}

impl Shared {
    /// Identifies the session among those of this process.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of it leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AskedToOpen for Shared {
    fn url_finished(&self, id: &str) {
        let mut state = self.state();
        if let Some(at) = state.urls.iter().position(|known| known == id) {
            state.urls.remove(at);
            if state.finished.len() >= URLS {
                state.finished.pop_front();
            }
            state.finished.push_back(id.to_owned());
        }
        drop(state);
        self.sessions.forget_asked(id, self.address());
        self.teller.wake();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let urls = std::mem::take(&mut self.state().urls);
        for id in urls {
            self.sessions.forget_asked(&id, self.address());
        }
    }
}

impl fmt::Debug for Session {
    /// Nothing of what is under way.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("version", &self.0.version).finish_non_exhaustive()
    }
}
