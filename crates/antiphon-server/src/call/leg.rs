//! The legs of a call that may ask: answers are received, the handler runs, with its permit and its cancellation, and its questions
//! leave.

use crate::{
    at_most_once::ClaimedLeg,
    call::{
        DriveResult, Round,
        ctx::{self, Ctx, leg_context, setup},
        emit::Emitter,
        in_session,
        leg_end::{self, CallEnd, HandlerFuture, LegEnd, LegResult},
        leg_runtime::LazyLeg,
        replay_check,
    },
    errors::refusal::Refusal,
    identity::Caller,
    in_place::rare,
    options::OnVersion,
    quota::QuotaPermit,
    request::{
        admit::Admitted,
        carrier::{HandlerPlace, LegCarrier},
    },
    runtime::Runtime,
};
use antiphon_engine::{Leg as Engine, LegOutput, Purpose, Record};
use antiphon_seal::Principal;
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::runtime::Handle;

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

/// A running handler. Dropping it cancels the handler: at once, or, if a step runs, after that step has ended. The step
/// continues on a task of its own, to its end or for `grace`; no line after it runs.
pub(crate) struct InFlight<T: Send + 'static> {
    /// `None` after the handler has finished.
    handler: Option<HandlerFuture<T>>,
    /// Released when all work for the request is done.
    slot: Option<ConcurrencyPermit>,
    leg: Arc<ctx::LegContext>,
    grace: Duration,
}

impl<T: Send + 'static> InFlight<T> {
    pub(crate) fn new(
        handler: HandlerFuture<T>,
        leg: Arc<ctx::LegContext>,
        slot: ConcurrencyPermit,
        grace: Duration,
    ) -> Self {
        Self { handler: Some(handler), slot: Some(slot), leg, grace }
    }
}

impl<T: Send + 'static> Future for InFlight<T> {
    type Output = DriveResult<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<DriveResult<T>> {
        // Taken out first: a handler that panics is dropped here and not polled again.
        let Some(mut handler) = self.handler.take() else { return Poll::Pending };
        let polled = handler.as_mut().poll(cx);
        if polled.is_pending() {
            self.handler = Some(handler);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for InFlight<T> {
    fn drop(&mut self) {
        let Some(handler) = self.handler.take() else { return };
        let runs = self.leg.runtime.with(|leg| {
            leg.cancel();
            leg.has_running_step()
        });
        if !runs {
            return;
        }
        self.leg.runtime.carrier().detach();
        let Ok(runtime) = Handle::try_current() else { return };
        let (grace, leg) = (self.grace, Arc::clone(&self.leg));
        let detached = DetachedStep::begin(&leg, self.slot.take());
        runtime.spawn(async move {
            let _detached = detached;
            if tokio::time::timeout(grace, handler).await.is_err() {
                tracing::warn!(call = ?leg.call, ?grace, "a step of a cancelled request exceeded its time and was dropped");
            }
        });
    }
}

/// A step that still runs after its request was cancelled. It is counted while it exists.
struct DetachedStep {
    leg: Arc<ctx::LegContext>,
    _slot: Option<ConcurrencyPermit>,
}

impl DetachedStep {
    fn begin(leg: &Arc<ctx::LegContext>, slot: Option<ConcurrencyPermit>) -> Self {
        leg.runtime.server().detached.send_modify(|running| *running += 1);
        Self { leg: Arc::clone(leg), _slot: slot }
    }
}

impl Drop for DetachedStep {
    fn drop(&mut self) {
        self.leg.runtime.server().detached.send_modify(|running| *running -= 1);
    }
}

/// A handler's permit, released when it is dropped.
pub(crate) struct ConcurrencyPermit {
    _place: Place,
}

enum Place {
    /// A place of the handlers outside of sessions.
    Outside(#[expect(dead_code, reason = "held until it is dropped")] RunningHandler),
    /// A place of the handlers in sessions, which wait for people.
    InSession(#[expect(dead_code, reason = "held until it is dropped")] QuotaPermit),
    /// No place of a handler: a task, which its runner counts.
    InTask,
}

impl ConcurrencyPermit {
    /// Takes a permit; `None` if all are taken. Handlers in sessions wait for people, so they have a quota of their
    /// own, and each caller gets only a part of it. Anonymous callers leave a share of both to the others.
    pub(crate) fn take(
        runtime: &Arc<Runtime>,
        place: HandlerPlace<'_>,
        caller: &Caller<'_>,
        principal: Option<&Principal>,
    ) -> Option<Self> {
        let place = match place {
            HandlerPlace::Session(session) => {
                let account = runtime.accounts.of(caller, principal);
                Place::InSession(session.handler_permit(account, &runtime.limits)?)
            }
            HandlerPlace::Task => Place::InTask,
            HandlerPlace::Request => {
                Place::Outside(RunningHandler::begin(runtime, principal.is_none() && caller.is_remote())?)
            }
        };
        Some(Self { _place: place })
    }
}

/// A handler outside of sessions, counted while this exists. The counters are atomic: modern requests share no lock.
struct RunningHandler {
    runtime: Arc<Runtime>,
    is_anonymous: bool,
}

impl RunningHandler {
    fn begin(runtime: &Arc<Runtime>, is_anonymous: bool) -> Option<Self> {
        let limits = &runtime.limits;
        // Counted first, so that two requests cannot both take the last permit.
        let enters = |count: &AtomicUsize, limit: usize| count.fetch_add(1, Ordering::Relaxed) < limit;
        let mut has_place = enters(&runtime.running, limits.handlers);
        if is_anonymous {
            has_place &= enters(&runtime.running_anonymous, limits.for_anonymous(limits.handlers));
        }
        let handler = Self { runtime: Arc::clone(runtime), is_anonymous };
        has_place.then_some(handler)
    }
}

impl Drop for RunningHandler {
    fn drop(&mut self) {
        self.runtime.running.fetch_sub(1, Ordering::Relaxed);
        if self.is_anonymous {
            self.runtime.running_anonymous.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
