//! The records of a leg in its store: their names, how they are stored, and how a later run of the leg reads them.
//!
//! | name | event | value | appended before |
//! |---|---|---|---|
//! | `LEG:PATH` | an attempt began | the number of the run's fence; sealed: the deliveries up to here, and the start | the body runs |
//! | `LEG:failed:PATH` | an attempt | | the next attempt, or the reply |
//! | `LEG:PATH` | ended | sealed: the outcome | the handler receives the outcome |
//! | `order LEG NUMBER` | ended | sealed: the deliveries up to the winner of a select | the select resolves |
//! | `call LEG` | ended | sealed: the call of a first request | the handler runs |
//!
//! A start that an earlier release has stored has no deliveries. A step whose end is stored in a transaction of the author has no
//! stored start, because nothing has happened until the transaction is committed.

use crate::{
    at_most_once::{
        claimed_leg::{ClaimedLeg, NewClaim},
        outcome::RowSeal,
    },
    errors::refusal::{Refusal, refused, repeated},
    runtime::Runtime,
};
use antiphon_engine::{StepFailure, StepOutcome, StopReason, StoredLeg, WriteAhead};
use antiphon_seal::CallSecret;
use antiphon_store::{
    Appended, CallStore, Fence, MAX_STEP_NAME, StepEvent, StepRecord, StoreError, StoreIdentity, Written,
};
use antiphon_wire::escaped;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The first byte of a stored outcome.
const DONE: u8 = b'd';
const FAILED: u8 = b'f';
/// The first byte of an outcome that the text of its start precedes, with its length as four bytes.
const WITH_START: u8 = b'e';

#[derive(Serialize, Deserialize)]
struct Failure {
    message: String,
    code: Option<String>,
    data: Option<String>,
    user_facing: bool,
}

/// The mark of a record that an attempt has failed.
const FAILURE: &str = "failed:";

/// The number of bytes of a fence's number.
const FENCE: usize = 8;

/// Returns the name of the record of a call. No step has it: it lacks the colon.
pub(super) fn call_name(leg: u32) -> String {
    format!("call {leg}")
}

/// Returns the name of a record of deliveries. No step has it: it lacks the colon.
fn order_name(leg: u32, number: &str) -> String {
    format!("order {leg} {number}")
}

fn prefix(leg: u32) -> String {
    format!("{leg}:")
}

/// Returns the name of a record. The records of another leg are in its token, so each leg has its own.
pub(super) fn name(leg: u32, kind: &str, path: &str) -> String {
    format!("{leg}:{kind}{}", short(path))
}

/// Returns a path that fits a store. A path that is too long ends with its digest.
pub(super) fn short(path: &str) -> String {
    if path.len() <= MAX_STEP_NAME - 32 {
        return path.to_owned();
    }
    let digest = CallSecret::from_bytes(*b"a long step name").pin(path.as_bytes()).to_bytes();
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    // Paths are ASCII.
    format!("{}..{digest}", path.get(..MAX_STEP_NAME - 72).unwrap_or_default())
}

/// Loads what earlier runs of a leg have stored.
pub(crate) async fn stored_leg(
    server: &Runtime,
    store: &dyn CallStore,
    fence: &Fence,
    row: &RowSeal,
) -> Result<StoredLeg, Refusal> {
    let records = repeated(|| store.load(fence.call())).await.map_err(|error| refused(&error))?;
    let (sealer, now) = (server.sealing.sealer(), server.clock.now());
    // The cause is in the log.
    read(&records, row.leg, |kind, sealed| row.open(&sealer, kind, sealed, now))
        .map_err(|step| Refusal::OutcomeUnknown { step: Some(step) })
}

