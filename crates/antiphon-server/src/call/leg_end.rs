//! The end of a leg: a result, a round that leaves, or a fault.
//!
//! All failures end the same way: the record of the leg leaves first, with state only, so that the client does not
//! repeat what was done. If the failure persists, the next leg reports it.

use crate::{
    at_most_once::ClaimedLeg,
    call::{DriveResult, Round, handler::FinalOutcome},
    errors::refusal::{DO_NOT_REPEAT, Refusal, StepsKept, completed, sentence},
    options::seconds,
    request::admit::{Admitted, CALL_TIMEOUT, Permit},
    runtime::{CAUSE, Runtime},
};
use antiphon_engine::{LegOutput, StopReason};
use antiphon_seal::{Call, CallId};
use antiphon_store::TaskKey;
use antiphon_wire::{AskSupport, InputRequests, InputRequiredResult, escaped, method};
use futures_util::future::BoxFuture;
use std::time::Duration;

/// The end of a leg within its call.
pub(crate) enum LegEnd<T> {
    /// The call is over.
    Over(CallEnd<T>),
    /// A round leaves, or state only.
    Leaves(Round, Box<LegOutput>),
}

/// Returns the next action after a handler has run.
pub(crate) fn settle<T>(
    server: &Runtime,
    admitted: &mut Admitted<'_>,
    claim: Option<&ClaimedLeg>,
    result: DriveResult<T>,
) -> Result<LegEnd<T>, Refusal> {
    let target = admitted.leg().target;
    let (outcome, left) = match result {
        DriveResult::Returned(outcome, left) => (outcome, left),
        DriveResult::Round(round, left) => {
            let missing = admitted.missing(&round.requests);
            if missing == AskSupport::NONE {
                return Ok(LegEnd::Leaves(round, left));
            }
            let path = round.requests.iter().next().map_or("", |(key, _)| key).to_owned();
            return failed(server, admitted, claim, StopReason::Capability { path, missing }, left);
        }
        DriveResult::Stopped(stop, left) => return failed(server, admitted, claim, stop, left),
        // The request was cancelled, so this error is not sent.
        DriveResult::Cancelled => return Err(Refusal::Internal),
    };
    let left = match left {
        // A result would hide that nobody knows whether the step had its effect.
        Some(left) if left.unknown_step.is_some() => {
            let path = left.unknown_step.clone().unwrap_or_default();
            return failed(server, admitted, claim, StopReason::OutcomeUnknown { path }, left);
        }
        left => left,
    };
    let (mut done, mut unreplayed) = (Vec::new(), Vec::new());
    if let Some(left) = left {
        (done, unreplayed) = (left.steps_done, left.unreplayed_steps);
    }
    if !unreplayed.is_empty() {
        tracing::warn!(target = ?escaped(target), steps = ?unreplayed, "the call ended without reaching all recorded steps");
    }
    let is_tool = &*admitted.leg().request.method == method::TOOLS_CALL;
    Ok(LegEnd::Over(match outcome {
        FinalOutcome::Complete(result) => CallEnd::Complete(result),
        FinalOutcome::UserFacing(text) => CallEnd::Failed(Some(text)),
        FinalOutcome::NotFound => CallEnd::NotFound,
        FinalOutcome::Refused(text) if done.is_empty() => CallEnd::Failed(Some(text)),
        FinalOutcome::Refused(text) if is_tool => CallEnd::Failed(Some(after_steps(&text, &done))),
        FinalOutcome::Refused(text) => {
            return Err(Refusal::UserFacing(text).after_steps(done, StepsKept::Nowhere));
        }
        FinalOutcome::Failed(cause) => {
            tracing::error!(target = ?escaped(target), cause = %escaped(&cause).limit(CAUSE), "a handler failed");
            match done.is_empty() {
                _ if server.show_errors => CallEnd::Failed(Some(cause)),
                true => CallEnd::Failed(None),
                false if is_tool => {
                    let text = format!("The tool {target} failed; the reason is in the server's log");
                    CallEnd::Failed(Some(after_steps(&text, &done)))
                }
                false => return Err(Refusal::Internal.after_steps(done, StepsKept::Nowhere)),
            }
        }
        FinalOutcome::OverLimit { name, text } => {
            tracing::error!(target = ?escaped(target), name, text = %escaped(&text).limit(CAUSE), "a limit was reached");
            return Err(Refusal::Limit { name, text }.after_steps(done, admitted.carrier().steps_kept(false)));
        }
    }))
}

