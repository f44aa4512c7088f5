//! A call that a client in a session of 2025-11-25 makes: one request, and questions that the server sends meanwhile.

use super::{
    Fault, Leg, Outcome, UserAnswer,
    message::{Reply, initialize, request_in_session},
    run::Run,
    simulation::Exchange,
    user::{AskCounts, no_answer},
};
use crate::{
    serve::{MessageService, MessageSession as _, Outbox},
    server::{Caller, Server, test_hooks},
};
use antiphon_wire::{ErrorCode, Incoming, InputRequest, RequestId, Response};
use http::HeaderMap;
use serde_json::{Value, json, value::to_raw_value};
use std::{future::poll_fn, pin::Pin, task::Poll, time::Duration};
use tokio::time::{Instant, timeout_at};

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
        opened.map(|(session, _)| session).map_err(|refused| ended(Reply::read(Some(refused))))
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
                    return Some(ended(reply));
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
            session.respond(response, &caller).map_err(|refused| ended(Reply::read(Some(refused))))?;
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

impl super::simulation::Simulation<'_> {
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

fn ended(reply: Reply) -> Outcome {
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
