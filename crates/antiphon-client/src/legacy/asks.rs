//! Requests of the server: answered by the same callbacks, through the same checks, as asks of today.
//!
//! Each is a round of one, since nobody can tell which of them belong together.

use crate::{
    Call, PendingCall,
    ask_progress::AskProgress,
    call_error::CallErrorKind,
    dispatch::{Origin, answer_round},
    legacy::Shared,
    transport::IncomingRequest,
};
use antiphon_wire::{
    AskKind, AskSupport, ElicitRequest, ErrorCode, ErrorObject, InputRequest, InputRequests, RequestId,
    elicitation_id_of, method, write_error, write_result,
};
use futures_util::{
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt as _},
};
use serde_json::json;
use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::sleep,
};

/// > User rejected sampling request: `-1`
const REJECTED: ErrorCode = ErrorCode(-1);

/// > Both parties **SHOULD** implement rate limiting to prevent flooding
///
/// So long nothing more is told of the progress of an ask.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// The asks that are open in a session, whomever they belong to.
#[derive(Default)]
pub(crate) struct OpenAsks {
    /// How many: while a person is asked, no request is late.
    pub(crate) count: watch::Sender<usize>,
    cancels: Arc<Cancels>,
}

/// What cancels the requests of the server, by their ids.
type Cancels = Mutex<HashMap<RequestId, Arc<Notify>>>;

impl OpenAsks {
    /// The server does not want the answer any more.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(open) = self.cancels.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            open.notify_one();
        }
    }

    /// A request that has just come. From here on it can be cancelled, though its turn may come later.
    pub(crate) fn heard(&self, request: IncomingRequest) -> HeardRequest {
        let cancelled = Arc::<Notify>::default();
        self.cancels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(request.id.clone(), Arc::clone(&cancelled));
        HeardRequest { of: Arc::clone(&self.cancels), request, cancelled }
    }

    fn begin(&self) -> OpenAsk<'_> {
        self.count.send_modify(|count| *count += 1);
        OpenAsk(self)
    }
}

/// A request of the server that waits for its turn, or is answered.
pub(crate) struct HeardRequest {
    of: Arc<Cancels>,
    request: IncomingRequest,
    cancelled: Arc<Notify>,
}

impl Drop for HeardRequest {
    fn drop(&mut self) {
        let mut cancels = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        // The server may have used its id again.
        if cancels.get(&self.request.id).is_some_and(|open| Arc::ptr_eq(open, &self.cancelled)) {
            cancels.remove(&self.request.id);
        }
    }
}

struct OpenAsk<'a>(&'a OpenAsks);

impl Drop for OpenAsk<'_> {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| *count -= 1);
    }
}

/// What ended asks that could not be answered. It is known before the server is told, which may then end the call in
/// words of its own.
#[derive(Default)]
struct Faults(Mutex<VecDeque<CallErrorKind>>);

impl Faults {
    fn add(&self, fault: CallErrorKind) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(fault);
    }

    fn first(&self) -> Option<CallErrorKind> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// The requests of the server that came with one request, or with none.
pub(crate) struct Counter {
    shared: Arc<Shared>,
    origin: Arc<Origin>,
    faults: Arc<Faults>,
    /// Each says at its end whether it was an ask.
    open: FuturesUnordered<BoxFuture<'static, bool>>,
    asking: usize,
    waiting: VecDeque<HeardRequest>,
    /// How many asks there were.
    rounds: u32,
}

impl Counter {
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

    /// Begins to answer.
    pub(crate) fn take(&mut self, heard: HeardRequest) -> Result<(), CallErrorKind> {
        let limit = self.shared.bounds.max_asks;
        if self.open.len() + self.waiting.len() >= limit.max(1) {
            return Err(CallErrorKind::TooManyAsks { asks: limit.saturating_add(1), limit });
        }
        if is_ask(&heard.request.method) && self.shared.desk.one_at_a_time && self.asking > 0 {
            self.waiting.push_back(heard);
        } else {
            self.start(heard);
        }
        Ok(())
    }

    fn start(&mut self, heard: HeardRequest) {
        if is_ask(&heard.request.method) {
            self.asking += 1;
            self.rounds = self.rounds.saturating_add(1);
        }
        let (shared, origin, round) = (Arc::clone(&self.shared), Arc::clone(&self.origin), self.rounds);
        let faults = Arc::clone(&self.faults);
        self.open.push(Box::pin(async move { shared.serve(&origin, round, &heard, &faults).await }));
    }

    /// How many asks there were.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// What ended one of them, whether the server has been told of it or not.
    pub(crate) fn fault(&self) -> Option<CallErrorKind> {
        self.faults.first()
    }

    /// When one of them has ended, what ended it; none if none is open.
    pub(crate) async fn next(&mut self) -> Option<Option<CallErrorKind>> {
        let was_ask = self.open.next().await?;
        if was_ask {
            self.asking -= 1;
            if let Some(heard) = self.waiting.pop_front() {
                self.start(heard);
            }
        }
        Some(self.fault())
    }
}

fn is_ask(name: &str) -> bool {
    matches!(name, method::ELICITATION_CREATE | method::SAMPLING_CREATE_MESSAGE | method::ROOTS_LIST)
}

