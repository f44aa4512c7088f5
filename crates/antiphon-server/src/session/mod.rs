//! Sessions of the revisions up to 2025-11-25: their state, their quotas, the requests that the server sends on them,
//! and the conversion of results and errors to their versions.

pub(crate) mod outbound_request;
mod results;
pub(crate) mod sessions;

pub(crate) use outbound_request::{AnswerTimeout, AskEnd, OutboundRequest, Question};
pub(crate) use results::{InSession, SessionResult, downgrade_refusal, not_answered, too_late};
pub(crate) use sessions::Sessions;

use crate::{
    errors::refusal::read_object,
    feed::{TaskChange, task_digest},
    identity::account::{Account, CallerInfo},
    options::limits::Limits,
    outbox::Outbox,
    quota::QuotaPermit,
    subscribe::{NotificationFilter, SubscriptionHandle},
};
use antiphon_seal::{CallId, Digest, EntropyError};
use antiphon_store::TaskKey;
use antiphon_wire::{
    AskSupport, CancelledParams, ElicitRequest, ErrorObject, FieldKind, FormField, InputRequest, LogLevel,
    Notification, ProgressParams, ProtocolVersion, RequestId, Response, escaped, lock::Lock, method,
};
use futures_util::{future::AbortHandle, task::AtomicWaker};
use serde_json::value::RawValue;
use sessions::UrlSession;
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, MutexGuard, OnceLock},
};
use tokio::{sync::oneshot, time::Instant};

/// The maximum number of remembered ids of URL questions in one session; the oldest are dropped.
const URLS: usize = 64;
/// The maximum number of remembered tasks of one session; the oldest are dropped.
pub(crate) const TASKS: usize = 1000;

/// A legacy session. Clones are the same session. It ends with the last clone, or earlier by [`end`](Self::end).
#[derive(Clone)]
pub(crate) struct Session(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    /// All sessions of the server.
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) version: ProtocolVersion,
    /// The capabilities of its client.
    pub(crate) asks: AskSupport,
    /// True if the server declared tasks in the handshake.
    pub(crate) has_tasks: bool,
    pub(crate) client_info: Option<Box<RawValue>>,
    /// The extensions that the client declared.
    pub(crate) extensions: Option<Arc<RawValue>>,
    /// A random key, for the rows of its requests in the store. Made when it is needed.
    pub(crate) key: OnceLock<CallId>,
    /// The digest of the principal who opened the session.
    pub(crate) principal: Option<Digest>,
    /// The subscription of the session; `None` without a stream for notifications.
    pub(crate) subscription: Option<SubscriptionHandle>,
    pub(crate) state: Lock<State>,
    pub(crate) filter: NotificationFilter,
    /// Wakes the task that sends notifications that belong to no request.
    pub(crate) notifier: AtomicWaker,
}

/// The part of a session that changes while it is open.
#[derive(Default)]
pub(crate) struct State {
    /// The minimum level of log messages that the client requested.
    pub(crate) level: Option<LogLevel>,
    /// The client's requests, each with the handle that cancels it.
    pub(crate) running: HashMap<RequestId, AbortHandle>,
    /// The length of these requests, in bytes.
    pub(crate) running_bytes: usize,
    /// The server's requests that wait for the client.
    pub(crate) pending: HashMap<u64, PendingRequest>,
    pub(crate) last_id: u64,
    /// The ids of URL questions that the client was asked, oldest first.
    pub(crate) urls: VecDeque<String>,
    /// The finished ones among them that were not yet sent; the oldest are dropped.
    pub(crate) finished: VecDeque<String>,
    pub(crate) ended: bool,
    /// True if the client sends no responses any more.
    pub(crate) asks_ended: bool,
    /// The tasks that the session has created, the oldest first; the oldest are dropped.
    pub(crate) tasks: VecDeque<TaskKey>,
    /// The session's place in the quota, given back when the session ends, so that another can begin at once.
    pub(crate) permit: Option<QuotaPermit>,
}

/// The client's response: a result, as text, or an error.
pub(crate) type ClientResponse = Result<Box<RawValue>, ErrorObject>;

/// A request that waits for the client's response.
pub(crate) struct PendingRequest {
    pub(crate) answer: oneshot::Sender<ClientResponse>,
    /// The outbox of the call that asks.
    pub(crate) outbox: Outbox,
    /// The scopes that the sender of the answer must have, the same as for the call.
    pub(crate) scopes: Vec<String>,
    /// The key of the question, which the client does not receive. The test bench reads it.
    pub(crate) key: String,
    /// The last progress that the client reported, with its time.
    pub(crate) progress: Option<(f64, Instant)>,
}

