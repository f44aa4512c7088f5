//! One leg of a call that may ask: judge the answers, run the handler, seal what it asks.

mod in_session;

pub(super) use super::admit::admit;

use super::{
    Caller, Ctx, HandlerOutcome, InputRequired, Request,
    admit::Admitted,
    ctx,
    emit::Emitter,
    in_flight::InFlight,
    refusal::Refusal,
    replay_check,
    round::{
        Answered, Asked, Flow, Journal, Judged, Kept, Machine, Payload, Push, Ran, check_elicit, check_key,
        judge,
    },
    serve::Inner,
    settings::Settings,
};
use antiphon_seal::{Binding, CallId, Principal};
use antiphon_wire::{InputRequest, InputRequests, InputRequiredResult, InputResponses, ProtocolVersion};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::sync::Arc;

/// One request for a tool, prompt or resource.
pub(super) struct Leg<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) target: &'a str,
    pub(super) arguments: Option<&'a RawValue>,
    pub(super) settings: &'a Settings,
    pub(super) caller: &'a Caller<'a>,
}

impl<'a> Leg<'a> {
    /// What this leg's state must belong to.
    pub(super) fn binding<'b>(&'b self, principal: Option<&'b Principal>) -> Binding<'b> {
        Binding {
            method: &self.request.method,
            target: self.target,
            arguments: self.arguments.map(RawValue::get),
            principal,
            tool_version: self.settings.version,
        }
    }
}

/// What a leg came to.
pub(super) enum LegResult<T> {
    Complete(T),
    InputRequired(InputRequiredResult),
    /// The arguments do not decode.
    BadArguments(String),
    /// The handler failed; the text is for the caller.
    Failed(Option<String>),
    /// The handler's resource does not exist.
    NotFound,
}

/// A handler that is about to run.
pub(super) type Running<T> = BoxFuture<'static, Ran<T>>;

/// What the answers of this leg are for.
#[derive(Default)]
struct Answers {
    answered: Vec<Answered>,
    state: Option<String>,
    journal: Journal,
    responses: Option<InputResponses>,
}

/// Runs one leg. `start` decodes the arguments and gives the handler's future.
pub(super) async fn run<T: Send + 'static>(
    server: &Inner,
    mut admitted: Admitted<'_>,
    start: impl Fn(Ctx) -> Result<Running<T>, String>,
) -> Result<LegResult<T>, Refusal> {
    admitted.require(admitted.leg().settings.needs)?;
    if admitted.leg().request.session.is_some() {
        return Box::pin(in_session::run(server, admitted, start)).await;
    }
    let mut responses = read_responses(admitted.leg().request.params.input_responses)?;
    if admitted.late() {
        // What was kept stays; what came too late does not count, and is asked for again.
        responses = None;
    }
    let answers = match admitted.take_payload() {
        None => Answers { responses, ..Answers::default() },
        Some(payload) if payload.asked.is_empty() => {
            Answers { state: payload.state, journal: payload.journal, responses, ..Answers::default() }
        }
        Some(payload) => match judge(payload, responses.as_ref(), &server.limits)? {
            Judged::Ready { answered, state, journal } => {
                Answers { answered, state, journal, responses: None }
            }
            Judged::AskAgain { payload, requests } => {
                let permit = admitted.permit(requests)?;
                return admitted.seal(server, permit, &payload, false).map(LegResult::InputRequired);
            }
        },
    };
    let Some(slot) = server.slot(admitted.leg().request, admitted.principal()) else {
        return Err(Refusal::Busy);
    };
    let shared = context(server, &mut admitted, answers);
    let handler = match start(Ctx::new(Arc::clone(&shared))) {
        Ok(handler) => handler,
        Err(fault) => return Ok(LegResult::BadArguments(fault)),
    };
    let mut in_flight = InFlight::new(handler, Arc::clone(&shared), slot, server.limits.step_grace);
    let mut ran = bounded(server, &admitted, &shared.flow, &mut in_flight).await?;
    if server.replay.is_on() {
        // Still in its place among the handlers that run.
        Box::pin(replay_check::check(server, &admitted, &start, &mut ran)).await;
    }
    drop(in_flight);
    let behind_effect = ran.ran_a_step();
    let (requests, payload) = match settle(&mut admitted, ran)? {
        Came::Over(result) => return Ok(result),
        Came::Suspended(requests, journal) => (requests, Payload { journal, ..Payload::default() }),
        Came::ByHand(required, journal) => {
            let (requests, asked, state) = asked(server, admitted.leg().target, required)?;
            (requests, Payload { state, asked, journal })
        }
    };
    let permit = admitted.permit(requests)?;
    admitted.seal(server, permit, &payload, behind_effect).map(LegResult::InputRequired)
}

