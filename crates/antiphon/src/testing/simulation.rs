//! The replicas of one run, their clock, the requests that the bench writes, those in flight, and the replies that it reads.

use crate::{
    Clock, ManualClock,
    client::{Call, calls::CallKind},
    server::{
        Caller, Server,
        operations::{ReplayFault, ReplyMessage},
        test_hooks::{AfterCrash, Lifetime, after_crash, lease, lifetime, on_bench, store_in_memory},
    },
    store::{StoreClock, StoreIdentity, calls::Micros},
    testing::{Effects, Outcome, effects::Origin, setup::Setup},
};
use antiphon_seal::{KeyRing, SecretKey};
use antiphon_wire::{
    AskKind, ClientCapabilities, ElicitRequest, Implementation, Incoming, InitializeParams, InputRequest,
    InputRequests, InputResponses, Meta, ProtocolVersion, RequestId, method, write_request,
};
use futures_util::future::BoxFuture;
use http::{Extensions, HeaderMap};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use std::{
    collections::BTreeMap,
    future::poll_fn,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    task::{Context, Poll},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::{runtime::Handle, time::Instant};

/// The time at which every run begins, since the Unix epoch: a day in 2027.
const START: Duration = Duration::from_secs(1_800_000_000);

/// Messages from all replicas of a run, without repetitions.
#[derive(Clone, Debug, Default)]
pub(super) struct UniqueTexts(Arc<Mutex<Vec<String>>>);

impl UniqueTexts {
    fn add(&self, text: String) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }

    pub(super) fn take(&self) -> Vec<String> {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The state that all replicas of a run share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) effects: Effects,
    /// Differences between a handler and its replay.
    pub(super) replays: UniqueTexts,
    /// Causes of failures that the replies do not contain.
    pub(super) causes: UniqueTexts,
    clock: Clock,
    /// The store of the first replica, if it is in memory.
    store: Arc<OnceLock<Option<StoreIdentity>>>,
}

/// The environment of one run: its replicas, their clock and the effects.
pub(super) struct Simulation<'a> {
    pub(super) setup: &'a Setup,
    pub(super) call: &'a Call,
    pub(super) shared: Shared,
    /// The number of requests that were sent per leg, without those that the server must reject.
    pub(super) begun: BTreeMap<u16, usize>,
    upgraded: bool,
    manual_clock: ManualClock,
    replica: Server,
    requests: u32,
    /// Handlers of crashed replicas. The run neither polls nor drops them before its end.
    crashed: Vec<Exchange>,
}

impl<'a> Simulation<'a> {
    pub(super) async fn new(setup: &'a Setup, call: &'a Call, upgraded: bool) -> Self {
        let (manual_time, manual_clock) = Clock::manual(SystemTime::UNIX_EPOCH + START);
        // Timers in handlers use tokio's time, so the servers' clock includes it. The thread of a store reads the clock too: it
        // has the time of the runtime only inside of it.
        let (start, runtime) = (Instant::now(), Handle::try_current().ok());
        let clock = Clock::from_fn(move || {
            let _inside = runtime.as_ref().map(Handle::enter);
            manual_time.now() + start.elapsed()
        });
        let shared = Shared {
            effects: Effects::of_run(store_clock(&clock)),
            replays: UniqueTexts::default(),
            causes: UniqueTexts::default(),
            clock,
            store: Arc::default(),
        };
        for provide in &setup.providers {
            provide(shared.effects.clone()).await;
        }
        let replica = build(setup, call, upgraded, &shared);
        let (begun, crashed) = (BTreeMap::new(), Vec::new());
        Self { setup, call, shared, begun, upgraded, manual_clock, replica, requests: 0, crashed }
    }

    /// Builds another replica of the current build.
    pub(super) fn another(&self) -> Server {
        build(self.setup, self.call, self.upgraded, &self.shared)
    }

    /// Replaces the current replica. The handler that ran there is never polled again.
    pub(super) fn crash(&mut self, in_flight: Option<Exchange>) {
        self.crashed.extend(in_flight);
        self.replica = self.another();
    }

    /// Sends later requests to `replica`; returns the previous replica.
    pub(super) fn go_to(&mut self, replica: Server) -> Server {
        mem::replace(&mut self.replica, replica)
    }

    /// Uses the newer build for the current replica and all later ones.
    pub(super) fn upgrade(&mut self) {
        self.upgraded = true;
        self.crash(None);
    }

    pub(super) fn replica(&self) -> Server {
        self.replica.clone()
    }

    /// Returns the handle that moves the clock of the servers.
    pub(super) fn manual_clock(&self) -> ManualClock {
        self.manual_clock.clone()
    }

    pub(super) fn lifetime(&self) -> Lifetime {
        lifetime(&self.replica, self.call.name())
    }

    /// Returns the result of a leg whose process died, by the settings of the server.
    pub(super) fn after_crash(&self) -> AfterCrash {
        after_crash(&self.replica, self.call.name())
    }

    /// The lease of a leg at the server's store.
    pub(super) fn lease(&self) -> Duration {
        lease(&self.replica)
    }

