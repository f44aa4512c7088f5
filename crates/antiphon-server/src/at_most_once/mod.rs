//! Execution at most once: a leg is claimed in a store before its handler runs, and its reply is committed before it leaves.
//!
//! ```text
//!  admit ─▶ claim ─┬─ fresh ──▶ run ─▶ encode ─▶ seal ─▶ commit ─▶ reply
//!                  │             │ renew, until the fence is lost: no reply, no commit
//!                  │             └ no step began: release, the same request may run again
//!                  ├─ done ─────▶ open ─▶ the client's capabilities ─▶ the same reply
//!                  ├─ running ──▶ wait for that run, for a bounded time ─▶ `in_flight`
//!                  ├─ conflict ─▶ `used`
//!                  └─ unknown ──▶ taken over, or `outcome_unknown`
//! ```
//!
//! | level | a leg | a step |
//! |---|---|---|
//! | none | runs for each delivery of its request | at least once |
//! | [`single_use`](crate::ServerBuilder::single_use) | runs once for each state | at most once |
//! | [`write_ahead`](crate::ServerBuilder::write_ahead) | continues after a crash | its start and its end are stored, and the order in which the handler received everything |
//! | [`in_transaction`](crate::Ctx::in_transaction) | as `write_ahead` | its end and its writes are one transaction |
//!
//! The first request of a call has no state to claim. It ends before its first new step, with state only, if the client
//! accepts such a result: the `anchor`. For the other clients, a caller with a principal claims a
//! digest of the request instead, and the call is in the store, so that another run of it has the same keys.

mod claimed_leg;
mod outcome;
mod records;

pub(crate) use claimed_leg::{ClaimedLeg, fingerprint};
pub(crate) use outcome::{StoredReply, StoredTask};
pub(crate) use records::StartStored;

use crate::{
    errors::refusal::{ATTEMPTS, Refusal, refused, repeated},
    in_place::rare,
    options::{Level, seconds},
    request::admit::Admitted,
    runtime::{
        Runtime,
        claims::{Claims, owner},
    },
};
use antiphon_engine::StoredLeg;
use antiphon_seal::{CLOCK_SKEW, Call, CallId, CallSecret};
use antiphon_store::{
    Appended, CallKey, CallStore, Claim, ClaimRequest, Fence, Fingerprint, RunnerId, StepRecord, Written,
};
use antiphon_wire::{InputRequests, escaped, method};
use claimed_leg::NewClaim;
use outcome::{RowSeal, until};
use records::{call_name, stored_leg};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// The first pause between two claims of a leg that another run holds. It doubles, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// The time after which a task tries again to run whose creation has no reply yet.
const UNBORN: Duration = Duration::from_secs(2);

/// The result of claiming a leg.
pub(crate) enum ClaimResult {
    /// The handler runs, with a claim if the leg needs one.
    Run(Option<Arc<ClaimedLeg>>),
    /// The leg has run. Its reply is sent again.
    Replied(StoredReply),
}

/// Returns whether the first leg of a call ends before its first new step, with state only: the step then runs in a leg
/// that can be claimed.
pub(crate) fn anchors(server: &Runtime, admitted: &Admitted<'_>) -> bool {
    let Some(claims) = &server.claims else { return false };
    admitted.call().is_none()
        && admitted.carrier().continues_in_another_run()
        && level(claims, admitted) != Level::None
        && admitted.accepts_state_only(server)
}

fn level(claims: &Claims, admitted: &Admitted<'_>) -> Level {
    admitted.carrier().level(claims.level_of(admitted.leg().settings))
}

/// Claims the leg, if its tool runs at most once.
pub(crate) async fn claim(
    server: &Arc<Runtime>,
    admitted: &mut Admitted<'_>,
) -> Result<ClaimResult, Refusal> {
    match &server.claims {
        None if !admitted.is_spilled() => check_approver(admitted).map(|()| ClaimResult::Run(None)),
        claims => rare(claim_in_store(server, admitted, claims.as_ref())).await,
    }
}