/// What running a handler came to, for its call.
enum Came<T> {
    /// The end of it.
    Over(LegResult<T>),
    /// It awaits answers.
    Suspended(InputRequests, Journal),
    /// It asks by hand.
    ByHand(InputRequired, Journal),
}

/// From what a handler came to, to what is next.
fn settle<T>(admitted: &mut Admitted<'_>, ran: Ran<T>) -> Result<Came<T>, Refusal> {
    let target = admitted.leg().target;
    let (outcome, kept) = match ran {
        Ran::Returned(outcome, kept) => (outcome, *kept),
        Ran::Suspended(requests, kept) => {
            let Kept { call, journal, .. } = *kept;
            admitted.put_call(call);
            return Ok(Came::Suspended(requests, journal));
        }
        Ran::Stopped(stop, kept) => {
            let call = kept.call.as_ref().map(|call| call.id().to_string());
            return Err(stop.refuse(target, call));
        }
        // Nobody waits for this.
        Ran::Cancelled => return Err(Refusal::Internal),
    };
    if !kept.unmet.is_empty() && !matches!(outcome, HandlerOutcome::InputRequired(_)) {
        tracing::warn!(target, steps = ?kept.unmet, "the call is over, and did not come to steps it had recorded");
    }
    Ok(Came::Over(match outcome {
        HandlerOutcome::Complete(result) => LegResult::Complete(result),
        HandlerOutcome::InputRequired(required) if kept.asked => {
            let asks: Vec<&str> = required.asks.iter().map(super::Ask::key).collect();
            tracing::error!(target, by_hand = ?asks, "a handler asks by hand what it did not ask so before: a call asks in one way");
            return Err(Refusal::Internal);
        }
        HandlerOutcome::InputRequired(required) => {
            admitted.put_call(kept.call);
            return Ok(Came::ByHand(required, kept.journal));
        }
        HandlerOutcome::Told(text) => LegResult::Failed(Some(text)),
        HandlerOutcome::NotFound => LegResult::NotFound,
        HandlerOutcome::Failed(cause) => {
            tracing::error!(target, %cause, "a handler failed");
            LegResult::Failed(None)
        }
    }))
}

/// > Servers **SHOULD** validate that the data provided by the client is a valid `InputResponses` object
fn read_responses(text: Option<&RawValue>) -> Result<Option<InputResponses>, Refusal> {
    text.map(|text| serde_json::from_str(text.get()))
        .transpose()
        .map_err(|_| Refusal::params("params.inputResponses must be an object"))
}

fn context(server: &Inner, admitted: &mut Admitted<'_>, answers: Answers) -> Arc<ctx::Leg> {
    let now = server.clock.now();
    let (call, number) = (admitted.call_id(), admitted.leg_number());
    let Answers { answered, state, journal, responses } = answers;
    let (mut machine, unverified) = match admitted.take_call() {
        None => (Machine::begin(now), responses),
        Some(call) => (Machine::resume(call, journal, responses.as_ref(), &server.limits, now), None),
    };
    let push = in_session::push(server, admitted);
    if server.replay.is_on() && push.is_none() {
        machine.watch();
    }
    let leg = admitted.leg();
    Arc::new(ctx::Leg {
        answered,
        state,
        unverified: unverified.filter(|responses| !responses.is_empty()),
        emitter: Emitter::of(leg.request, leg.caller.outbox, leg.request.registry(server).profile.logging),
        ..surroundings(server, admitted, call, number, machine, push)
    })
}