    pub(super) fn pass(&self, time: Duration) {
        self.manual_clock.advance(time);
    }

    /// The time since the run began, by the servers' clock.
    pub(super) fn age(&self) -> Duration {
        self.shared.clock.now().duration_since(SystemTime::UNIX_EPOCH + START).unwrap_or_default()
    }

    /// Begins a request at the current replica.
    pub(super) fn begin(&mut self, leg: u16, retry: &Retry) -> Exchange {
        self.begin_at(self.replica(), leg, retry)
    }

    pub(super) fn begin_at(&mut self, replica: Server, leg: u16, retry: &Retry) -> Exchange {
        *self.begun.entry(leg).or_insert(0) += 1;
        self.exchange(replica, leg, retry, self.setup.caller())
    }

    /// Begins a request that the server must reject.
    pub(super) fn begin_refused(&mut self, leg: u16, retry: &Retry, sender: Extensions) -> Exchange {
        self.exchange(self.replica(), leg, retry, sender)
    }

    fn exchange(&mut self, replica: Server, leg: u16, retry: &Retry, sender: Extensions) -> Exchange {
        let message = request(self.setup, self.call, retry, self.next_id());
        let headers = HeaderMap::new();
        self.polled(leg, async move { replica.respond(&message, &Caller::http(&headers, &sender)).await })
    }

    /// The id of the next request.
    pub(super) fn next_id(&self) -> u32 {
        self.requests + 1
    }

    /// Returns the exchange that polls the next request of the run.
    pub(super) fn polled(
        &mut self,
        leg: u16,
        request: impl Future<Output = Option<ReplyMessage>> + Send + 'static,
    ) -> Exchange {
        self.requests += 1;
        let origin = Origin { leg, request: self.requests };
        Exchange { future: Box::pin(request), effects: self.shared.effects.clone(), origin, polls: 0 }
    }
}

