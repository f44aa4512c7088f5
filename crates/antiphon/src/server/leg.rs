//! The legs of a call that may ask: the answers are received, the handler runs, and what it asks leaves.

mod end;
mod in_session;

pub(super) use super::admit::admit;

use super::{
    Caller, Ctx, Request,
    admit::Admitted,
    ctx,
    emit::Emitter,
    in_flight::InFlight,
    refusal::Refusal,
    replay_check,
    round::{Carrier, Flow, Ran, seconds},
    serve::Inner,
    settings::Settings,
};
use antiphon_engine::{Leg as Engine, Purpose, Record, Setup};
use antiphon_seal::{Binding, CallId, Principal};
use antiphon_wire::{InputRequiredResult, InputResponses, ProtocolVersion};
use end::Ended;
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

/// What a leg begins with besides its request.
#[derive(Default)]
struct Entry {
    /// `None` on a first leg.
    record: Option<Record>,
    responses: Option<InputResponses>,
}

/// Runs the legs of one request: one, or in a session as many as the call has. `start` decodes the arguments and gives the
/// handler's future.
pub(super) async fn run<T: Send + 'static>(
    server: &Inner,
    mut admitted: Admitted<'_>,
    start: impl Fn(Ctx) -> Result<Running<T>, String>,
) -> Result<LegResult<T>, Refusal> {
    admitted.require(admitted.leg().settings.needs)?;
    let mut entry = match receive(server, &mut admitted)? {
        Received::Enter(entry) => entry,
        Received::AskAgain(requests, record) => {
            let permit = admitted.permit(requests)?;
            return admitted.seal(server, permit, &record, false).map(LegResult::InputRequired);
        }
    };
    let mut session = in_session::Progress::default();
    loop {
        let carrier = in_session::carrier(server, &admitted);
        let ran = match enter(server, &mut admitted, entry, carrier, &start).await? {
            Ok(ran) => ran,
            Err(fault) => return Ok(LegResult::BadArguments(fault)),
        };
        let (round, left) = match end::settle(server, &mut admitted, ran)? {
            Ended::Over(result) => return Ok(result),
            Ended::Leaves(round, left) => (round, left),
        };
        match in_session::carrier(server, &admitted) {
            Carrier::Sealed => {
                let permit = admitted.permit(round.requests)?;
                return end::seal(server, admitted, permit, *left).map(LegResult::InputRequired);
            }
            // The call goes on here: the handler is entered again.
            Carrier::Pushed(pushed) => {
                // In a box: it would make the future of every call large.
                let next = session.next(server, &mut admitted, &pushed, round, *left);
                entry = Box::pin(next).await?;
            }
        }
    }
}

/// What the answers of a request come to.
enum Received {
    /// The handler runs.
    Enter(Entry),
    /// Questions that the handler returned have no answer that counts: they alone are asked again.
    AskAgain(antiphon_wire::InputRequests, Record),
}

fn receive(server: &Inner, admitted: &mut Admitted<'_>) -> Result<Received, Refusal> {
    if admitted.leg().request.session.is_some() {
        return Ok(Received::Enter(Entry::default()));
    }
    let mut responses = read_responses(admitted.leg().request.params.input_responses)?;
    if admitted.late() {
        // What was kept stays; what came too late does not count, and is asked for again.
        responses = None;
    }
    let Some(mut record) = admitted.take_record() else {
        return Ok(Received::Enter(Entry { record: None, responses }));
    };
    let answer = |key: &str| responses.as_ref()?.get(key).map(RawValue::get);
    let again = record.receive(admitted.call(), answer, &server.limits.of_call());
    let again = again.map_err(|stop| end::refuse(admitted.leg().target, stop, admitted.call_id()))?;
    Ok(if again.is_empty() {
        Received::Enter(Entry { record: Some(record), responses })
    } else {
        Received::AskAgain(again, record)
    })
}

