//! Runs a call through a real client, on a modern server or in a session of 2025-11-25: one request, and questions that the server
//! sends meanwhile.

use crate::{
    client::{
        Call, CallbackError, Client, ClientBuilder, ClientError, Mode, asks::ElicitAsk, transport::memory,
    },
    serve::{MessageService, MessageSession as _, Outbox, stdio::serve_streams},
    server::{Caller, Server, test_hooks},
    testing::{
        CallRun, Fault, Leg, Outcome, UserAnswer,
        run::Run,
        setup::Setup,
        simulation::{Exchange, Reply, Simulation, initialize, request_in_session},
        user::{AskCounts, no_answer},
    },
};
use antiphon_wire::{
    AskKind, ElicitRequest, ElicitResult, ErrorCode, Incoming, InputRequest, ProtocolVersion, RequestId,
    Response,
};
use http::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::{Value, json, value::to_raw_value};
use std::{
    collections::BTreeMap,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// The scripted user behind the client's callbacks, and a record of the asks.
struct Answering {
    setup: Setup,
    asked: Mutex<(AskCounts, Vec<(String, AskKind)>)>,
    manual_clock: crate::ManualClock,
}

pub(super) async fn run(setup: &Setup, call: &Call) -> CallRun {
    let simulation = Simulation::new(setup, call, false).await;
    let answering = Arc::new(Answering {
        setup: setup.clone(),
        asked: Mutex::default(),
        manual_clock: simulation.manual_clock(),
    });
    let (transport, input, output) = memory::duplex();
    // The client reads no replies after it has closed.
    let serving = serve_streams(input, output, simulation.replica()).drain_timeout(Duration::ZERO);
    let client = client_of(&answering).connect(transport);
    let called = async {
        let result = client.call(call.clone()).await;
        client.close().await;
        result
    };
    // The server ends when the client's side is closed.
    let (result, served) = futures_util::future::join(called, serving).await;
    let outcome = match (result, served) {
        (Ok(finished), Ok(())) => match serde_json::to_value(&finished) {
            Ok(result) => Outcome::Complete(result),
            Err(fault) => Outcome::Stopped(fault.to_string()),
        },
        (Ok(_), Err(fault)) => Outcome::Stopped(format!("the server's streams failed: {fault}")),
        (Err(error), _) => ended(&error),
    };
    let asked = answering.asked.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
    done(outcome, asked, &simulation)
}

/// The client does not report legs, so the result has one leg with all asks.
fn done(outcome: Outcome, asked: Vec<(String, AskKind)>, simulation: &Simulation<'_>) -> CallRun {
    let legs = vec![Leg { asked, polls: 0 }];
    let (effects, causes) = (simulation.shared.effects.clone(), simulation.shared.causes.take());
    CallRun {
        outcome,
        is_unknown: false,
        has_sessions: false,
        called_again: None,
        legs,
        effects,
        causes,
        fault_occurred: true,
        begun: BTreeMap::new(),
        findings: Vec::new(),
    }
}

fn ended(error: &ClientError) -> Outcome {
    match error.server_error().map(serde_json::to_value) {
        Some(Ok(error)) => Outcome::Error(error),
        _ => Outcome::Stopped(in_full(error)),
    }
}

/// Returns the text of an error and of its sources.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Builds a client with the capabilities that the scripted user declares.
fn client_of(answering: &Arc<Answering>) -> ClientBuilder {
    let declared = answering.setup.user.declared();
    let modern = Mode::Pinned(ProtocolVersion::V2026_07_28);
    let mut client = Client::builder("antiphon-testing", env!("CARGO_PKG_VERSION")).mode(modern);
    if declared.form {
        let asked = answering.clone();
        client = client.on_elicit_form(move |ask| asked.clone().elicited(ElicitAsk::Form(ask)));
    }
    if declared.url {
        let asked = answering.clone();
        client = client.on_elicit_url(move |ask| asked.clone().elicited(ElicitAsk::Url(ask)));
    }
    if declared.sampling {
        let asked = answering.clone();
        client = client.on_sample(move |ask| {
            let request = InputRequest::CreateMessage(Box::new(ask.params));
            std::future::ready(asked.answer(&ask.context.key, &request))
        });
    }
    if declared.sampling_tools {
        client = client.sampling_tools(true);
    }
    if declared.sampling_context {
        client = client.sampling_context(true);
    }
    if declared.roots {
        let asked = answering.clone();
        client = client.on_roots(move |ask| {
            let request = InputRequest::ListRoots { meta: None };
            std::future::ready(asked.answer(&ask.context.key, &request))
        });
    }
    client
}

impl Answering {
    async fn elicited(self: Arc<Self>, ask: ElicitAsk) -> Result<ElicitResult, CallbackError> {
        let request = match &ask {
            ElicitAsk::Form(form) => {
                let requested_schema = form.schema.clone();
                ElicitRequest::Form { message: form.message.clone(), requested_schema }
            }
            ElicitAsk::Url(page) => {
                ElicitRequest::Url { message: page.message.clone(), url: page.url.clone() }
            }
            other => {
                let text = format!("the scripted user does not know this kind of ask: {other:?}");
                return Err(CallbackError::new(text));
            }
        };
        self.answer(&ask.context().key, &InputRequest::Elicit(request))
    }

    fn answer<T: DeserializeOwned>(&self, key: &str, request: &InputRequest) -> Result<T, CallbackError> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.1.push((key.to_owned(), request.kind()));
        let Some(UserAnswer { answer, after }) = self.setup.user.next_answer(key, request, &mut asked.0)
        else {
            return Err(CallbackError::new(no_answer(key)));
        };
        self.manual_clock.advance(after);
        let Some(answer) = answer else {
            return Err(CallbackError::new(format!(
                "the scripted user leaves `{key}` unanswered, which a client cannot send"
            )));
        };
        Ok(serde_json::from_value(answer)?)
    }
}