impl Shared {
    /// Answers one request of the server, and says whether it was an ask.
    async fn serve(&self, origin: &Origin, round: u32, heard: &HeardRequest, faults: &Faults) -> bool {
        let request = &heard.request;
        let was_ask = is_ask(&request.method);
        let message = match &*request.method {
            // > The receiver **MUST** respond promptly with an empty response
            method::PING => write_result(&request.id, &json!({})).ok(),
            _ if was_ask => {
                let _open = self.asks.begin();
                let progress = AskProgress::of(request.params.as_deref());
                tokio::select! {
                    biased;
                    // > Receivers of cancellation notifications **SHOULD**: Not send a response for the cancelled request
                    () = heard.cancelled.notified() => None,
                    (message, fault) = self.answer(origin, round, request, &progress) => {
                        fault.into_iter().for_each(|fault| faults.add(fault));
                        message
                    }
                    // > Progress notifications **MUST** stop after completion
                    never = self.tell_progress(&progress) => match never {},
                }
            }
            other => Some(write_error(Some(&request.id), &ErrorObject::method_not_found(other))),
        };
        if let Some(message) = message
            && let Err(fault) = self.tell(message).await
        {
            tracing::warn!(server = %self.server, %fault, "an answer could not be sent");
        }
        was_ask
    }

    /// Sends what is reported of an ask, one after the other.
    async fn tell_progress(&self, progress: &AskProgress) -> Infallible {
        loop {
            let message = progress.next().await;
            if let Err(fault) = self.tell(message).await {
                tracing::debug!(server = %self.server, %fault, "the progress of an ask could not be sent");
            }
            sleep(PROGRESS_EVERY).await;
        }
    }

    /// The response to an ask, and what ends the call if there was no answer.
    async fn answer(
        &self,
        origin: &Origin,
        round: u32,
        request: &IncomingRequest,
        progress: &AskProgress,
    ) -> (Option<Vec<u8>>, Option<CallErrorKind>) {
        let refuse = |error: ErrorObject| (Some(write_error(Some(&request.id), &error)), None);
        let ask = match InputRequest::read(&request.method, request.params.as_deref()) {
            Ok(ask) => ask,
            Err(fault) => {
                return refuse(ErrorObject::invalid_params(format!("the ask cannot be read: {fault}")));
            }
        };
        if let Some(error) = not_supported(&ask, self.desk.callbacks.declared()) {
            return refuse(error);
        }
        let elicitation = request.params.as_deref().and_then(elicitation_id_of);
        let key = elicitation.clone().unwrap_or_else(|| plain(&request.id));
        if let (InputRequest::Elicit(ElicitRequest::Url { .. }), Some(id)) = (&ask, elicitation) {
            self.told.expect_url(id);
        }
        let kind = ask.kind();
        let mut asks = InputRequests::new();
        let _ = asks.insert(key.clone(), ask);
        // Whom it is for, the origin says.
        let mut pending = PendingCall::new(self.server.clone(), Call::resource(""), round, asks, None);
        match answer_round(&self.desk, origin, &mut pending, progress).await {
            Ok(wait) => {
                if !wait.is_zero() {
                    sleep(wait).await;
                }
                (pending.answers().get(&key).and_then(|answer| write_result(&request.id, answer).ok()), None)
            }
            Err(fault) => {
                // Why is the host's: its caller learns it.
                let internal = |text: &'static str| ErrorObject::new(ErrorCode::INTERNAL_ERROR, text);
                let error = match kind {
                    AskKind::Sampling => ErrorObject::new(REJECTED, "User rejected sampling request"),
                    AskKind::Roots => internal("The roots could not be listed"),
                    _ => internal("The question could not be answered"),
                };
                (Some(write_error(Some(&request.id), &error)), Some(fault))
            }
        }
    }
}

/// The id as a key: a text as it is.
fn plain(id: &RequestId) -> String {
    match serde_json::to_value(id) {
        Ok(serde_json::Value::String(text)) => text,
        _ => id.to_string(),
    }
}

/// The error for what is not declared.
///
/// > Client does not support roots: `-32601` (Method not found)
/// >
/// > Server sends an `elicitation/create` request with a mode not declared in client capabilities: `-32602` (Invalid
/// > params)
fn not_supported(ask: &InputRequest, declared: AskSupport) -> Option<ErrorObject> {
    let mut needs = ask.needs();
    // What the callback sees of it, it may leave out.
    needs.sampling_context = false;
    if declared.covers(needs) {
        return None;
    }
    let (what, is_there) = match ask.kind() {
        AskKind::Form | AskKind::Url => ("Elicitation", declared.form || declared.url),
        AskKind::Sampling => ("Sampling", declared.sampling),
        AskKind::Roots => ("List roots", false),
        _ => ("This ask", false),
    };
    let part = match ask.kind() {
        AskKind::Form if is_there => " of forms",
        AskKind::Url if is_there => " of URLs",
        AskKind::Sampling if is_there => " with tools",
        _ => "",
    };
    let code = if is_there { ErrorCode::INVALID_PARAMS } else { ErrorCode::METHOD_NOT_FOUND };
    Some(ErrorObject::new(code, format!("{what}{part} not supported")))
}