/// Returns the text of a failed tool behind completed steps.
fn after_steps(text: &str, done: &[String]) -> String {
    format!("{} {}. {DO_NOT_REPEAT}.", sentence(text), completed(done))
}

/// Ends a failed leg: the record leaves first, if it has new entries and the client accepts state only; otherwise the
/// failure is reported.
fn failed<T>(
    server: &Runtime,
    admitted: &mut Admitted<'_>,
    claim: Option<&ClaimedLeg>,
    stop: StopReason,
    mut left: Box<LegOutput>,
) -> Result<LegEnd<T>, Refusal> {
    let target = admitted.leg().target;
    let call = left.call.as_ref().map(Call::id);
    // The records of a step whose effect is unknown are those of this leg, so no later leg may begin.
    let stays = stop.is_about_the_store() || left.unknown_step.is_some();
    // A state that leaves after the time of the call could not come back.
    let deadline = left.call.as_ref().and_then(Call::deadline);
    let is_over = deadline.is_some_and(|deadline| deadline < seconds(server.clock.now()));
    let limits = admitted.carrier().limits(server.engine_limits());
    if !stays && !is_over && admitted.accepts_state_only(server) && left.suspend_before_error(&limits) {
        let (call, fault) = (call.map(|call| call.to_string()), stop.describe());
        tracing::warn!(target = ?escaped(target), call, fault = %escaped(&fault).limit(CAUSE), "a leg failed: its record leaves first");
        let requests = InputRequests::new();
        return Ok(LegEnd::Leaves(Round { requests, by_hand: None }, left));
    }
    let refusal = match (stop, claim) {
        (StopReason::TakenOver, Some(claim)) => claim.lost(),
        (stop, _) => match (&stop, admitted.leg().settings.timeout) {
            (StopReason::OutOfTime, Some(limit)) => {
                let call = call.map(|call| call.to_string());
                tracing::error!(target = ?escaped(target), call, ?limit, "a handler took longer than its definition says, and was dropped");
                Refusal::OutOfTime { limit }
            }
            _ => refuse(server, target, stop, call),
        },
    };
    // Where no state leaves this run, a new call repeats all steps.
    let is_stored = claim.is_some_and(ClaimedLeg::writes_ahead);
    let is_lost =
        is_over || !is_stored && left.has_new_step() || !admitted.carrier().continues_in_another_run();
    Err(refusal.after_steps(left.steps_done, admitted.carrier().steps_kept(is_lost)))
}

/// Returns the key of the task that this leg has become, if it was to become one: derived from the call and the leg, so that a
/// leg that runs again makes the same task.
pub(crate) fn new_task(left: &LegOutput) -> Option<TaskKey> {
    left.call.as_ref().filter(|_| left.was_ended).map(task_key)
}

/// Returns the key of the task that this leg of a call becomes, if it becomes one.
pub(crate) fn task_key(call: &Call) -> TaskKey {
    let digest = call.secret().fingerprint(&[b"task", &call.leg().to_be_bytes()[..]].concat());
    TaskKey::from_bytes(digest.to_bytes())
}

/// Seals the record. If it cannot be sealed, the error lists the completed steps, unless the store has them.
pub(crate) async fn seal(
    server: &Runtime,
    admitted: &mut Admitted<'_>,
    permit: Permit,
    mut left: Box<LegOutput>,
    claim: Option<&ClaimedLeg>,
) -> Result<InputRequiredResult, Refusal> {
    let after_effect = left.has_new_step();
    let is_stored = claim.is_some_and(ClaimedLeg::writes_ahead);
    admitted.put_call(left.call.take());
    let sealed = admitted.seal(server, permit, &left.record, after_effect).await;
    sealed.map_err(|refusal| {
        // After the time of the call no earlier state opens either, so no repetition finds the steps.
        let is_over = matches!(refusal, Refusal::Limit { name: CALL_TIMEOUT, .. });
        let is_lost = is_over || after_effect && !is_stored;
        refusal.after_steps(left.steps_done, admitted.carrier().steps_kept(is_lost))
    })
}

