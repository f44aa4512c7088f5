//! The decision about a task between two legs, and after one, from the messages in its queue, and the leg itself: the request of the
//! call, sent to the server itself. No I/O: the run reads and writes.

use crate::{
    errors::refusal::Refusal,
    runtime::Runtime,
    task::{
        sealed::{Cancellation, open, seal},
        snapshot::{End, LegInput, Snapshot},
    },
    task_registry::leg::LegNews,
    trace::{TraceContext, otel},
};
use antiphon_engine::check_answer;
use antiphon_seal::canonical;
use antiphon_store::{TaskKey, TaskRow};
use antiphon_wire::{
    ErrorObject, InputRequest, InputRequests, Outcome, ProtocolVersion, UniqueNames, escaped, meta_keys,
    method,
};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value, value::RawValue};
use std::time::Duration;
use tracing::Span;

/// The number of legs in a row that may fail for now.
const FAILURES: u32 = 5;
/// The number of times that a cancelled task may ask again. Each question is cancelled at once.
const ASKED_AFTER_CANCELLATION: u32 = 16;

/// The next action of a task.
#[derive(Debug)]
pub(super) enum Next {
    /// A leg runs, with this input.
    Leg(LegInput),
    /// The task waits for a message, and until this second at most.
    Wait(Option<u64>),
    /// The task is over.
    End(End),
}

/// The action after a leg.
#[derive(Debug)]
pub(super) enum After {
    /// The task goes on.
    Continue,
    /// The same leg runs again, after this time.
    Again(Duration),
    /// The task is over.
    End(End),
    /// The server is gone.
    Gone,
}

/// Takes answers, by key, into the input of the next leg. Returns true if one of them belongs to an open question.
pub(super) fn take_answers(snapshot: &mut Snapshot, input: &mut LegInput, answers: &[GivenAnswer]) -> bool {
    let before = input.answers.len();
    for GivenAnswer { key, text, is_valid } in answers {
        // > A server **SHOULD** ignore any `inputResponses` responses mapped to a key that is not currently outstanding
        if let Some(path) = snapshot.questions.answer(key, *is_valid) {
            input.answers.push((path, text.clone()));
        }
    }
    input.answers.len() > before
}

/// Decides what the task does, with the answers that were taken. `now` is in Unix seconds.
pub(super) fn next(snapshot: &mut Snapshot, mut input: LegInput, now: u64) -> Next {
    match snapshot.cancellation {
        Cancellation::None => {}
        Cancellation::Requested => {
            let cancelled = snapshot.questions.cancel();
            if !snapshot.questions.is_empty() {
                // A question to the client's model cannot be cancelled by an answer.
                return Next::End(End::Cancelled);
            }
            if cancelled.is_empty() && input.answers.is_empty() {
                input.refuses_step = true;
            } else if !cancelled.is_empty() {
                input.cancel(cancelled);
                snapshot.cancellation = Cancellation::Met { asked: 0 };
            }
            return Next::Leg(input);
        }
        Cancellation::Met { asked } => {
            let cancelled = snapshot.questions.cancel();
            if !snapshot.questions.is_empty() || asked >= ASKED_AFTER_CANCELLATION {
                return Next::End(End::Cancelled);
            }
            if !cancelled.is_empty() {
                input.cancel(cancelled);
                snapshot.cancellation = Cancellation::Met { asked: asked + 1 };
            }
        }
    }
    let is_late = snapshot.deadline.is_some_and(|deadline| now > deadline);
    if snapshot.runs || is_late || !input.answers.is_empty() {
        return Next::Leg(input);
    }
    Next::Wait(snapshot.deadline.map(|deadline| deadline + 1))
}

/// Takes the end of a leg into the snapshot. At most `asks` questions are open then.
pub(super) fn after(snapshot: &mut Snapshot, end: LegEnd, news: LegNews, asks: usize) -> After {
    if let Some(status) = news.status {
        snapshot.report(status);
    }
    let refused = snapshot.leg.as_ref().is_some_and(|leg| leg.refuses_step);
    if refused && !news.is_cancellation_unmet && !matches!(end, LegEnd::Again(_) | LegEnd::Gone) {
        snapshot.cancellation = Cancellation::Met { asked: 0 };
    }
    let is_cancelled = matches!(snapshot.cancellation, Cancellation::Met { .. });
    match end {
        LegEnd::Completed(_) | LegEnd::Failed(_) if is_cancelled => After::End(End::Cancelled),
        LegEnd::Completed(result) => After::End(End::Completed(result)),
        LegEnd::Failed(error) => After::End(End::Failed(error)),
        LegEnd::Round(requests, state) => {
            let is_unmet = refused && !is_cancelled;
            // The handler waits too long for something that is not recorded: it is gone, and its guards have run.
            if is_unmet && requests.is_empty() && news.is_grace_over {
                return After::End(End::Cancelled);
            }
            (snapshot.state, snapshot.leg, snapshot.failures) = (state, None, 0);
            snapshot.runs = requests.is_empty();
            snapshot.questions.replace(requests.iter(), &news.kept, &news.elicitation_ids, asks);
            snapshot.deadline = news.deadline;
            After::Continue
        }
        LegEnd::Again(time) => After::Again(time),
        LegEnd::FailedForNow(error) => {
            snapshot.failures += 1;
            if snapshot.failures >= FAILURES {
                return After::End(if is_cancelled { End::Cancelled } else { End::Failed(error) });
            }
            After::Again(Duration::from_secs(1 << (snapshot.failures - 1)))
        }
        LegEnd::Gone => After::Gone,
    }
}

/// A message to a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Message {
    Answers(Vec<GivenAnswer>),
    Cancel,
}

