//! Requests of the server: answered by the same callbacks, through the same checks, as asks of modern servers.
//!
//! Each is a round of one ask, because messages of a session do not show which asks belong together.

use crate::{
    asks::{
        AskRound, answer_round,
        callbacks::{AskFault, ElicitComplete},
        progress::AskProgress,
        questions::Origin,
    },
    cache::ListKind,
    request::events::{EventContext, LogEvent},
    session::shared::{ReceivedRequest, Shared},
    transport::{IncomingNotification, IncomingRequest, ServerMessage},
};
use antiphon_wire::{
    AskSupport, CancelledParams, ElicitRequest, ElicitationCompleteParams, ErrorCode, ErrorObject,
    InputRequest, KnownKind, LogMessageParams, RequestId, ResourceUpdatedParams, elicitation_id_of, escaped,
    lock::Lock, method, write_error, write_result,
};
use futures_util::{
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt as _},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::{collections::VecDeque, convert::Infallible, error::Error as _, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};

/// > User rejected sampling request: `-1`
const REJECTED: ErrorCode = ErrorCode(-1);

/// The pause between two progress notifications of one ask.
///
/// > Both parties **SHOULD** implement rate limiting to prevent flooding
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// The faults of asks that could not be answered. A fault is stored before the server gets its error, since the server may
/// then end the call with an error of its own.
#[derive(Default)]
struct Faults(Lock<VecDeque<AskFault>>);

impl Faults {
    fn add(&self, fault: AskFault) {
        self.0.lock().push_back(fault);
    }

    fn first(&self) -> Option<AskFault> {
        self.0.lock().pop_front()
    }
}

/// The requests of the server that arrived with one request of the client, or with none.
pub(crate) struct ServerAsks {
    shared: Arc<Shared>,
    origin: Arc<Origin>,
    faults: Arc<Faults>,
    /// The output of each is `true` if it was an ask.
    open: FuturesUnordered<BoxFuture<'static, bool>>,
    asking: usize,
    waiting: VecDeque<ReceivedRequest>,
    /// The number of asks so far.
    rounds: u32,
}