/// What a handler is told on a leg that brings nothing along, and on which nobody listens.
pub(super) fn surroundings(
    server: &Inner,
    admitted: &Admitted<'_>,
    call: Option<CallId>,
    number: u16,
    mut machine: Machine,
    push: Option<Push>,
) -> ctx::Leg {
    let leg = admitted.leg();
    if leg.settings.lenient_replay {
        machine.be_lenient();
    }
    ctx::Leg {
        call,
        leg: number,
        answered: Vec::new(),
        state: None,
        unverified: None,
        asks: admitted.asks(),
        principal: admitted.principal().cloned(),
        bearer: leg.caller.bearer().cloned(),
        client_info: leg.request.meta.client_info.map(ToOwned::to_owned),
        version: version_of(leg.request),
        emitter: None,
        flow: Flow::new(machine, server.handle(), push),
    }
}

fn version_of(request: &Request<'_>) -> ProtocolVersion {
    match &request.session {
        None => ProtocolVersion::modern(&request.version),
        Some(session) => session.version().clone(),
    }
}

/// Runs the handler for as long as it may.
async fn bounded<T: Send + 'static>(
    server: &Inner,
    admitted: &Admitted<'_>,
    flow: &Flow,
    handler: &mut InFlight<T>,
) -> Result<Ran<T>, Refusal> {
    match tokio::time::timeout(server.limits.handler_time, handler).await {
        Ok(ran) => Ok(ran),
        Err(_elapsed) => Err(too_long(server, admitted, flow)),
    }
}

/// The handler's time is over.
fn too_long(server: &Inner, admitted: &Admitted<'_>, flow: &Flow) -> Refusal {
    let target = admitted.leg().target;
    match flow.machine().out_of_time() {
        Some(stop) => stop.refuse(target, admitted.call_id().map(|call| call.to_string())),
        None => {
            tracing::error!(target, limit = ?server.limits.handler_time, "a handler took too long and was dropped");
            server
                .replay
                .tell(|| format!("it took longer than {:?} and was dropped", server.limits.handler_time));
            Refusal::Internal
        }
    }
}

/// What the handler asks by hand, checked: the questions, what is kept of them, and its state.
fn asked(
    server: &Inner,
    target: &str,
    required: InputRequired,
) -> Result<(InputRequests, Vec<Asked>, Option<String>), Refusal> {
    let author_fault = |cause: String| {
        tracing::error!(target, %cause, "a handler asked what cannot be asked");
        server.replay.tell(|| cause);
        Refusal::Internal
    };
    let InputRequired { asks, state, .. } = required;
    if asks.len() > server.limits.asks {
        return Err(author_fault(format!(
            "{} asks in one round; the limit is {}",
            asks.len(),
            server.limits.asks
        )));
    }
    let (mut requests, mut asked) = (InputRequests::new(), Vec::with_capacity(asks.len()));
    for ask in &asks {
        check_key(ask.key()).map_err(&author_fault)?;
        if let InputRequest::Elicit(elicit) = ask.request() {
            check_elicit(elicit).map_err(|cause| author_fault(format!("`{}`: {cause}", ask.key())))?;
        }
        asked.push(Asked::first(ask.key(), ask.request()).map_err(|fault| author_fault(fault.to_string()))?);
        // > `inputRequests` keys are server assigned identifiers and **MUST** be unique within the scope of the request.
        if !requests.insert(ask.key(), ask.request().clone()) {
            return Err(author_fault(format!("the key `{}` is used twice in one round", ask.key())));
        }
    }
    Ok((requests, asked, state))
}