/// An answer to an open question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct GivenAnswer {
    /// The key of the question on the wire.
    pub(super) key: String,
    pub(super) text: Box<RawValue>,
    /// False if the answer does not fit its question: the next leg asks again, and the question stays open until then.
    pub(super) is_valid: bool,
}

impl GivenAnswer {
    /// Checks an answer as the leg will.
    pub(super) fn new(server: &Runtime, key: &str, question: &InputRequest, answer: &RawValue) -> Self {
        // An answer that names a member twice would end the task: it counts as one that cannot be read.
        let is_unique = UniqueNames::from_walk(answer.get(), canonical::check).is_ok();
        let text = if is_unique { answer } else { RawValue::NULL };
        let is_valid = check_answer(question, text.get(), &server.engine_limits()).is_ok();
        Self { key: key.to_owned(), text: text.to_owned(), is_valid }
    }
}

impl Message {
    pub(super) fn seal(&self, server: &Runtime, key: TaskKey) -> Option<Vec<u8>> {
        seal(server, key, "message", self)
    }

    pub(super) fn open(server: &Runtime, key: TaskKey, sealed: &[u8]) -> Option<Self> {
        open(server, key, "message", sealed)
    }
}

/// Returns true if a cancellation waits in the queue.
pub(super) fn has_cancel(server: &Runtime, key: TaskKey, row: &TaskRow) -> bool {
    row.messages
        .iter()
        .any(|message| matches!(Message::open(server, key, &message.body), Some(Message::Cancel)))
}

/// The end of a leg.
pub(super) enum LegEnd {
    /// The call has its result.
    Completed(Box<RawValue>),
    /// The call has failed.
    Failed(ErrorObject),
    /// Questions, or none if the leg ended with state only.
    Round(InputRequests, Option<String>),
    /// The leg could not run now; it runs again with the same input, after this time.
    Again(Duration),
    /// A step of the leg failed for now. It runs again, but not for ever.
    FailedForNow(ErrorObject),
    /// The server is gone.
    Gone,
}

#[derive(Serialize)]
struct LegMessage<'a> {
    jsonrpc: &'static str,
    id: &'static str,
    method: &'static str,
    params: Params<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(rename = "_meta")]
    meta: RequestMeta<'a>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Answers::is_empty")]
    input_responses: Answers<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a str>,
}

struct Answers<'a>(&'a [(String, Box<RawValue>)]);

impl Answers<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Answers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(path, answer)| (path, answer)))
    }
}

struct RequestMeta<'a> {
    capabilities: &'a Map<String, Value>,
    client_info: Option<&'a RawValue>,
    trace: Option<&'a TraceContext>,
}

impl Serialize for RequestMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(meta_keys::PROTOCOL_VERSION, ProtocolVersion::V2026_07_28.as_str())?;
        map.serialize_entry(meta_keys::CLIENT_CAPABILITIES, self.capabilities)?;
        if let Some(info) = self.client_info {
            map.serialize_entry(meta_keys::CLIENT_INFO, info)?;
        }
        if let Some(trace) = self.trace {
            map.serialize_entry("traceparent", trace.traceparent())?;
            if let Some(state) = trace.tracestate() {
                map.serialize_entry("tracestate", state)?;
            }
        }
        map.end()
    }
}

/// Returns the request of the next leg.
pub(super) fn message(snapshot: &Snapshot, input: &LegInput) -> Result<Vec<u8>, serde_json::Error> {
    let request = &snapshot.request;
    serde_json::to_vec(&LegMessage {
        jsonrpc: "2.0",
        id: "task",
        method: method::TOOLS_CALL,
        params: Params {
            meta: RequestMeta {
                capabilities: &request.capabilities,
                client_info: request.client_info.as_deref(),
                trace: request.trace.as_ref(),
            },
            name: &request.name,
            arguments: request.arguments.as_deref(),
            input_responses: Answers(&input.answers),
            request_state: snapshot.state.as_deref(),
        },
    })
}

/// Returns the span of a leg: all legs of a task have the `traceparent` of the request that created it.
pub(super) fn span(key: TaskKey, snapshot: &Snapshot) -> Span {
    let traceparent = snapshot.request.trace.as_ref().map(TraceContext::traceparent);
    let span = tracing::info_span!("task", task = %escaped(&key), tool = ?escaped(&snapshot.request.name), traceparent);
    if let Some(trace) = &snapshot.request.trace {
        otel::set_parent(&span, trace);
    }
    span
}

/// Returns the end of a leg with this reply.
pub(super) fn end_of(reply: Option<Result<Box<RawValue>, Refusal>>) -> LegEnd {
    let result = match reply {
        None => return LegEnd::Gone,
        Some(Ok(result)) => result,
        Some(Err(refusal)) => return refused(&refusal),
    };
    match Outcome::<Value>::read(&result) {
        Ok(Outcome::Complete(_)) => LegEnd::Completed(result),
        Ok(Outcome::InputRequired(round)) => {
            let (requests, state) = round.into_parts();
            LegEnd::Round(requests, state)
        }
        other => {
            let fault = other.err().map(|fault| fault.to_string());
            tracing::error!(fault = ?fault.as_deref().map(|fault| escaped(fault).to_string()), "a leg of a task has an unknown result");
            LegEnd::Failed(ErrorObject::internal())
        }
    }
}

fn refused(refusal: &Refusal) -> LegEnd {
    match refusal.cause() {
        Refusal::InFlight { retry_after } => {
            LegEnd::Again((*retry_after).clamp(Duration::from_millis(100), Duration::from_secs(10)))
        }
        Refusal::Busy | Refusal::Store | Refusal::Codec => LegEnd::Again(Duration::from_secs(1)),
        Refusal::StepFailed { .. } => LegEnd::FailedForNow(refusal.to_error()),
        _ => LegEnd::Failed(refusal.to_error()),
    }
}