impl ServerAsks {
    pub(crate) fn new(shared: &Arc<Shared>, origin: Origin) -> Self {
        Self {
            shared: Arc::clone(shared),
            origin: Arc::new(origin),
            faults: Arc::default(),
            open: FuturesUnordered::new(),
            asking: 0,
            waiting: VecDeque::new(),
            rounds: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Begins to answer a request.
    pub(crate) fn take(&mut self, received: ReceivedRequest) -> Result<(), AskFault> {
        let limit = self.shared.core.bounds.max_asks;
        if self.open.len() + self.waiting.len() >= limit.max(1) {
            return Err(AskFault::TooManyAsks { asks: limit.saturating_add(1), limit });
        }
        if is_ask(&received.request.method) && self.shared.core.handlers.one_at_a_time && self.asking > 0 {
            self.waiting.push_back(received);
        } else {
            self.start(received);
        }
        Ok(())
    }

    fn start(&mut self, received: ReceivedRequest) {
        if is_ask(&received.request.method) {
            self.asking += 1;
            self.rounds = self.rounds.saturating_add(1);
        }
        let origin = self.shared.task_call_of(&received.request).unwrap_or_else(|| Arc::clone(&self.origin));
        let (shared, round) = (Arc::clone(&self.shared), self.rounds);
        let faults = Arc::clone(&self.faults);
        self.open.push(Box::pin(async move { shared.serve(&origin, round, &received, &faults).await }));
    }

    /// The number of asks so far.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Returns the fault of an ask, also if the server has not yet received the error for it.
    pub(crate) fn fault(&self) -> Option<AskFault> {
        self.faults.first()
    }

    /// Waits until one of them has ended, and returns its fault. None if none is open.
    pub(crate) async fn next(&mut self) -> Option<Option<AskFault>> {
        let was_ask = self.open.next().await?;
        if was_ask {
            self.asking -= 1;
            if let Some(received) = self.waiting.pop_front() {
                self.start(received);
            }
        }
        Some(self.fault())
    }
}

fn is_ask(name: &str) -> bool {
    matches!(name, method::ELICITATION_CREATE | method::SAMPLING_CREATE_MESSAGE | method::ROOTS_LIST)
}

impl Shared {
    /// Answers one request of the server. Returns `true` if it was an ask.
    async fn serve(&self, origin: &Origin, round: u32, received: &ReceivedRequest, faults: &Faults) -> bool {
        let request = &received.request;
        let was_ask = is_ask(&request.method);
        let message = match &*request.method {
            // > The receiver **MUST** respond promptly with an empty response
            method::PING => write_result(&request.id, &json!({})).ok(),
            _ if was_ask => {
                let _open = self.open_asks.begin();
                let progress = AskProgress::of(request.params.as_deref());
                tokio::select! {
                    biased;
                    // > Receivers of cancellation notifications **SHOULD**: Not send a response for the cancelled request
                    () = received.cancelled.notified() => None,
                    (message, fault) = self.answer(origin, round, request, &progress) => {
                        fault.into_iter().for_each(|fault| faults.add(fault));
                        message
                    }
                    // > Progress notifications **MUST** stop after completion
                    never = self.send_progress(&progress) => match never {},
                }
            }
            other => Some(write_error(Some(&request.id), &ErrorObject::method_not_found(other))),
        };
        if let Some(message) = message
            && let Err(fault) = self.send(message).await
        {
            tracing::warn!(server = %escaped(&self.server), fault = %escaped(&fault), "an answer could not be sent");
        }
        was_ask
    }

    /// Sends the reports of an ask, one after the other.
    async fn send_progress(&self, progress: &AskProgress) -> Infallible {
        loop {
            let message = progress.next().await;
            if let Err(fault) = self.send(message).await {
                tracing::debug!(server = %escaped(&self.server), fault = %escaped(&fault), "the progress of an ask could not be sent");
            }
            sleep(PROGRESS_EVERY).await;
        }
    }

    /// The response to an ask, and the fault that ends the call if there was no answer.
    async fn answer(
        &self,
        origin: &Origin,
        round: u32,
        request: &IncomingRequest,
        progress: &AskProgress,
    ) -> (Option<Vec<u8>>, Option<AskFault>) {
        let refuse = |error: ErrorObject| (Some(write_error(Some(&request.id), &error)), None);
        let ask = match InputRequest::read(&request.method, request.params.as_deref()) {
            Ok(ask) => ask,
            Err(fault) => {
                return refuse(ErrorObject::invalid_params(format!("the ask cannot be read: {fault}")));
            }
        };
        if let Some(error) = not_supported(&ask, self.core.handlers.callbacks.declared()) {
            return refuse(error);
        }
        let elicitation = request.params.as_deref().and_then(elicitation_id_of);
        let key = elicitation.clone().unwrap_or_else(|| plain(&request.id));
        if let (InputRequest::Elicit(ElicitRequest::Url { .. }), Some(id)) = (&ask, elicitation) {
            self.listeners.expect_url(id);
        }
        let kind = ask.kind();
        let mut asked = AskRound::of_one(round, &key, ask);
        match answer_round(&self.core.handlers, origin, &mut asked, progress).await {
            Ok(wait) => {
                if !wait.is_zero() {
                    sleep(wait).await;
                }
                (asked.answers.get(&key).and_then(|answer| write_result(&request.id, answer).ok()), None)
            }
            Err(fault) => {
                // The reason is for the caller, not for the server.
                let internal = |text: &'static str| ErrorObject::new(ErrorCode::INTERNAL_ERROR, text);
                let error = match kind.known() {
                    _ if matches!(fault, AskFault::Url { .. }) => ErrorObject::invalid_params(
                        "The URL of the question must be a valid http or https URL",
                    ),
                    Some(KnownKind::Sampling) => ErrorObject::new(REJECTED, "User rejected sampling request"),
                    Some(KnownKind::Roots) => internal("The roots could not be listed"),
                    Some(KnownKind::Form | KnownKind::Url) | None => {
                        internal("The question could not be answered")
                    }
                };
                (Some(write_error(Some(&request.id), &error)), Some(fault))
            }
        }
    }
}

/// Returns the id as a key; an id that is a text stays unchanged.
fn plain(id: &RequestId) -> String {
    match serde_json::to_value(id) {
        Ok(serde_json::Value::String(text)) => text,
        _ => id.to_string(),
    }
}

/// The error for an ask that is not declared.
///
/// > Client does not support roots: `-32601` (Method not found)
/// >
/// > Server sends an `elicitation/create` request with a mode not declared in client capabilities: `-32602` (Invalid
/// > params)
fn not_supported(ask: &InputRequest, declared: AskSupport) -> Option<ErrorObject> {
    let mut needs = ask.needs();
    // The callback receives the requested context, and may leave it out.
    needs.sampling_context = false;
    if declared.covers(needs) {
        return None;
    }
    let kind = ask.kind().known();
    let (what, is_there) = match kind {
        Some(KnownKind::Form | KnownKind::Url) => ("Elicitation", declared.form || declared.url),
        Some(KnownKind::Sampling) => ("Sampling", declared.sampling),
        Some(KnownKind::Roots) => ("List roots", false),
        None => ("This ask", false),
    };
    let part = match kind.filter(|_| is_there) {
        Some(KnownKind::Form) => " of forms",
        Some(KnownKind::Url) => " of URLs",
        Some(KnownKind::Sampling) => " with tools",
        Some(KnownKind::Roots) | None => "",
    };
    let code = if is_there { ErrorCode::INVALID_PARAMS } else { ErrorCode::METHOD_NOT_FOUND };
    Some(ErrorObject::new(code, format!("{what}{part} not supported")))
}

/// Receives the messages that belong to no request, and answers the asks among them. Sends to `ready` once the stream of
/// the session is read, or is known not to come.
pub(crate) async fn session_task(shared: Arc<Shared>, ready: oneshot::Sender<()>) {
    let mut ready = Some(ready);
    let mut is_ready = || {
        if let Some(ready) = ready.take() {
            let _ = ready.send(());
        }
    };
    let (to_requests, mut requests) = mpsc::channel(shared.core.bounds.max_asks.max(1));
    let mut on_message = |message| match message {
        ServerMessage::Notification(notification) => shared.on_notification(&notification),
        ServerMessage::Request(request) => {
            if to_requests.try_send(shared.open_asks.received(request)).is_err() {
                tracing::warn!("the server asks too much at once: one request is dropped");
            }
        }
    };
    let mut listening = shared.link.listen(&mut is_ready, &mut on_message);
    let server = shared.server.clone();
    let of_session =
        Origin { server, method: method::INITIALIZE.into(), target: String::new(), arguments: None };
    let mut open = ServerAsks::new(&shared, of_session);
    let mut listens = true;
    while listens || !open.is_empty() {
        tokio::select! {
            biased;
            ended = &mut listening, if listens => {
                listens = false;
                shared.stream_closed.send_replace(true);
                if let Err(fault) = ended {
                    tracing::debug!(server = %escaped(&shared.server), fault = %escaped(&fault), "the server sends nothing more");
                    break;
                }
            }
            Some(request) = requests.recv() => {
                if let Err(fault) = open.take(request) {
                    tracing::warn!(server = %escaped(&shared.server), fault = %escaped(&fault), "a request of the server was refused");
                }
            }
            Some(fault) = open.next() => {
                if let Some(fault) = fault {
                    // The fault ends no call of the client, so only the log has it.
                    let cause = fault.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                    let fault = format!("{fault}{cause}");
                    tracing::warn!(server = %escaped(&shared.server), fault = %escaped(&fault), "an ask of the server was not answered");
                }
            }
        }
    }
    // Over HTTP, a session without a stream of its own continues: each request has its own stream.
    if shared.link.is_over() {
        shared.over.send_replace(true);
    }
}

// Notifications of a session that belong to no request: changes, logs, cancelled asks, finished URLs.

impl Shared {
    /// Handles a notification that belongs to no request.
    pub(crate) fn on_notification(&self, notification: &IncomingNotification) {
        match &*notification.method {
            method::CANCELLED => {
                if let Some(params) = read::<CancelledParams>(notification) {
                    self.open_asks.cancel(&params.request_id);
                }
            }
            method::ELICITATION_COMPLETE => self.on_url_finished(notification),
            method::MESSAGE => self.on_log_message(notification),
            method::TOOLS_LIST_CHANGED
            | method::PROMPTS_LIST_CHANGED
            | method::RESOURCES_LIST_CHANGED
            | method::RESOURCES_UPDATED => self.on_change(notification),
            method::TASKS_STATUS => self.listeners.notify(notification),
            _ if matches!(self.core.observers.of_extensions.pass(notification), Some(Ok(()))) => {}
            _ => {
                tracing::debug!(server = %escaped(&self.server), "a notification without a listener: dropped")
            }
        }
    }

    fn on_change(&self, notification: &IncomingNotification) {
        let cache = &self.core.cache;
        match &*notification.method {
            method::TOOLS_LIST_CHANGED => cache.forget_list(ListKind::Tools),
            method::PROMPTS_LIST_CHANGED => cache.forget_list(ListKind::Prompts),
            method::RESOURCES_LIST_CHANGED => cache.forget_list(ListKind::Resources),
            _ => {
                if let Some(params) = read::<ResourceUpdatedParams>(notification) {
                    cache.forget_resource(&params.uri);
                }
            }
        }
        self.listeners.notify(notification);
    }

    fn on_url_finished(&self, notification: &IncomingNotification) {
        let Some(ElicitationCompleteParams { elicitation_id, .. }) = read(notification) else { return };
        if !self.listeners.finish_url(&elicitation_id) {
            tracing::debug!(server = %escaped(&self.server), "an unknown URL is finished: ignored");
        } else if let Some(callback) = &self.core.handlers.callbacks.elicit_complete {
            callback(ElicitComplete { server: self.server.clone(), elicitation_id });
        }
    }

    fn on_log_message(&self, notification: &IncomingNotification) {
        let observers = &self.core.observers;
        let (Some(callback), Some(wanted)) = (&observers.log, observers.log_level()) else { return };
        let Some(params) = read::<LogMessageParams>(notification).filter(|params| params.level >= wanted)
        else {
            return;
        };
        // The message belongs to no request, or to one of several that cannot be determined.
        let context = EventContext {
            server: self.server.clone(),
            method: method::INITIALIZE.into(),
            name: None,
            round: 0,
            leg: 0,
        };
        let (level, logger, data) = (params.level, params.logger, params.data);
        callback(LogEvent { context: Arc::new(context), level, logger, data });
    }
}

fn read<T: DeserializeOwned>(notification: &IncomingNotification) -> Option<T> {
    serde_json::from_str(notification.params.as_deref().map_or("{}", |params| params.get())).ok()
}