/// Returns the servers' clock as the clock of a store.
fn store_clock(clock: &Clock) -> StoreClock {
    let clock = clock.clone();
    StoreClock::from_fn(move || {
        let since_1970 = clock.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Micros::new(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
    })
}

/// Builds a replica with the shared state of the run.
fn build(setup: &Setup, call: &Call, upgraded: bool, shared: &Shared) -> Server {
    let factory =
        setup.upgrade.as_ref().filter(|_| upgraded).map_or(&setup.factory, |upgrade| &upgrade.factory);
    let (replays, causes) = (shared.replays.clone(), shared.causes.clone());
    let report = move |fault: &ReplayFault| {
        let mut text = fault.to_string();
        if let Some(call) = fault.place().call {
            // The call id differs in each run.
            text = text.replace(&format!(" (call {call})"), "");
        }
        replays.add(text);
    };
    let ring = KeyRing::new(vec![SecretKey::from_bytes([0x5a; 32])]);
    let ring = ring.unwrap_or_else(|fault| panic!("the bench's key ring is invalid: {fault}"));
    let builder = factory(&shared.effects);
    let replica = on_bench(builder, ring, shared.clock.clone(), report, move |cause| causes.add(cause))
        .build()
        .unwrap_or_else(|fault| panic!("a replica cannot be built: {fault}"));
    let store = store_in_memory(&replica);
    assert!(
        *shared.store.get_or_init(|| store) == store
            || after_crash(&replica, call.name()) == AfterCrash::RunsAgain,
        "a replica has a store in memory of its own: all replicas of a run share `effects.shared::<MemoryStore>()`"
    );
    replica
}

/// One request in flight. The bench alone polls it, and counts the polls.
pub(super) struct Exchange {
    future: BoxFuture<'static, Option<ReplyMessage>>,
    effects: Effects,
    origin: Origin,
    pub(super) polls: usize,
}

impl Exchange {
    /// Polls the request `times` times. Returns `None` if there is no reply by then.
    pub(super) async fn polls(&mut self, times: usize) -> Option<Reply> {
        poll_fn(|cx| match Pin::new(&mut *self).poll(cx) {
            Poll::Ready(reply) => Poll::Ready(Some(reply)),
            Poll::Pending if self.polls >= times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}

impl Future for Exchange {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Reply> {
        self.polls += 1;
        self.effects.polling(Some(self.origin));
        let polled = self.future.as_mut().poll(cx);
        self.effects.polling(None);
        polled.map(Reply::read)
    }
}

/// The members of a request that differ between the legs of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Retry {
    pub(super) answers: Option<InputResponses>,
    pub(super) state: Option<String>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    /// Absent in a session.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_responses: Option<&'a InputResponses>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a str>,
}

/// One request, as a correct client writes it.
pub(super) fn request(setup: &Setup, call: &Call, retry: &Retry, id: u32) -> Vec<u8> {
    let params = Params {
        meta: Some(Meta::for_request(&ProtocolVersion::V2026_07_28, Some(&client()), &capabilities(setup))),
        input_responses: retry.answers.as_ref(),
        request_state: retry.state.as_deref(),
        ..Params::of(call)
    };
    message(id, call.method(), &params)
}

/// The request of a call in a session.
pub(super) fn request_in_session(call: &Call, id: u32) -> Vec<u8> {
    message(id, call.method(), &Params::of(call))
}

/// The request that opens a session.
pub(super) fn initialize(setup: &Setup, id: u32) -> Vec<u8> {
    let params = InitializeParams::new(ProtocolVersion::V2025_11_25, capabilities(setup), client());
    message(id, method::INITIALIZE, &params)
}

impl<'a> Params<'a> {
    fn of(call: &'a Call) -> Self {
        let (name, uri) = match call.kind() {
            CallKind::Tool | CallKind::Prompt => (Some(call.name()), None),
            CallKind::Resource => (None, Some(call.name())),
        };
        Self { name, uri, arguments: call.arguments(), ..Self::default() }
    }
}

fn client() -> Implementation {
    Implementation::new("antiphon-testing", env!("CARGO_PKG_VERSION"))
}

fn capabilities(setup: &Setup) -> ClientCapabilities {
    ClientCapabilities::for_asks(setup.user.declared())
}

fn message(id: u32, method: &str, params: &impl Serialize) -> Vec<u8> {
    write_request(&RequestId::from(u64::from(id)), method, params)
        .unwrap_or_else(|fault| panic!("a request cannot be written: {fault}"))
}

/// The outcome of one request.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Ended(Outcome),
    Asks { asks: InputRequests, state: Option<String> },
}

impl Reply {
    pub(super) fn read(reply: Option<ReplyMessage>) -> Self {
        match reply {
            Some(reply) => Self::read_bytes(&reply.body),
            None => Self::stopped("the server treated the request as a notification"),
        }
    }

    fn read_bytes(body: &[u8]) -> Self {
        let response = match Incoming::parse(body) {
            Ok(Incoming::Response(response)) => response,
            Ok(_) => return Self::stopped("the reply is not a response"),
            Err(fault) => return Self::stopped(format!("the reply cannot be read: {}", fault.error.message)),
        };
        let result = match response.outcome {
            Ok(result) => result,
            Err(error) => return Self::Ended(Outcome::Error(written(&error))),
        };
        match antiphon_wire::Outcome::<Value>::read(result) {
            Ok(antiphon_wire::Outcome::Complete(result)) => Self::Ended(Outcome::Complete(result)),
            Ok(antiphon_wire::Outcome::InputRequired(required)) => {
                let (asks, state) = required.into_parts();
                Self::Asks { asks, state }
            }
            Ok(_) => Self::stopped("the bench does not support this kind of reply"),
            Err(fault) => Self::stopped(format!("the reply cannot be read: {fault}")),
        }
    }

    pub(super) fn stopped(why: impl Into<String>) -> Self {
        Self::Ended(Outcome::Stopped(why.into()))
    }

    /// Returns the time after which the server wants the same request again, if it says so.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let Self::Ended(Outcome::Error(error)) = self else { return None };
        error.pointer("/data/retryAfterMs").and_then(Value::as_u64).map(Duration::from_millis)
    }

    pub(super) fn is_frozen_refusal(&self) -> bool {
        matches!(self, Self::Ended(outcome) if outcome.is_frozen_refusal())
    }

    /// Returns the content that is compared with another reply to the same request. The state is left out because the
    /// server seals it anew each time; URLs are left out because they may contain a new reference.
    pub(super) fn comparable(&self, setup: &Setup) -> Value {
        match self {
            Self::Ended(outcome) => outcome.comparable(setup),
            Self::Asks { asks, .. } => {
                asks.iter().map(|(key, ask)| json!({ "key": key, "asks": question(ask) })).collect()
            }
        }
    }

    /// Returns a description for messages, without what is disregarded.
    pub(super) fn describe(&self, setup: &Setup) -> String {
        match self {
            Self::Ended(outcome) => outcome.disregarded(setup).to_string(),
            Self::Asks { asks, .. } => {
                let texts = asks.iter().map(|(key, ask)| format!("`{key}`: {}", question(ask)));
                format!("the questions {}", texts.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// The keys and kinds of the asks in the reply.
    pub(super) fn asked(&self) -> Vec<(String, AskKind)> {
        match self {
            Self::Ended(_) => Vec::new(),
            Self::Asks { asks, .. } => asks.iter().map(|(key, ask)| (key.to_owned(), ask.kind())).collect(),
        }
    }
}

fn question(ask: &InputRequest) -> Value {
    match ask {
        InputRequest::Elicit(ElicitRequest::Url { message, .. }) => json!({ "open": message }),
        other => written(other),
    }
}

fn written(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_else(|fault| Value::String(fault.to_string()))
}

/// Returns an answer that is invalid for this ask.
pub(super) fn invalid_answer(ask: &InputRequest) -> Value {
    match ask {
        InputRequest::Elicit(ElicitRequest::Form { requested_schema, .. }) => {
            // No field of a form is an object.
            let fields = requested_schema.fields().iter().map(|field| (field.name.clone(), json!({})));
            json!({ "action": "accept", "content": Value::Object(fields.collect()) })
        }
        InputRequest::Elicit(_) => json!({ "action": "perhaps" }),
        _ => json!("invalid_answer"),
    }
}