/// Reads the records of a leg among those of its call, in the order in which they were appended. `open` opens a sealed value of a
/// kind. The error is the name of a step whose record cannot be read.
fn read(
    records: &[StepRecord],
    leg: u32,
    open: impl Fn(&str, &[u8]) -> Option<Vec<u8>>,
) -> Result<StoredLeg, String> {
    let (mut stored, order) = (StoredLeg::default(), order_name(leg, ""));
    for record in records {
        if record.step().starts_with(&order) {
            let text = open(record.step(), record.value());
            let read = text.and_then(|text| stored.delivered(&text).ok());
            read.ok_or_else(|| record.step().to_owned())?;
            continue;
        }
        let Some(name) = record.step().strip_prefix(&prefix(leg)) else { continue };
        let unreadable = || name.to_owned();
        match (name.strip_prefix(FAILURE), record.event()) {
            (Some(name), StepEvent::Started { attempt }) => stored.failed(name, attempt),
            (None, StepEvent::Started { attempt }) => {
                let sealed = record.value().get(FENCE..).filter(|sealed| !sealed.is_empty());
                let text = match sealed {
                    Some(sealed) => Some(open(&begin_kind(name), sealed).ok_or_else(unreadable)?),
                    None => None,
                };
                stored.begin(name, attempt, text.as_deref()).map_err(|_| unreadable())?;
            }
            (_, StepEvent::Ended) => {
                let value = open(&end_kind(name), record.value()).ok_or_else(unreadable)?;
                let (outcome, text) = decode(&value).ok_or_else(unreadable)?;
                stored.end(name, outcome, text).map_err(|_| unreadable())?;
            }
        }
    }
    Ok(stored)
}

/// Returns the kind of the sealed value of a start.
fn begin_kind(name: &str) -> String {
    format!("begin {name}")
}

/// Returns the kind of the sealed value of an end.
fn end_kind(name: &str) -> String {
    format!("step {name}")
}

/// Returns the value of an end.
pub(super) fn encode(outcome: &StepOutcome) -> Vec<u8> {
    match outcome {
        StepOutcome::Done(text) => [&[DONE], text.as_bytes()].concat(),
        StepOutcome::Failed(failure) => {
            let StepFailure { message, code, data, user_facing } = failure.clone();
            let failure = Failure { message, code, data, user_facing };
            let text = serde_json::to_vec(&failure).unwrap_or_default();
            [&[FAILED][..], &text].concat()
        }
        // A step that its handler dropped has no outcome to store.
        StepOutcome::Abandoned { .. } => Vec::new(),
    }
}

/// Returns the value of an end that has the text of its start.
fn with_start(start: &[u8], outcome: &[u8]) -> Vec<u8> {
    // A text is shorter than the limit of a record.
    let length = u32::try_from(start.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[WITH_START], &length[..], start, outcome].concat()
}

/// Reads an outcome, and the text of the step's start if the value has it.
pub(super) fn decode(bytes: &[u8]) -> Option<(StepOutcome, Option<&[u8]>)> {
    let (kind, text) = bytes.split_first()?;
    match *kind {
        DONE => Some((StepOutcome::Done(std::str::from_utf8(text).ok()?.into()), None)),
        FAILED => {
            let Failure { message, code, data, user_facing } = serde_json::from_slice(text).ok()?;
            Some((StepOutcome::Failed(StepFailure { message, code, data, user_facing }), None))
        }
        WITH_START => {
            let (length, rest) = text.split_first_chunk::<4>()?;
            let (start, outcome) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
            if outcome.first() == Some(&WITH_START) {
                return None;
            }
            Some((decode(outcome)?.0, Some(start)))
        }
        _ => None,
    }
}

/// The end of storing a start.
#[derive(Debug)]
pub(crate) enum StartStored {
    /// The body runs.
    Run,
    /// The leg ends.
    Stop(StopReason),
}

