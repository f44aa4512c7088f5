//! The legs of a call that may ask: answers are received, the handler runs, and its questions leave.

use crate::{
    at_most_once::ClaimedLeg,
    call::{
        DriveResult, Round,
        ctx::{self, Ctx, leg_context, setup},
        emit::Emitter,
        in_flight::{ConcurrencyPermit, InFlight},
        in_session,
        leg_end::{self, CallEnd, HandlerFuture, LegEnd, LegResult},
        leg_runtime::LazyLeg,
        replay_check,
    },
    errors::refusal::Refusal,
    in_place::rare,
    options::OnVersion,
    request::{admit::Admitted, carrier::LegCarrier},
    runtime::Runtime,
};
use antiphon_engine::{Leg as Engine, LegOutput, Purpose, Record};
use std::sync::Arc;

/// Runs the legs of one request: one leg, or in a session all legs of the call. `start` decodes the arguments and
/// returns the handler's future. `claim` is the claim of the leg in the store, if it has one.
pub(crate) async fn run<T: Send + 'static>(
    server: &Arc<Runtime>,
    admitted: &mut Admitted<'_>,
    claim: Option<&Arc<ClaimedLeg>>,
    start: impl Fn(Ctx) -> Result<HandlerFuture<T>, String>,
) -> Result<LegResult<T>, Refusal> {
    admitted.require(admitted.leg().settings.needs).map_err(|refusal| with_done(admitted, refusal))?;
    let again = admitted.receive(server).map_err(|stop| {
        let refusal = leg_end::refuse(server, admitted.leg().target, stop, admitted.call_id());
        with_done(admitted, refusal)
    })?;
    if !again.is_empty() {
        return rare(ask_again(server, admitted, again)).await;
    }
    let mut session = in_session::SessionPacing::default();
    // The record of the leg before, if the request did not bring it in its state: only sessions have one.
    let mut record = None;
    loop {
        let result = match enter(server, admitted, record, claim, &start).await? {
            Ok(result) => result,
            Err(fault) => return Ok(LegResult::Over(CallEnd::BadArguments(fault))),
        };
        let (round, left) = match leg_end::settle(server, admitted, claim.map(Arc::as_ref), result)? {
            LegEnd::Over(end) => return Ok(LegResult::Over(end)),
            LegEnd::Leaves(round, left) => (round, left),
        };
        let LegCarrier::Pushed(pushed) = admitted.carrier() else {
            return leave(server, admitted, claim.map(Arc::as_ref), round, left).await;
        };
        // The call continues here: the handler is entered again.
        let pushed = Arc::clone(pushed);
        let next = rare(session.next(server, admitted, &pushed, round, *left));
        record = Some(match claim {
            None => next.await?,
            Some(claim) => Box::pin(claim.run(next)).await.ok_or_else(|| claim.lost())??,
        });
    }
}

/// Seals a round, which leaves. The runner of a task keeps its state.
async fn leave<T>(
    server: &Runtime,
    admitted: &mut Admitted<'_>,
    claim: Option<&ClaimedLeg>,
    round: Round,
    left: Box<LegOutput>,
) -> Result<LegResult<T>, Refusal> {
    let new_task = match admitted.carrier().task_leg() {
        Some(task) => {
            task.report_record(&left.record);
            if let Some(by_hand) = round.by_hand {
                task.report(|news| news.elicitation_ids = by_hand.ids);
            }
            None
        }
        None => leg_end::new_task(&left),
    };
    let permit = admitted.permit(round.requests)?;
    let round = leg_end::seal(server, admitted, permit, left, claim).await?;
    Ok(match new_task {
        None => LegResult::InputRequired(round),
        Some(task) => LegResult::Promoted(task, round),
    })
}

/// Asks questions again whose answers are not valid.
async fn ask_again<T>(
    server: &Runtime,
    admitted: &mut Admitted<'_>,
    requests: antiphon_wire::InputRequests,
) -> Result<LegResult<T>, Refusal> {
    let record = admitted.take_record().unwrap_or_default();
    let permit = admitted.permit(requests)?;
    admitted.seal(server, permit, &record, false).await.map(LegResult::InputRequired)
}