impl Session {
    /// Returns the negotiated version.
    pub(crate) fn version(&self) -> &ProtocolVersion {
        &self.0.version
    }

    /// Returns the capabilities that the client declared.
    pub(crate) fn asks(&self) -> AskSupport {
        self.0.asks
    }

    /// Returns what this request requires and the client does not support.
    ///
    /// > [2025-06-18] form schemas are limited to flat objects with primitive properties only
    ///
    /// Such a form and its answer cannot contain a list.
    pub(crate) fn missing(&self, request: &InputRequest) -> AskSupport {
        let mut asks = self.asks();
        if let InputRequest::Elicit(ElicitRequest::Form { requested_schema, .. }) = request {
            let is_list = |field: &FormField| matches!(field.kind, FieldKind::Many { .. });
            asks.form &=
                self.0.version.has_multiple_choice() || !requested_schema.fields().iter().any(is_list);
        }
        asks.missing(request.needs())
    }

    /// Returns the key of the question that was sent as this request, and has no answer yet.
    pub(crate) fn key_of(&self, id: u64) -> Option<String> {
        self.state().pending.get(&id).map(|pending| pending.key.clone())
    }

    /// Notes that this caller has read a list: later changes are those of its lists.
    pub(crate) fn listed_for(&self, caller: &CallerInfo) {
        if let Some(subscription) = &self.0.subscription {
            subscription.set_caller(caller.clone());
        }
    }

    /// Returns a key that no other session has.
    pub(crate) fn key(&self) -> Result<CallId, EntropyError> {
        if let Some(key) = self.0.key.get() {
            return Ok(*key);
        }
        let key = CallId::random()?;
        Ok(*self.0.key.get_or_init(|| key))
    }

    /// Returns true if the server declared tasks in the handshake.
    pub(crate) fn has_tasks(&self) -> bool {
        self.0.has_tasks
    }

    /// Notes that the session has created a task.
    pub(crate) fn note_task(&self, task: TaskKey) {
        let mut state = self.state();
        if state.tasks.len() >= TASKS {
            state.tasks.pop_front();
        }
        state.tasks.push_back(task);
    }

    /// Returns true if the session has created this task.
    pub(crate) fn has_created(&self, task: TaskKey) -> bool {
        self.state().tasks.contains(&task)
    }

    /// Returns the task that has changed, if it has a name and the session has created it.
    pub(crate) fn created_task(&self, change: TaskChange) -> Option<TaskKey> {
        match change {
            TaskChange::Of(task) => self.has_created(task).then_some(task),
            TaskChange::Elsewhere(digest) => {
                self.state().tasks.iter().find(|task| task_digest(**task) == digest).copied()
            }
            TaskChange::Any => None,
        }
    }

    /// Returns the tasks that the session has created after this key, in the order of their keys.
    pub(crate) fn tasks_after(&self, after: Option<TaskKey>, at_most: usize) -> Vec<TaskKey> {
        let mut tasks: Vec<TaskKey> = self.state().tasks.iter().copied().collect();
        tasks.sort_unstable();
        tasks.retain(|task| after.is_none_or(|after| *task > after));
        tasks.truncate(at_most);
        tasks
    }

    /// Returns the client's name and version, as sent.
    pub(crate) fn client_info(&self) -> Option<&RawValue> {
        self.0.client_info.as_deref()
    }

    /// Returns the extensions that the client declared, as JSON text.
    pub(crate) fn extensions(&self) -> Option<&Arc<RawValue>> {
        self.0.extensions.as_ref()
    }

    /// Returns the minimum level of log messages.
    ///
    /// > If no `logging/setLevel` request has been sent from the client, the server **MAY** decide which messages to send
    /// > automatically.
    pub(crate) fn level(&self) -> LogLevel {
        self.state().level.unwrap_or(LogLevel::Info)
    }

    /// Takes a permit for a handler in a session; `None` if all are taken.
    pub(crate) fn handler_permit(&self, account: Account, limits: &Limits) -> Option<QuotaPermit> {
        self.0.sessions.handler_permit(account, limits)
    }