impl ClaimedLeg {
    /// Stores the start of an attempt, with everything that the handler has received up to here.
    pub(crate) fn start_step(
        self: &Arc<Self>,
        path: &str,
        attempt: u32,
        ahead: Option<&WriteAhead>,
    ) -> BoxFuture<'static, StartStored> {
        let (leg, path) = (Arc::clone(self), path.to_owned());
        let sealed = ahead.map(|ahead| self.seal(&begin_kind(&short(&path)), &ahead.text)).transpose();
        Box::pin(async move {
            let sealed = match sealed {
                Ok(sealed) => sealed.unwrap_or_default(),
                Err(reason) => return StartStored::Stop(reason),
            };
            match leg.started(&path, attempt, sealed).await {
                // The confirmation came late: another run may have taken the leg over and resolved this attempt.
                Ok(true) if !leg.has_lease() => {
                    // If none has, the next run knows that the body did not begin.
                    let _ = leg.fail_attempt(&path, attempt).await;
                    StartStored::Stop(StopReason::TakenOver)
                }
                Ok(true) => StartStored::Run,
                // The records of earlier runs are known, so this is one of a run that has taken the leg over.
                Ok(false) => StartStored::Stop(StopReason::TakenOver),
                Err(error) => StartStored::Stop(stop(&error)),
            }
        })
    }

    /// Stores everything that the handler has received up to here, in its order.
    pub(crate) fn store_order(
        self: &Arc<Self>,
        ahead: &WriteAhead,
    ) -> BoxFuture<'static, Result<(), StopReason>> {
        let (leg, name) = (Arc::clone(self), order_name(self.claim.row.leg, &ahead.number()));
        let record = self.seal(&name, &ahead.text).map(|sealed| StepRecord::ended(name, sealed));
        Box::pin(async move {
            let record = record?;
            let appended = repeated(|| leg.claim.store.append(&leg.claim.fence, &record)).await;
            appended.map(drop).map_err(|error| stop(&error))
        })
    }

    fn seal(&self, kind: &str, value: &[u8]) -> Result<Vec<u8>, StopReason> {
        let NewClaim { server, row, .. } = &self.claim;
        let sealed = row.seal(&server.sealing.sealer(), kind, value, server.clock.now());
        sealed.map_err(|fault| StopReason::Store(fault.to_string()))
    }

    /// Stores the outcome of a step, before the handler receives it. `start` is the text of its start, if the step has no record of
    /// it.
    pub(crate) fn end_step(
        self: &Arc<Self>,
        path: &str,
        outcome: &StepOutcome,
        start: Option<&WriteAhead>,
    ) -> BoxFuture<'static, Result<(), StopReason>> {
        let start = start.map(|start| start.text.clone());
        let (leg, record) = (Arc::clone(self), self.end_of_step(path, start)(outcome));
        Box::pin(async move {
            let record = record?;
            repeated(|| leg.claim.store.append(&leg.claim.fence, &record))
                .await
                .map_err(|error| stop(&error))?;
            Ok(())
        })
    }

    /// Returns the function that seals the outcome of a step as its record. The function does not keep the claim, so a leg
    /// that is dropped is given back although its transaction may still run on another thread.
    ///
    /// `start` is the text of its start, if the step has no record of it.
    pub(crate) fn end_of_step(
        &self,
        path: &str,
        start: Option<Vec<u8>>,
    ) -> impl FnOnce(&StepOutcome) -> Result<StepRecord, StopReason> + Send + 'static {
        let (server, row) = (Arc::clone(&self.claim.server), self.claim.row.clone());
        let (name, kind) = (self.name(path), end_kind(&short(path)));
        move |outcome| {
            let value = match start {
                Some(start) => with_start(&start, &encode(outcome)),
                None => encode(outcome),
            };
            let sealed = row.seal(&server.sealing.sealer(), &kind, &value, server.clock.now());
            let sealed = sealed.map_err(|fault| StopReason::Store(fault.to_string()))?;
            Ok(StepRecord::ended(name, sealed))
        }
    }

    /// Stores that an attempt failed without an effect to keep.
    pub(crate) fn fail_attempt(
        self: &Arc<Self>,
        path: &str,
        attempt: u32,
    ) -> BoxFuture<'static, Result<(), StopReason>> {
        let (leg, path) = (Arc::clone(self), path.to_owned());
        Box::pin(async move {
            let record = StepRecord::started(leg.name_of_failure(&path), attempt);
            repeated(|| leg.claim.store.append(&leg.claim.fence, &record))
                .await
                .map_err(|error| stop(&error))?;
            Ok(())
        })
    }

    /// Stores the start of an attempt. Returns false if another run has stored it before. The record holds the number of
    /// the run's fence: a start whose confirmation was lost is this run's own.
    async fn started(&self, path: &str, attempt: u32, sealed: Vec<u8>) -> Result<bool, StoreError> {
        let run: [u8; FENCE] = self.claim.fence.number().to_be_bytes();
        let record = StepRecord::started(self.name(path), attempt).with_value([&run[..], &sealed].concat());
        let appended = repeated(|| self.claim.store.append(&self.claim.fence, &record)).await?;
        Ok(match appended {
            Appended::First => true,
            Appended::Existing(of) => of.starts_with(&run),
        })
    }

    pub(super) fn name(&self, path: &str) -> String {
        name(self.claim.row.leg, "", path)
    }

    fn name_of_failure(&self, path: &str) -> String {
        name(self.claim.row.leg, FAILURE, path)
    }

    fn open_outcome(&self, path: &str, stored: &[u8]) -> Option<StepOutcome> {
        let NewClaim { server, row, .. } = &self.claim;
        let kind = end_kind(&short(path));
        let value = row.open(&server.sealing.sealer(), &kind, stored, server.clock.now())?;
        Some(decode(&value)?.0)
    }
}

pub(super) fn stop(error: &StoreError) -> StopReason {
    match error.is_fence_lost() {
        true => StopReason::TakenOver,
        false => StopReason::Store(error.to_string()),
    }
}