async fn claim_in_store(
    server: &Arc<Runtime>,
    admitted: &mut Admitted<'_>,
    claims: Option<&Claims>,
) -> Result<ClaimResult, Refusal> {
    admitted.load_record(server).await?;
    // Before the claim: a refused answer does not use the state.
    check_approver(admitted)?;
    let Some(claims) = claims else { return Ok(ClaimResult::Run(None)) };
    match row(server, claims, admitted)? {
        None => Ok(ClaimResult::Run(None)),
        Some((level, row)) => claim_row(server, admitted, claims, level, row).await,
    }
}

/// Refuses answers of a caller whose answers the tool does not accept. Nothing has changed: the state that came stays
/// valid, and unused.
fn check_approver(admitted: &Admitted<'_>) -> Result<(), Refusal> {
    let approved_by = &admitted.leg().settings.approved_by;
    let (Some(record), Some(answers)) = (admitted.record(), admitted.answers()) else { return Ok(()) };
    if !approved_by.is_set() || approved_by.permits(admitted.principal()) {
        return Ok(());
    }
    if !record.asked().iter().any(|asked| answers.get(asked.path()).is_some()) {
        return Ok(());
    }
    tracing::warn!(call = admitted.call_id().map(|id| id.to_string()), target = ?escaped(admitted.leg().target), "an answer of a caller who may not approve: refused");
    Err(Refusal::NotApprover)
}

async fn claim_row(
    server: &Arc<Runtime>,
    admitted: &Admitted<'_>,
    claims: &Claims,
    level: Level,
    row: RowSeal,
) -> Result<ClaimResult, Refusal> {
    let runner = CallId::random().map_err(|fault| {
        tracing::error!(cause = %escaped(&fault), "a run cannot be named");
        Refusal::Internal
    })?;
    let leg = admitted.leg();
    let request = ClaimRequest::new(
        row.key,
        row.leg,
        row.fingerprint,
        RunnerId::from_bytes(*runner.as_bytes()),
        owner(admitted.principal()),
    )
    .lease(claims.options.lease)
    .keep(row.keep());
    claims.sweep(seconds(server.clock.now()));
    let continues = admitted.carrier().continues_in_another_run();
    let may_take_over = continues && (level == Level::WriteAhead || leg.settings.rerun_after_crash);
    let in_task = admitted.carrier().is_a_task();
    match granted(claims, request, may_take_over, in_task).await {
        Granted::Fresh(fence, claimed) => {
            let stored = match level {
                // After the claim, so that no earlier run can append anything more.
                Level::WriteAhead if continues => stored_leg(server, &*claims.store, &fence, &row).await,
                Level::WriteAhead | Level::SingleUse | Level::None => Ok(StoredLeg::default()),
            };
            let stored = released_if_refused(claims, &fence, stored).await?;
            let call = match may_take_over && admitted.call().is_none() {
                true => first_call(server, &*claims.store, &fence, &row).await.map(Some),
                false => Ok(None),
            };
            let call = released_if_refused(claims, &fence, call).await?;
            let claim = NewClaim {
                server: Arc::clone(server),
                store: Arc::clone(&claims.store),
                fence,
                lease: claims.options.lease,
                claimed,
                row,
                level,
                reruns: leg.settings.rerun_after_crash,
                continues,
            };
            Ok(ClaimResult::Run(Some(ClaimedLeg::new(claim, stored, call))))
        }
        Granted::Done(stored) => {
            let now = server.clock.now();
            let reply = row.open_reply(&server.sealing.sealer(), &stored, now).ok_or(Refusal::Used)?;
            if let StoredReply::Questions(text) = &reply {
                let round = stored_round(text)?;
                check_capabilities(admitted, &round)?;
                report_to_task(server, admitted, &round).await?;
            }
            tracing::debug!(call = %escaped(&row.key), leg = row.leg, "a leg was sent again: it has the same reply");
            Ok(ClaimResult::Replied(reply))
        }
        Granted::Refused(refusal) => Err(refusal),
    }
}

/// The store's decision about a claim.
enum Granted {
    /// The fence, and the moment before the claim was sent.
    Fresh(Fence, Instant),
    Done(Vec<u8>),
    Refused(Refusal),
}