type Session = <Server as MessageService>::Session;

/// The time in which nothing happens before the user answers: work that needs no person comes first, as in a call of
/// 2026-07-28.
const REST: Duration = Duration::from_secs(1);
/// The number of times that the user is asked for an answer that the script leaves out.
const PATIENCE: usize = 8;

/// A question that the server sent.
struct SentAsk {
    id: RequestId,
    key: String,
    request: InputRequest,
}

/// The user's answers to the questions of one round.
struct Answers {
    at: Instant,
    answers: Vec<(RequestId, Value)>,
}

/// The next event of a call.
enum Event {
    Replied(Reply),
    /// The instance has crashed.
    Crashed,
    /// Messages that arrived together.
    Sent(Vec<Vec<u8>>),
}

impl Run<'_> {
    /// Returns true if the whole call is made in a session.
    pub(super) fn is_in_session(&self) -> bool {
        matches!(self.fault, Some(Fault::Session | Fault::SessionCrash { .. })) && self.has_sessions()
    }

    /// Returns true if a session may make the call.
    pub(super) fn has_sessions(&self) -> bool {
        test_hooks::has_sessions(&self.simulation.replica(), self.simulation.call.name())
    }

    /// Makes the call in a session, from its first request to its end.
    pub(super) async fn in_session(&mut self) -> Outcome {
        if let Some(Fault::SessionCrash { polls }) = self.fault {
            if let Some(outcome) = self.in_one_session(*polls).await {
                return outcome;
            }
            // The person, too, begins again.
            self.asked = AskCounts::default();
            self.called_again = Some(self.simulation.next_id());
        }
        let outcome = self.in_one_session(usize::MAX).await;
        let outcome = outcome.unwrap_or_else(|| Outcome::Stopped("the session is lost".to_owned()));
        self.fault_occurred = !wants_urls(&outcome);
        outcome
    }

    /// Makes the call in a session of its own. Returns `None` if its instance crashed, after so many polls.
    async fn in_one_session(&mut self, polls: usize) -> Option<Outcome> {
        self.session = Some(Leg { asked: Vec::new(), polls: 0 });
        match self.open() {
            Ok(session) => self.call_in(&session, polls).await,
            Err(outcome) => Some(outcome),
        }
    }

    fn open(&self) -> Result<Session, Outcome> {
        let (message, sender, headers) =
            (initialize(self.setup(), 0), self.setup().caller(), HeaderMap::new());
        let opened = match Incoming::parse(&message) {
            Ok(Incoming::Request(request)) => {
                self.simulation.replica().initialize(request, &Caller::http(&headers, &sender))
            }
            _ => return Err(Outcome::Stopped("the bench wrote an invalid `initialize`".to_owned())),
        };
        opened.map(|(session, _)| session).map_err(|refused| ended_by(Reply::read(Some(refused))))
    }

    async fn call_in(&mut self, session: &Session, polls: usize) -> Option<Outcome> {
        let outbox = Outbox::default();
        let mut exchange = self.simulation.begin_in_session(session, &outbox);
        let (mut open, mut answers) = (Vec::new(), None::<Answers>);
        loop {
            let event = next(&mut exchange, &outbox, polls);
            let until = match &answers {
                Some(answers) => Some(answers.at),
                None => (!open.is_empty()).then(|| Instant::now() + REST),
            };
            let event = match until {
                Some(until) => timeout_at(until, event).await,
                None => Ok(event.await),
            };
            match event {
                Ok(Event::Replied(reply)) => {
                    if let Some(leg) = &mut self.session {
                        leg.polls += exchange.polls;
                    }
                    return Some(ended_by(reply));
                }
                Ok(Event::Crashed) => {
                    self.simulation.crash(Some(exchange));
                    return None;
                }
                Ok(Event::Sent(messages)) => {
                    open.extend(messages.iter().filter_map(|message| read(session, message)));
                }
                Err(_elapsed) => {
                    let done = match answers.take() {
                        Some(answers) => self.send(session, answers),
                        None => {
                            open.retain(|ask| is_open(session, ask));
                            self.answers(std::mem::take(&mut open)).map(|made| answers = Some(made))
                        }
                    };
                    if let Err(outcome) = done {
                        return Some(outcome);
                    }
                }
            }
        }
    }

    /// Returns the answers to the open questions, which are sent together. A round takes as long as its slowest answer.
    fn answers(&mut self, asks: Vec<SentAsk>) -> Result<Answers, Outcome> {
        let (mut answers, mut delay) = (Vec::new(), Duration::ZERO);
        for ask in asks {
            if let Some(leg) = &mut self.session {
                leg.asked.push((ask.key.clone(), ask.request.kind()));
            }
            let (answer, after) = self.answer_to(&ask).map_err(Outcome::Stopped)?;
            delay = delay.max(after);
            answers.push((ask.id, answer));
        }
        Ok(Answers { at: Instant::now() + delay, answers })
    }

    fn send(&self, session: &Session, Answers { answers, .. }: Answers) -> Result<(), Outcome> {
        let (sender, headers) = (self.setup().caller(), HeaderMap::new());
        for (id, answer) in answers {
            let answer = to_raw_value(&answer).map_err(|fault| Outcome::Stopped(fault.to_string()))?;
            let response = Response { id: Some(id), outcome: Ok(&*answer) };
            let caller = Caller::http(&headers, &sender);
            session.respond(response, &caller).map_err(|refused| ended_by(Reply::read(Some(refused))))?;
        }
        Ok(())
    }

    /// Returns the user's answer, and its delay. A user who leaves a question of a session out answers it later.
    fn answer_to(&mut self, ask: &SentAsk) -> Result<(Value, Duration), String> {
        let mut delay = Duration::ZERO;
        for _ in 0..PATIENCE {
            let user = &self.simulation.setup.user;
            let answered = user.next_answer(&ask.key, &ask.request, &mut self.asked);
            let UserAnswer { answer, after } = answered.ok_or_else(|| no_answer(&ask.key))?;
            delay += after;
            if let Some(answer) = answer {
                return Ok((answer, delay));
            }
        }
        Err(format!("the scripted user leaves `{}` unanswered", ask.key))
    }
}