/// Runs the handler once; the inner error is that of its arguments.
async fn enter<T: Send + 'static>(
    server: &Inner,
    admitted: &mut Admitted<'_>,
    entry: Entry,
    carrier: Carrier,
    start: &impl Fn(Ctx) -> Result<Running<T>, String>,
) -> Result<Result<Ran<T>, String>, Refusal> {
    let Some(slot) = server.slot(admitted.leg().request, admitted.principal()) else {
        return Err(Refusal::Busy);
    };
    let checks = server.replay.is_on() && matches!(carrier, Carrier::Sealed);
    let shared = context(server, admitted, entry, carrier);
    let handler = match start(Ctx::new(Arc::clone(&shared))) {
        Ok(handler) => handler,
        Err(fault) => return Ok(Err(fault)),
    };
    let mut in_flight = InFlight::new(handler, Arc::clone(&shared), slot, server.limits.step_grace);
    let mut ran = (&mut in_flight).await;
    if checks {
        // Still in its place among the handlers that run.
        Box::pin(replay_check::check(server, admitted, start, &mut ran)).await;
    }
    end::tell(server, &ran);
    Ok(Ok(ran))
}

/// > Servers **SHOULD** validate that the data provided by the client is a valid `InputResponses` object
fn read_responses(text: Option<&RawValue>) -> Result<Option<InputResponses>, Refusal> {
    text.map(|text| serde_json::from_str(text.get()))
        .transpose()
        .map_err(|_| Refusal::params("params.inputResponses must be an object"))
}

fn context(server: &Inner, admitted: &mut Admitted<'_>, entry: Entry, carrier: Carrier) -> Arc<ctx::Leg> {
    let (call, number) = (admitted.call_id(), admitted.leg_number());
    let watches = server.replay.is_on() && matches!(carrier, Carrier::Sealed);
    let purpose = if watches { Purpose::Observe } else { Purpose::Serve };
    let setup = setup(server, admitted, &carrier, purpose);
    let Entry { record, responses } = entry;
    let (engine, unverified) = match (admitted.take_call(), record) {
        (Some(call), record) => {
            (Engine::resume(call, record.unwrap_or_default(), responses.as_ref(), setup), None)
        }
        (None, _) => (Engine::begin(setup), responses),
    };
    let leg = admitted.leg();
    Arc::new(ctx::Leg {
        unverified: unverified.filter(|responses| !responses.is_empty()),
        emitter: Emitter::of(leg.request, leg.caller.outbox, leg.request.registry(server).profile.logging),
        ..surroundings(server, admitted, call, number, engine, carrier)
    })
}

/// What the engine knows of a leg before it runs.
pub(super) fn setup(server: &Inner, admitted: &Admitted<'_>, carrier: &Carrier, purpose: Purpose) -> Setup {
    let settings = admitted.leg().settings;
    Setup {
        limits: server.limits.of_call(),
        delivery: carrier.delivery(),
        purpose,
        migration: settings.migration.clone(),
        lenient: settings.lenient_replay,
        now: seconds(server.clock.now()),
    }
}

/// The context of a handler on a leg on which nobody listens.
pub(super) fn surroundings(
    server: &Inner,
    admitted: &Admitted<'_>,
    call: Option<CallId>,
    number: u16,
    mut engine: Engine,
    carrier: Carrier,
) -> ctx::Leg {
    let leg = admitted.leg();
    ctx::Leg {
        call,
        leg: number,
        answered: engine.answered_by_hand(),
        state: engine.state().map(ToOwned::to_owned),
        unverified: None,
        asks: admitted.asks(),
        principal: admitted.principal().cloned(),
        bearer: leg.caller.bearer().cloned(),
        client_info: leg.request.meta.client_info.map(ToOwned::to_owned),
        version: version_of(leg.request),
        emitter: None,
        flow: Flow::new(engine, server.handle(), carrier),
    }
}

fn version_of(request: &Request<'_>) -> ProtocolVersion {
    match &request.session {
        None => ProtocolVersion::modern(&request.version),
        Some(session) => session.version().clone(),
    }
}