/// Adds the completed steps of the record that came with the state.
fn with_done(admitted: &Admitted<'_>, refusal: Refusal) -> Refusal {
    let done = admitted.record().map(Record::steps_done).unwrap_or_default();
    refusal.after_steps(done, admitted.carrier().steps_kept(false))
}

/// Runs the handler once. The inner error is a decoding error of the arguments.
async fn enter<T: Send + 'static>(
    server: &Arc<Runtime>,
    admitted: &mut Admitted<'_>,
    record: Option<Box<Record>>,
    claim: Option<&Arc<ClaimedLeg>>,
    start: &impl Fn(Ctx) -> Result<HandlerFuture<T>, String>,
) -> Result<Result<DriveResult<T>, String>, Refusal> {
    let place = admitted.carrier().handler_place();
    let slot = ConcurrencyPermit::take(server, place, admitted.leg().caller, admitted.principal());
    let Some(slot) = slot else { return Err(Refusal::Busy) };
    let checks = server.replay.is_on() && admitted.carrier().has_replay_check();
    let shared = context(server, admitted, record, claim.cloned());
    let handler = match start(Ctx::new(Arc::clone(&shared))) {
        Ok(handler) => handler,
        Err(fault) => return Ok(Err(fault)),
    };
    let mut in_flight = InFlight::new(handler, Arc::clone(&shared), slot, server.limits.step_grace);
    let mut result = match claim {
        None => (&mut in_flight).await,
        Some(claim) => rare(claim.run(&mut in_flight)).await.ok_or_else(|| claim.lost())?,
    };
    if checks {
        // The second run uses the handler's own concurrency permit.
        Box::pin(replay_check::check(server, admitted, start, &mut result)).await;
    }
    leg_end::report_cause(server, &result);
    Ok(Ok(result))
}

fn context(
    server: &Arc<Runtime>,
    admitted: &mut Admitted<'_>,
    record: Option<Box<Record>>,
    claim: Option<Arc<ClaimedLeg>>,
) -> Arc<ctx::LegContext> {
    let (call, number) = (admitted.call_id(), admitted.leg_number());
    let watches = server.replay.is_on() && admitted.carrier().has_replay_check();
    let purpose = if watches { Purpose::Observe } else { Purpose::Serve };
    let writes_ahead = claim.as_ref().is_some_and(|claim| claim.writes_ahead());
    let setup = setup(server, admitted, purpose, writes_ahead);
    let answers = admitted.take_answers();
    let mut record = record.map(|record| *record).or_else(|| admitted.take_record());
    let mut begun = admitted.take_call();
    if let Some(claim) = claim.as_ref().filter(|_| writes_ahead) {
        let mut stored = claim.take_stored();
        if !stored.is_empty() {
            let settings = admitted.leg().settings;
            if settings.on_version == OnVersion::Restart {
                stored.restart(settings.version);
            }
            record =
                Some(record.unwrap_or_default().continued(stored, &settings.migration, settings.version));
            // The first request of a call has no state: its call is in the store.
            begun = begun.or_else(|| claim.take_first_call());
        }
    }
    let (engine, unverified) = match (begun, record) {
        (Some(call), record) => {
            let record = record.unwrap_or_default();
            (LazyLeg::begun(Engine::resume(call, record, answers.as_ref(), setup)), None)
        }
        (None, _) => (LazyLeg::first(setup), answers),
    };
    let leg = admitted.leg();
    let mut context = leg_context(server, admitted, call, number, engine, claim);
    context.unverified = unverified.filter(|answers| !answers.is_empty());
    context.emitter = match admitted.carrier().task_leg() {
        None => Emitter::of(leg.request, leg.caller.outbox, leg.logs).map(Box::new),
        Some(task) => Some(Box::new(Emitter::of_task(task))),
    };
    Arc::new(context)
}