impl Simulation<'_> {
    /// Begins the call in a session of the current replica.
    fn begin_in_session(&mut self, session: &Session, outbox: &Outbox) -> Exchange {
        *self.begun.entry(1).or_insert(0) += 1;
        let message = request_in_session(self.call, self.next_id());
        let (session, outbox) = (session.clone(), outbox.clone());
        let (sender, headers) = (self.setup.caller(), HeaderMap::new());
        self.polled(1, async move {
            let Ok(Incoming::Request(request)) = Incoming::parse(&message) else { return None };
            session.call(request, &Caller::http(&headers, &sender).with_outbox(&outbox)).await
        })
    }
}

/// Polls the call until it has a reply, has sent messages, or was polled so often.
async fn next(exchange: &mut Exchange, outbox: &Outbox, polls: usize) -> Event {
    poll_fn(|cx| {
        if let Poll::Ready(reply) = Pin::new(&mut *exchange).poll(cx) {
            return Poll::Ready(Event::Replied(reply));
        }
        if exchange.polls >= polls {
            return Poll::Ready(Event::Crashed);
        }
        outbox.poll_pop(cx).map(|first| {
            let mut messages = vec![first];
            messages.extend(std::iter::from_fn(|| outbox.pop()));
            Event::Sent(messages)
        })
    })
    .await
}

