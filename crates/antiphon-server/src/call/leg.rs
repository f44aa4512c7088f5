//! The legs of a call that may ask: answers are received, the handler runs, and its questions leave.

pub(crate) use crate::request::admit::admit;

use crate::{
    Ctx,
    at_most_once::ClaimedLeg,
    call::{
        DriveResult, LegCarrier, ctx,
        emit::Emitter,
        in_flight::InFlight,
        in_session,
        leg_end::{self, LegEnd},
        permit::ConcurrencyPermit,
        replay_check,
        result::{HandlerFuture, LegInput, LegResult},
        setup::{leg_context, setup},
    },
    refusal::Refusal,
    request::admit::Admitted,
    runtime::Runtime,
};
use antiphon_engine::{Leg as Engine, Purpose, Record};
use antiphon_wire::{InputResponses, escaped};
use serde_json::value::RawValue;
use std::{sync::Arc, time::Duration};

/// Runs the legs of one request: one leg, or in a session all legs of the call. `start` decodes the arguments and
/// returns the handler's future. `claim` is that of [`at_most_once::claim`](crate::at_most_once::claim).
pub(crate) async fn run<T: Send + 'static>(
    server: &Arc<Runtime>,
    mut admitted: Admitted<'_>,
    claim: Option<Arc<ClaimedLeg>>,
    start: impl Fn(Ctx) -> Result<HandlerFuture<T>, String>,
) -> Result<LegResult<T>, Refusal> {
    admitted.require(admitted.leg().settings.needs)?;
    let mut input = match receive(server, &mut admitted)? {
        LegStart::Enter(input) => input,
        LegStart::AskAgain(requests, record) => {
            let permit = admitted.permit(requests)?;
            return admitted.seal(server, permit, &record, false).await.map(LegResult::InputRequired);
        }
    };
    let mut session = in_session::SessionPacing::default();
    loop {
        let carrier = in_session::carrier(server, &admitted);
        let result = match enter(server, &mut admitted, input, carrier, claim.as_ref(), &start).await? {
            Ok(result) => result,
            Err(fault) => return Ok(LegResult::BadArguments(fault)),
        };
        let (round, left) = match leg_end::settle(server, &mut admitted, claim.as_deref(), result)? {
            LegEnd::Over(result) => return Ok(result),
            LegEnd::Leaves(round, left) => (round, left),
        };
        match in_session::carrier(server, &admitted) {
            LegCarrier::Sealed => {
                let permit = admitted.permit(round.requests)?;
                return leg_end::seal(server, admitted, permit, *left).await.map(LegResult::InputRequired);
            }
            // The call continues here: the handler is entered again.
            LegCarrier::Pushed(pushed) => {
                // Boxed, because it would enlarge the future of every call.
                let next = session.next(server, &mut admitted, &pushed, round, *left);
                input = Box::pin(next).await?;
            }
        }
    }
}

/// The next action after the answers of a request were received.
enum LegStart {
    /// The handler runs.
    Enter(LegInput),
    /// Returned questions without a valid answer: only these are asked again.
    AskAgain(antiphon_wire::InputRequests, Record),
}

/// Returns the answers of a request that came in time. In a session, answers come by other messages.
pub(crate) fn received_responses(admitted: &Admitted<'_>) -> Result<Option<InputResponses>, Refusal> {
    if admitted.leg().request.session.is_some() {
        return Ok(None);
    }
    let responses = read_responses(admitted.leg().request.params.input_responses)?;
    // The recorded answers stay; late answers are dropped, and their questions are asked again.
    Ok(responses.filter(|_| !admitted.late()))
}

fn receive(server: &Arc<Runtime>, admitted: &mut Admitted<'_>) -> Result<LegStart, Refusal> {
    if admitted.leg().request.session.is_some() {
        return Ok(LegStart::Enter(LegInput::default()));
    }
    let responses = received_responses(admitted)?;
    let Some(mut record) = admitted.take_record() else {
        return Ok(LegStart::Enter(LegInput { record: None, responses }));
    };
    let answer = |key: &str| responses.as_ref()?.get(key).map(RawValue::get);
    let again = record.receive(admitted.call(), answer, &server.engine_limits());
    let again =
        again.map_err(|stop| leg_end::refuse(server, admitted.leg().target, stop, admitted.call_id()))?;
    Ok(if again.is_empty() {
        LegStart::Enter(LegInput { record: Some(record), responses })
    } else {
        LegStart::AskAgain(again, record)
    })
}