/// Claims, and waits for the run that holds the leg.
async fn granted(claims: &Claims, mut request: ClaimRequest, may_take_over: bool, in_task: bool) -> Granted {
    let begin = Instant::now();
    let (mut pause, mut attempts) = (FIRST_PAUSE, 0);
    loop {
        let claimed = Instant::now();
        match claims.store.claim(&request).await {
            Ok(Claim::Fresh(fence)) => return Granted::Fresh(fence, claimed),
            Ok(Claim::Done(stored)) => return Granted::Done(stored),
            Ok(Claim::Conflict(conflict)) => {
                tracing::info!(call = %escaped(&request.call()), leg = request.leg(), ?conflict, "a state was used before");
                return Granted::Refused(Refusal::Used);
            }
            Ok(Claim::InFlight { retry_after }) => {
                let left = claims.options.wait_timeout.saturating_sub(begin.elapsed());
                if left.is_zero() {
                    return Granted::Refused(Refusal::InFlight { retry_after });
                }
                tokio::time::sleep(pause.min(left)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Ok(Claim::Unknown(unknown)) if may_take_over && unknown.leg == request.leg() => {
                tracing::warn!(call = %escaped(&request.call()), leg = request.leg(), "the run of a leg died: it is run again");
                request = request.take_over(true);
            }
            // The run of the request that created this task died before its reply left, so no client has the task's id yet: the
            // client sends the request again, which ends that leg, or nobody waits for the task.
            Ok(Claim::Unknown(unknown)) if in_task && unknown.leg < request.leg() => {
                tracing::warn!(call = %escaped(&request.call()), leg = unknown.leg, "the reply that creates a task has not left: the task waits for it");
                return Granted::Refused(Refusal::InFlight { retry_after: UNBORN });
            }
            Ok(Claim::Unknown(unknown)) => {
                tracing::error!(call = %escaped(&request.call()), leg = unknown.leg, "the run of a leg died, and its effects are unknown");
                return Granted::Refused(Refusal::OutcomeUnknown { step: None });
            }
            Ok(_later_case) => {
                tracing::error!(call = %escaped(&request.call()), leg = request.leg(), "a claim has a result that this version does not know");
                return Granted::Refused(Refusal::Store);
            }
            Err(error) => {
                attempts += 1;
                // A claim that was written without a confirmation is granted again to the same runner.
                if error.written() == Written::No || attempts >= ATTEMPTS {
                    return Granted::Refused(refused(&error));
                }
            }
        }
    }
}

/// Gives the leg back if it is refused before it ran, so that the same request may run again.
async fn released_if_refused<T>(
    claims: &Claims,
    fence: &Fence,
    result: Result<T, Refusal>,
) -> Result<T, Refusal> {
    if result.is_err() {
        let _ = claims.store.release(fence).await;
    }
    result
}

/// Returns the row that this leg claims, if it claims one.
fn row(
    server: &Runtime,
    claims: &Claims,
    admitted: &Admitted<'_>,
) -> Result<Option<(Level, RowSeal)>, Refusal> {
    let leg = admitted.leg();
    let level = level(claims, admitted);
    if level == Level::None {
        return Ok(None);
    }
    let now = server.clock.now();
    let row = match (admitted.call(), admitted.record()) {
        (Some(call), Some(record)) => {
            let print = fingerprint(call.secret(), record, admitted.answers());
            let keep = until(admitted.accepted_until(), now) + Duration::from_secs(2 * CLOCK_SKEW);
            let key = CallKey::from_bytes(*call.id().as_bytes());
            RowSeal::new(&admitted.binding(), (key, u32::from(call.leg()), print), keep)
        }
        // A request of a session, or the first request of a caller who cannot take state only.
        _ if !admitted.carrier().continues_in_another_run() || !admitted.accepts_state_only(server) => {
            let Some(key) = first_request(admitted)? else {
                // A prompt and a resource are read.
                let is_read = &*leg.request.method != method::TOOLS_CALL;
                return if is_read { Ok(None) } else { Err(Refusal::NoClaim) };
            };
            RowSeal::new(
                &admitted.binding(),
                (key, 1, Fingerprint::from_bytes([0; 16])),
                claims.options.first_request_ttl,
            )
        }
        _ => return Ok(None),
    };
    Ok(Some((level, row)))
}

/// Returns the key of a first request: a digest of its session or principal, its id and its content. An anonymous one has none.
///
/// > [2025-11-25] The request ID **MUST NOT** have been previously used by the requestor within the same session.
fn first_request(admitted: &Admitted<'_>) -> Result<Option<CallKey>, Refusal> {
    let leg = admitted.leg();
    let secret = CallSecret::from_bytes(*b"a first request.");
    let internal = |fault: &dyn std::fmt::Display| {
        tracing::error!(cause = %escaped(fault), "a first request cannot be named");
        Refusal::Internal
    };
    let sender = match (&leg.request.session, admitted.principal()) {
        (Some(session), _) => *session.key().map_err(|fault| internal(&fault))?.as_bytes(),
        (None, Some(principal)) => secret.principal_digest(principal).to_bytes(),
        // Two callers could send the same bytes.
        (None, None) => return Ok(None),
    };
    let id = serde_json::to_string(&leg.request.id).map_err(|fault| internal(&fault))?;
    let arguments = leg.arguments.map(RawValue::get);
    let request = secret.request_digest(&leg.request.method, leg.target, arguments);
    let request = request.map_err(|fault| internal(&fault))?.to_bytes();
    let all = [&sender[..], &request[..], id.as_bytes()].concat();
    Ok(Some(CallKey::from_bytes(secret.fingerprint(&all).to_bytes())))
}

/// The questions and the state of a stored round.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredRound<'a> {
    #[serde(default)]
    input_requests: InputRequests,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
}

fn stored_round(text: &RawValue) -> Result<StoredRound<'_>, Refusal> {
    serde_json::from_str(text.get()).map_err(|fault| {
        tracing::error!(cause = %escaped(&fault), "a stored round cannot be read");
        Refusal::Internal
    })
}