/// Returns true unless the server has withdrawn the question.
fn is_open(session: &Session, ask: &SentAsk) -> bool {
    ask.id.as_u64().is_some_and(|id| test_hooks::asked_key(session, id).is_some())
}

/// Reads a question. Other messages, and questions that were withdrawn, are none.
fn read(session: &Session, message: &[u8]) -> Option<SentAsk> {
    let Ok(Incoming::Request(request)) = Incoming::parse(message) else { return None };
    let key = test_hooks::asked_key(session, request.id.as_u64()?)?;
    let ask = json!({ "method": request.method, "params": request.params });
    Some(SentAsk { id: request.id, key, request: serde_json::from_value(ask).ok()? })
}

fn ended_by(reply: Reply) -> Outcome {
    match reply {
        Reply::Ended(outcome) => outcome,
        Reply::Asks { .. } => Outcome::Stopped("a session got questions as a result".to_owned()),
    }
}

/// Returns true for the end of a call that is sent again after a person has opened its URLs.
fn wants_urls(outcome: &Outcome) -> bool {
    let code = ErrorCode::URL_ELICITATION_REQUIRED.0;
    matches!(outcome, Outcome::Error(error) if error["code"] == json!(code))
}

/// Returns a [comparable](Outcome::comparable) outcome in the form that it has in a session: without members that only
/// 2026-07-28 has, and of an error the text without the advice on its steps.
pub(super) fn in_session(mut compared: Value) -> Value {
    if let Some(result) = compared.get_mut("result").and_then(Value::as_object_mut) {
        result.retain(|name, value| match name.as_str() {
            "resultType" | "ttlMs" | "cacheScope" => false,
            "_meta" => *value != json!({}),
            _ => true,
        });
        // Structured content that is no object becomes text.
        if let Some(structured) = result.get("structuredContent").filter(|found| !found.is_object()).cloned()
        {
            result.remove("structuredContent");
            if result.get("content").is_none_or(|content| *content == json!([])) {
                result.insert("content".into(), json!([{ "type": "text", "text": structured.to_string() }]));
            }
        }
    }
    if let Some(text) = compared.pointer("/error/message").and_then(Value::as_str) {
        let text = text.split(" Completed before that").next().unwrap_or_default();
        compared = json!({ "error": text });
    }
    compared
}