/// Refuses answers of a caller whose answers the tool does not accept. Nothing has changed: the state that came stays
/// valid, and unused.
pub(crate) fn check_approver(admitted: &Admitted<'_>) -> Result<(), Refusal> {
    let (leg, Some(record)) = (admitted.leg(), admitted.record()) else { return Ok(()) };
    if !leg.settings.approved_by.is_set() {
        return Ok(());
    }
    let Some(responses) = received_responses(admitted)? else { return Ok(()) };
    let is_answered = record.asked().iter().any(|asked| responses.get(asked.path()).is_some());
    if !is_answered || leg.settings.approved_by.permits(admitted.principal()) {
        return Ok(());
    }
    tracing::warn!(call = admitted.call_id().map(|id| id.to_string()), target = ?escaped(leg.target), "an answer of a caller who may not approve: refused");
    Err(Refusal::NotApprover)
}

/// Runs the handler once. The inner error is a decoding error of the arguments.
async fn enter<T: Send + 'static>(
    server: &Arc<Runtime>,
    admitted: &mut Admitted<'_>,
    input: LegInput,
    carrier: LegCarrier,
    claim: Option<&Arc<ClaimedLeg>>,
    start: &impl Fn(Ctx) -> Result<HandlerFuture<T>, String>,
) -> Result<Result<DriveResult<T>, String>, Refusal> {
    let leg = admitted.leg();
    let slot = ConcurrencyPermit::take(server, leg.request, leg.caller, admitted.principal());
    let Some(slot) = slot else { return Err(Refusal::Busy) };
    let checks = server.replay.is_on() && matches!(carrier, LegCarrier::Sealed);
    let shared = context(server, admitted, input, carrier, claim.cloned());
    let handler = match start(Ctx::new(Arc::clone(&shared))) {
        Ok(handler) => handler,
        Err(fault) => return Ok(Err(fault)),
    };
    let mut in_flight = InFlight::new(handler, Arc::clone(&shared), slot, server.limits.step_grace);
    let mut result = match claim {
        None => (&mut in_flight).await,
        // Boxed, because it would enlarge the future of every call.
        Some(claim) => match Box::pin(claim.run(&mut in_flight)).await {
            Some(result) => result,
            None => return Err(Refusal::InFlight { retry_after: Duration::from_secs(1) }),
        },
    };
    if checks {
        // The second run uses the handler's own concurrency permit.
        Box::pin(replay_check::check(server, admitted, start, &mut result)).await;
    }
    leg_end::report_cause(server, &result);
    Ok(Ok(result))
}

/// > Servers **SHOULD** validate that the data provided by the client is a valid `InputResponses` object
fn read_responses(text: Option<&RawValue>) -> Result<Option<InputResponses>, Refusal> {
    text.map(|text| serde_json::from_str(text.get()))
        .transpose()
        .map_err(|_| Refusal::params("params.inputResponses must be an object"))
}

fn context(
    server: &Arc<Runtime>,
    admitted: &mut Admitted<'_>,
    input: LegInput,
    carrier: LegCarrier,
    claim: Option<Arc<ClaimedLeg>>,
) -> Arc<ctx::LegContext> {
    let (call, number) = (admitted.call_id(), admitted.leg_number());
    let watches = server.replay.is_on() && matches!(carrier, LegCarrier::Sealed);
    let purpose = if watches { Purpose::Observe } else { Purpose::Serve };
    let setup = setup(server, admitted, &carrier, purpose);
    let LegInput { record, responses } = input;
    let (engine, unverified) = match (admitted.take_call(), record) {
        (Some(call), record) => {
            (Engine::resume(call, record.unwrap_or_default(), responses.as_ref(), setup), None)
        }
        (None, _) => (Engine::begin(setup), responses),
    };
    let leg = admitted.leg();
    Arc::new(ctx::LegContext {
        unverified: unverified.filter(|responses| !responses.is_empty()),
        emitter: Emitter::of(leg.request, leg.caller.outbox, leg.logs),
        ..leg_context(server, admitted, call, number, engine, carrier, claim)
    })
}