    /// Processes a notification of the client. Returns true if it cancelled a request.
    pub(crate) fn on_notification(&self, notification: &Notification<'_>) -> bool {
        // > Invalid cancellation notifications **SHOULD** be ignored
        if notification.method == method::CANCELLED
            && let Some(params) = notification.params
            && let Ok(cancelled) = serde_json::from_str::<CancelledParams>(params.get())
        {
            // The id is unique while its request is under way.
            let running = self.state().running.get(&cancelled.request_id).cloned();
            let Some(handle) = running else { return false };
            tracing::debug!(id = %escaped(&cancelled.request_id), reason = cancelled.reason.as_deref().map(|text| debug(escaped(text))), "request cancelled");
            handle.abort();
            return true;
        }
        if notification.method == method::PROGRESS
            && let Some(dropped) = self.on_progress(notification.params)
        {
            tracing::debug!(dropped, "a progress notification was dropped");
        }
        false
    }

    /// Records the progress of a question. Returns the reason if the notification was dropped.
    fn on_progress(&self, params: Option<&RawValue>) -> Option<&'static str> {
        let Some(Ok(params)) = params.map(|params| read_object::<ProgressParams>(params, "params")) else {
            return Some("its params cannot be read");
        };
        // > Progress notifications **MUST** only reference tokens that: Were provided in an active request
        // The token is the id of the request.
        let Some(id) = params.progress_token.as_u64() else { return Some("its token is unknown") };
        let Some(progress) = params.progress.as_f64().filter(|progress| progress.is_finite()) else {
            return Some("its progress is not a number");
        };
        let mut state = self.state();
        let Some(pending) = state.pending.get_mut(&id) else { return Some("its request is not pending") };
        // > The `progress` value **MUST** increase with each notification, even if the total is unknown.
        if pending.progress.is_some_and(|(last, _)| progress <= last) {
            return Some("it does not increase");
        }
        pending.progress = Some((progress, Instant::now()));
        drop(state);
        tracing::debug!(id, progress, "progress of an ask");
        None
    }

    /// Returns the time of the last progress of this request, if there was one.
    pub(crate) fn last_progress(&self, id: u64) -> Option<Instant> {
        self.state().pending.get(&id)?.progress.map(|(_, last_progress)| last_progress)
    }

    /// Delivers the client's response to a request of the server. A response is dropped if no request waits for it.
    pub(crate) fn take_response(&self, response: Response<'_>) {
        let Some(id) = response.id.as_ref().and_then(RequestId::as_u64) else { return };
        let Some(pending) = self.state().pending.remove(&id) else {
            tracing::debug!(id, "a response to no pending request was dropped");
            return;
        };
        // The receiver may just have been dropped.
        let _ = pending.answer.send(response.outcome.map(ToOwned::to_owned));
    }

    /// Removes a request of the server. Returns true if its response was still missing.
    pub(crate) fn stop_waiting(&self, id: u64) -> bool {
        self.state().pending.remove(&id).is_some()
    }

    /// Records that the client is asked to open a URL with this id.
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
            sessions.remove_url_session(&oldest, self.0.address());
        }
        let this: Arc<dyn UrlSession> = self.0.clone();
        sessions.add_url_session(id, Arc::downgrade(&this));
    }

    /// Continues the ids of another session's requests.
    pub(crate) fn follow(&self, previous: &Self) {
        let last_id = previous.state().last_id;
        self.state().last_id = last_id;
    }

    /// Ends the asks of the session, and later ones: no response can arrive any more.
    pub(crate) fn end_asks(&self) {
        let mut state = self.state();
        state.asks_ended = true;
        state.pending.clear();
    }

    /// Ends the session: cancels its requests, ends its asks, and gives its place back.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        let running = std::mem::take(&mut state.running);
        let permit = state.permit.take();
        state.pending.clear();
        drop((state, permit));
        // The caller may keep the session, and another one must find a place.
        if let Some(subscription) = &self.0.subscription {
            subscription.leave();
        }
        for handle in running.into_values() {
            handle.abort();
        }
        self.0.notifier.wake();
    }

    /// Returns whether the session has ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.state().ended
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state()
    }
}

impl Shared {
    /// Returns an address that identifies the session in this process.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is complete before the lock is released.
        self.state.lock()
    }
}

impl UrlSession for Shared {
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
        self.sessions.remove_url_session(id, self.address());
        self.notifier.wake();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let urls = std::mem::take(&mut self.state().urls);
        for id in urls {
            self.sessions.remove_url_session(&id, self.address());
        }
    }
}

impl fmt::Debug for Session {
    /// Omits the requests under way.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("version", &self.0.version).finish_non_exhaustive()
    }
}