/// Reports the cause of a failed request to the replay settings' observer.
pub(crate) fn report_cause<T>(server: &Runtime, result: &DriveResult<T>) {
    match result {
        DriveResult::Stopped(stop, _) => server.replay.report_cause(|| stop.describe()),
        DriveResult::Returned(FinalOutcome::Failed(cause), _) => server.replay.report_cause(|| cause.clone()),
        DriveResult::Returned(..) | DriveResult::Round(..) | DriveResult::Cancelled => {}
    }
}

/// Logs the reason for which a leg was stopped, and returns the refusal for the caller.
pub(crate) fn refuse(server: &Runtime, target: &str, stop: StopReason, call: Option<CallId>) -> Refusal {
    let call = call.map(|call| call.to_string());
    match stop {
        StopReason::Author(cause) => {
            tracing::error!(target = ?escaped(target), call, cause = %escaped(&cause).limit(CAUSE), "a handler asked an invalid question");
            server.hidden(&cause)
        }
        StopReason::Diverged { path, reason: why, record } => {
            tracing::error!(
                target = ?escaped(target),
                call,
                path,
                why,
                record,
                "a handler takes a different path than its record"
            );
            Refusal::Diverged
        }
        StopReason::StepFailed { path, cause } => {
            tracing::error!(target = ?escaped(target), call, path, cause = %escaped(&cause).limit(CAUSE), "a step has no outcome");
            let cause = server.show_errors.then(|| cause.to_string());
            Refusal::StepFailed { path, cause }
        }
        StopReason::Capability { path, missing } => {
            let names = crate::errors::refusal::names_of(missing);
            tracing::warn!(target = ?escaped(target), call, path, missing = names, "the client does not support this question");
            Refusal::Capability { missing }
        }
        StopReason::Client(text) => {
            tracing::warn!(target = ?escaped(target), call, text = ?escaped(&text).limit(CAUSE), "a session's client did not answer");
            Refusal::UserFacing(text)
        }
        StopReason::Limit { name, text } => {
            tracing::error!(target = ?escaped(target), call, name, text = %escaped(&text).limit(CAUSE), "a limit was reached");
            Refusal::Limit { name, text }
        }
        StopReason::Panicked(cause) => {
            tracing::error!(target = ?escaped(target), call, cause = cause.as_deref().map(|text| debug(escaped(text).limit(CAUSE))), "a request panicked");
            server.hidden(&format!("the handler panicked: {}", cause.unwrap_or_default()))
        }
        StopReason::OutcomeUnknown { path } => {
            tracing::error!(target = ?escaped(target), call, path, "a run of this leg died in a step: its effect is unknown");
            Refusal::OutcomeUnknown { step: Some(path) }
        }
        StopReason::Store(cause) => {
            tracing::error!(target = ?escaped(target), call, cause = %escaped(&cause).limit(CAUSE), "the store did not confirm a step");
            Refusal::Store
        }
        StopReason::TakenOver => {
            tracing::error!(target = ?escaped(target), call, "another run took this leg over");
            Refusal::InFlight { retry_after: Duration::from_secs(1) }
        }
        StopReason::OutOfTime => {
            tracing::error!(target = ?escaped(target), call, "a handler took too long and was dropped");
            Refusal::Internal
        }
    }
}

/// The result of a leg.
pub(crate) enum LegResult<T> {
    /// The call is over.
    Over(CallEnd<T>),
    /// A round, or state only.
    InputRequired(InputRequiredResult),
    /// The call becomes the task with this key; the round holds its state.
    Promoted(TaskKey, InputRequiredResult),
}

/// The end of a call.
pub(crate) enum CallEnd<T> {
    Complete(T),
    /// The arguments do not decode.
    BadArguments(String),
    /// The handler failed; the text, if there is one, is for the caller.
    Failed(Option<String>),
    /// The resource does not exist.
    NotFound,
}

/// The future of a handler that is ready to run.
pub(crate) type HandlerFuture<T> = BoxFuture<'static, DriveResult<T>>;
