//! The end of a leg: a result, a round that leaves, or a fault.
//!
//! There is one way out for faults: what the leg has recorded leaves before the fault is told, with state only, so that
//! nobody is told to repeat what was done. The next leg tells the fault, if it still holds.

use super::LegResult;
use crate::server::{
    HandlerOutcome,
    admit::{Admitted, Permit},
    refusal::Refusal,
    round::{Ran, Round},
    serve::Inner,
};
use antiphon_engine::{LegOutput, StopReason};
use antiphon_seal::CallId;
use antiphon_wire::{AskSupport, InputRequests, InputRequiredResult};

/// How a leg ended, for its call.
pub(super) enum Ended<T> {
    /// With the end of the call.
    Over(LegResult<T>),
    /// With a round, or with state only.
    Leaves(Round, Box<LegOutput>),
}

/// From what a handler came to, to what is next.
pub(super) fn settle<T>(
    server: &Inner,
    admitted: &mut Admitted<'_>,
    ran: Ran<T>,
) -> Result<Ended<T>, Refusal> {
    let target = admitted.leg().target;
    let (outcome, left) = match ran {
        Ran::Returned(outcome, left) => (outcome, left),
        Ran::Round(round, left) => {
            let missing = admitted.missing(&round.requests);
            if missing == AskSupport::NONE {
                return Ok(Ended::Leaves(round, left));
            }
            let path = round.requests.iter().next().map_or("", |(key, _)| key).to_owned();
            return failed(server, admitted, StopReason::Capability { path, missing }, left);
        }
        Ran::Stopped(stop, left) => return failed(server, admitted, stop, left),
        // Nobody waits for this.
        Ran::Cancelled => return Err(Refusal::Internal),
    };
    if !left.unreplayed_steps.is_empty() {
        tracing::warn!(target, steps = ?left.unreplayed_steps, "the call is over, and did not come to steps it had recorded");
    }
    Ok(Ended::Over(match outcome {
        HandlerOutcome::Complete(result) => LegResult::Complete(result),
        HandlerOutcome::Told(text) => LegResult::Failed(Some(text)),
        HandlerOutcome::NotFound => LegResult::NotFound,
        HandlerOutcome::Failed(cause) => {
            tracing::error!(target, %cause, "a handler failed");
            LegResult::Failed(None)
        }
        // The driver made a round of it.
        HandlerOutcome::InputRequired(_) => return Err(Refusal::Internal),
    }))
}

/// The leg failed: its record leaves first, if it has anything new and the client can take it; or the fault is told.
fn failed<T>(
    server: &Inner,
    admitted: &mut Admitted<'_>,
    stop: StopReason,
    mut left: Box<LegOutput>,
) -> Result<Ended<T>, Refusal> {
    let target = admitted.leg().target;
    let call = left.call.as_ref().map(antiphon_seal::Call::id);
    if admitted.takes_state_only(server) && left.suspend_before_error(&server.limits.of_call()) {
        let (call, fault) = (call.map(|call| call.to_string()), stop.describe());
        tracing::warn!(target, call, %fault, "a leg failed: what it recorded leaves first");
        let requests = InputRequests::new();
        return Ok(Ended::Leaves(Round { requests, by_hand: None }, left));
    }
    let refusal = refuse(target, stop, call);
    // In a session nothing has left: to begin again is to do all again.
    let is_lost = left.has_new_step() || admitted.leg().request.session.is_some();
    Err(refusal.behind(if is_lost { left.steps_done } else { Vec::new() }))
}

/// Seals what leaves. A record that cannot leave is told with what was done.
pub(super) fn seal(
    server: &Inner,
    mut admitted: Admitted<'_>,
    permit: Permit,
    left: LegOutput,
) -> Result<InputRequiredResult, Refusal> {
    let behind_effect = left.has_new_step();
    let done = if behind_effect { left.steps_done } else { Vec::new() };
    admitted.put_call(left.call);
    admitted.seal(server, permit, &left.record, behind_effect).map_err(|refusal| refusal.behind(done))
}

/// Tells whoever wants to know besides the log why a request fails.
pub(super) fn tell<T>(server: &Inner, ran: &Ran<T>) {
    match ran {
        Ran::Stopped(stop, _) => server.replay.tell(|| stop.describe()),
        Ran::Returned(HandlerOutcome::Failed(cause), _) => server.replay.tell(|| cause.clone()),
        Ran::Returned(..) | Ran::Round(..) | Ran::Cancelled => {}
    }
}

/// Tells the log why a leg was stopped, and gives the words for the caller.
pub(super) fn refuse(target: &str, stop: StopReason, call: Option<CallId>) -> Refusal {
    let call = call.map(|call| call.to_string());
    match stop {
        StopReason::Author(cause) => {
            tracing::error!(target, call, %cause, "a handler asks in a way that cannot be");
            Refusal::Internal
        }
        StopReason::Diverged { path, reason: why, record } => {
            tracing::error!(target, call, path, why, record, "a handler takes another path than before");
            Refusal::Diverged
        }
        StopReason::StepFailed { path, cause } => {
            tracing::error!(target, call, path, %cause, "a step came to no outcome");
            Refusal::StepFailed { path }
        }
        StopReason::Capability { path, missing } => {
            tracing::warn!(target, call, path, ?missing, "the client cannot be asked this");
            Refusal::Capability { missing }
        }
        StopReason::Client(text) => {
            // Its words, in quotes.
            tracing::warn!(target, call, ?text, "a session's client did not answer");
            Refusal::Told(text)
        }
        StopReason::Limit { name, text } => {
            tracing::error!(target, call, name, %text, "a bound was reached");
            Refusal::Limit { name, text }
        }
        StopReason::Panicked(cause) => {
            tracing::error!(target, call, cause, "a request panicked");
            Refusal::Internal
        }
        StopReason::OutOfTime => {
            tracing::error!(target, call, "a handler took too long and was dropped");
            Refusal::Internal
        }
    }
}