impl ClaimedLeg {
    /// Returns the fence, if the records of steps are in the store with this identity. The error says what is missing.
    pub(crate) fn fence_in(&self, store: Option<StoreIdentity>) -> Result<&Fence, &'static str> {
        if !self.writes_ahead() {
            return Err("a step in a transaction needs `write_ahead`, on the server or on the tool");
        }
        if store.is_none() || self.claim.store.identity() != store {
            return Err(
                "a step in a transaction needs the store of this server: pass a clone of the value that \
                 `ServerBuilder::store` received",
            );
        }
        Ok(&self.claim.fence)
    }

    /// Opens the outcome of a step that the store returned.
    pub(crate) fn existing_outcome(&self, path: &str, stored: &[u8]) -> Result<StepOutcome, StopReason> {
        self.open_outcome(path, stored).ok_or_else(|| StopReason::OutcomeUnknown { path: path.to_owned() })
    }

    /// Returns the outcome of a step whose transaction failed with `error`: `Ok` if it was committed after all.
    ///
    /// After a commit without a confirmation, the renewal waits until the transaction has ended, because the transaction has
    /// locked the row of the call. Only then the records say if it was committed.
    pub(crate) async fn after_failure(
        &self,
        path: &str,
        error: &StoreError,
    ) -> Result<StepOutcome, StopReason> {
        if error.written() == Written::No {
            return Err(stop(error));
        }
        tracing::warn!(call = %escaped(&self.claim.fence.call()), path, error = %escaped(error), "a commit was not confirmed: the record shows if it happened");
        let claim = &self.claim;
        repeated(|| claim.store.renew(&claim.fence, claim.lease)).await.map_err(|error| stop(&error))?;
        let records =
            repeated(|| claim.store.load(claim.fence.call())).await.map_err(|error| stop(&error))?;
        let name = self.name(path);
        let record =
            records.iter().find(|record| record.event() == StepEvent::Ended && record.step() == name);
        match record {
            Some(record) => self.existing_outcome(path, record.value()),
            None => Err(stop(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_differ() {
        let long = "s".repeat(400);
        let names = [
            name(1, "", "a"),
            name(2, "", "a"),
            name(1, FAILURE, "a"),
            name(1, "", &long),
            call_name(1),
            order_name(1, "1.0"),
        ];
        assert!(names.iter().all(|name| name.len() <= MAX_STEP_NAME), "{names:?}");
        assert_eq!(names.iter().collect::<std::collections::HashSet<_>>().len(), names.len());
        assert_ne!(name(1, "", &long), name(1, "", &format!("{long}t")));
        assert!(!order_name(11, "").starts_with(&order_name(1, "")));
    }

    #[test]
    fn outcomes_are_read_as_they_were_written() {
        let failure = StepFailure {
            message: "no".to_owned(),
            code: Some("c".to_owned()),
            data: None,
            user_facing: true,
        };
        for outcome in [StepOutcome::Done("[1]".into()), StepOutcome::Failed(failure)] {
            assert_eq!(decode(&encode(&outcome)), Some((outcome.clone(), None)));
            let value = with_start(b"start", &encode(&outcome));
            assert_eq!(decode(&value), Some((outcome, Some(&b"start"[..]))));
            assert_eq!(decode(&with_start(b"start", &value)), None);
        }
        assert_eq!(decode(b""), None);
        assert_eq!(decode(b"x{}"), None);
    }

    #[test]
    fn records_of_an_earlier_release_are_read() {
        // A start was the number of the fence alone.
        let started = |name: &str| StepRecord::started(name, 1).with_value(7_u64.to_be_bytes());
        let records = [
            started("1:earlier leg"),
            started("2:charge"),
            StepRecord::ended("2:charge", b"d[1]".to_vec()),
            started("2:mail"),
            StepRecord::started("2:failed:mail", 1),
            StepRecord::ended("call 2", b"sealed".to_vec()),
        ];
        let stored = read(&records, 2, |_kind, sealed| Some(sealed.to_vec())).unwrap();
        let shown = format!("{stored:?}");
        for part in ["charge", "[1]", "mail", "failed: 1"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("earlier leg"), "{shown}");
        // A sealed value that does not open is an error with the name of its step.
        let faulty = [StepRecord::ended("2:charge", b"x".to_vec())];
        assert_eq!(read(&faulty, 2, |_kind, _sealed| None).unwrap_err(), "charge");
    }
}