/// > Servers **MUST NOT** send an `inputRequests` that the client has not declared support for in its capabilities.
fn check_capabilities(admitted: &Admitted<'_>, round: &StoredRound<'_>) -> Result<(), Refusal> {
    let missing = admitted.missing(&round.input_requests);
    if missing == antiphon_wire::AskSupport::NONE { Ok(()) } else { Err(Refusal::Capability { missing }) }
}

/// Sends the news of the leg that stored this round to the runner of the task. The leg ran in a process that may have died before
/// its runner stored them.
async fn report_to_task(
    server: &Runtime,
    admitted: &Admitted<'_>,
    round: &StoredRound<'_>,
) -> Result<(), Refusal> {
    let (Some(task), Some(state)) = (admitted.carrier().task_leg(), round.request_state) else {
        return Ok(());
    };
    if let Some(record) = admitted.sealed_record(server, state).await? {
        task.report_record(&record);
    }
    Ok(())
}

/// Returns the call of this row: the one of an earlier run, or a new one, which is stored.
pub(crate) async fn first_call(
    server: &Runtime,
    store: &dyn CallStore,
    fence: &Fence,
    row: &RowSeal,
) -> Result<Call, Refusal> {
    let (sealer, now) = (server.sealing.sealer(), server.clock.now());
    let unsealed = |cause: &dyn std::fmt::Display| {
        tracing::error!(cause = %escaped(cause), "a call could not be sealed for the store");
        Refusal::Internal
    };
    let call = server.begin_call(now).map_err(|fault| unsealed(&fault))?;
    let sealed = row.seal_call(&sealer, &call, now).map_err(|fault| unsealed(&fault))?;
    let record = StepRecord::ended(call_name(row.leg), sealed);
    match repeated(|| store.append(fence, &record)).await {
        Ok(Appended::First) => Ok(call),
        // The steps of an earlier run are unknown without its call, now and later.
        Ok(Appended::Existing(stored)) => {
            row.open_call(&sealer, &stored, now).ok_or(Refusal::OutcomeUnknown { step: None })
        }
        Err(error) => Err(refused(&error)),
    }
}
