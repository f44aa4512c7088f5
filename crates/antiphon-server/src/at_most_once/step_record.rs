//! The stored records of steps: the start of each attempt before it runs, and the outcome before the handler has it.

use crate::at_most_once::{ClaimedLeg, claimed_leg::repeated};
use antiphon_engine::{StepFailure, StepOutcome, StopReason};
use antiphon_seal::CallSecret;
use antiphon_store::{Appended, MAX_STEP_NAME, StepEvent, StepRecord, StoreError};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The next action of a step that begins, after its start was stored.
#[derive(Debug)]
pub(crate) enum StepBegin {
    /// The body runs. The number counts the attempts of all runs of the leg.
    Run {
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// An earlier run of the leg has stored the outcome.
    Recorded(StepOutcome),
    /// An earlier run began the step, and died.
    Interrupted {
        /// The number of the attempt that died.
        attempt: u32,
    },
    /// The leg ends.
    Stop(StopReason),
}

/// The first byte of a stored outcome.
const DONE: u8 = b'd';
const FAILED: u8 = b'f';

#[derive(Serialize, Deserialize)]
struct Failure {
    message: String,
    code: Option<String>,
    data: Option<String>,
    user_facing: bool,
}

/// The records of one step, from earlier runs of the same leg.
#[derive(Debug, Default)]
struct Earlier {
    /// The last attempt that began.
    begun: u32,
    /// The last attempt whose failure is stored.
    failed: u32,
    /// The sealed outcome.
    ended: Option<Vec<u8>>,
}

impl Earlier {
    fn is_interrupted(&self) -> bool {
        self.ended.is_none() && self.begun > self.failed
    }
}

/// The steps that earlier runs of the same leg have begun, by the names of their records.
#[derive(Debug, Default)]
pub(super) struct EarlierSteps(Mutex<HashMap<String, Earlier>>);

impl EarlierSteps {
    /// Returns the steps of a leg among the records of its call.
    pub(super) fn of(records: Vec<StepRecord>, leg: u32) -> Self {
        let mut steps: HashMap<String, Earlier> = HashMap::new();
        for record in records {
            let Some(name) = record.step().strip_prefix(&prefix(leg)) else { continue };
            let (name, failed) = match name.strip_prefix(FAILURE) {
                Some(name) => (name, true),
                None => (name, false),
            };
            let step = steps.entry(name.to_owned()).or_default();
            match record.event() {
                StepEvent::Started { attempt } if failed => step.failed = step.failed.max(attempt),
                StepEvent::Started { attempt } => step.begun = step.begun.max(attempt),
                StepEvent::Ended => step.ended = Some(record.value().to_vec()),
            }
        }
        Self(Mutex::new(steps))
    }

    fn take(&self, path: &str) -> Option<Earlier> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&short(path))
    }

    fn put_back(&self, path: &str, earlier: Earlier) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(short(path), earlier);
    }

    /// Returns a step whose effect is unknown, and which this run has not resolved.
    pub(super) fn unresolved(&self) -> Option<String> {
        let steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        steps.iter().filter(|(_, step)| step.is_interrupted()).map(|(path, _)| path.clone()).min()
    }
}

impl ClaimedLeg {
    /// Stores the start of a step, unless an earlier run has begun it.
    pub(crate) fn begin_step(self: &Arc<Self>, path: &str) -> BoxFuture<'static, StepBegin> {
        let Some(earlier) = self.earlier.take(path) else { return self.next_attempt(path, 1) };
        let next = earlier.begun + 1;
        let begin = match &earlier.ended {
            Some(stored) => match self.open_outcome(path, stored) {
                Some(outcome) => StepBegin::Recorded(outcome),
                None => StepBegin::Stop(StopReason::OutcomeUnknown { path: path.to_owned() }),
            },
            None if earlier.is_interrupted() && !self.claim.reruns => {
                self.earlier.put_back(path, earlier);
                StepBegin::Interrupted { attempt: next - 1 }
            }
            None => return self.next_attempt(path, next),
        };
        Box::pin(std::future::ready(begin))
    }

    /// Notes that the effect of an interrupted step is known.
    pub(crate) fn resolve_step(&self, path: &str) {
        self.earlier.take(path);
    }

    /// Stores the start of one more attempt.
    pub(crate) fn next_attempt(self: &Arc<Self>, path: &str, attempt: u32) -> BoxFuture<'static, StepBegin> {
        let (leg, path) = (Arc::clone(self), path.to_owned());
        Box::pin(async move {
            match leg.started(&path, attempt).await {
                Ok(true) => StepBegin::Run { attempt },
                Ok(false) => StepBegin::Interrupted { attempt },
                Err(error) => StepBegin::Stop(stop(&error)),
            }
        })
    }

    /// Stores the outcome of a step, before the handler receives it.
    pub(crate) fn end_step(
        self: &Arc<Self>,
        path: &str,
        outcome: &StepOutcome,
    ) -> BoxFuture<'static, Result<(), StopReason>> {
        let (leg, path) = (Arc::clone(self), path.to_owned());
        let value = encode(outcome);
        Box::pin(async move {
            let server = &leg.claim.server;
            let sealed = leg.claim.row.seal(
                &server.sealing.sealer(),
                &format!("step {path}"),
                &value,
                server.clock.now(),
            );
            let sealed = sealed.map_err(|fault| StopReason::Store(fault.to_string()))?;
            let record = StepRecord::ended(leg.name(&path), sealed);
            repeated(|| leg.claim.store.append(&leg.claim.fence, &record))
                .await
                .map_err(|error| stop(&error))?;
            Ok(())
        })
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
    async fn started(&self, path: &str, attempt: u32) -> Result<bool, StoreError> {
        let run = self.claim.fence.number().to_be_bytes();
        let record = StepRecord::started(self.name(path), attempt).with_value(run);
        let appended = repeated(|| self.claim.store.append(&self.claim.fence, &record)).await?;
        Ok(match appended {
            Appended::First => true,
            Appended::Existing(of) => of == run,
        })
    }

    fn name(&self, path: &str) -> String {
        name(self.claim.row.leg, "", path)
    }

    fn name_of_failure(&self, path: &str) -> String {
        name(self.claim.row.leg, FAILURE, path)
    }

    fn open_outcome(&self, path: &str, stored: &[u8]) -> Option<StepOutcome> {
        let server = &self.claim.server;
        decode(&self.claim.row.open(
            &server.sealing.sealer(),
            &format!("step {path}"),
            stored,
            server.clock.now(),
        )?)
    }
}

/// The mark of a record that an attempt has failed.
const FAILURE: &str = "failed:";

fn prefix(leg: u32) -> String {
    format!("{leg}:")
}

/// Returns the name of a record. The records of another leg are in its token, so each leg has its own.
fn name(leg: u32, kind: &str, path: &str) -> String {
    format!("{leg}:{kind}{}", short(path))
}

/// Returns a path that fits a store. A path that is too long ends with its digest.
fn short(path: &str) -> String {
    if path.len() <= MAX_STEP_NAME - 32 {
        return path.to_owned();
    }
    let digest = CallSecret::from_bytes(*b"a long step name").pin(path.as_bytes()).to_bytes();
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    // Paths are ASCII.
    format!("{}..{digest}", path.get(..MAX_STEP_NAME - 72).unwrap_or_default())
}

fn stop(error: &StoreError) -> StopReason {
    match error.is_fence_lost() {
        true => StopReason::TakenOver,
        false => StopReason::Store(error.to_string()),
    }
}

fn encode(outcome: &StepOutcome) -> Vec<u8> {
    match outcome {
        StepOutcome::Done(text) => [&[DONE], text.as_bytes()].concat(),
        StepOutcome::Failed(failure) => {
            let StepFailure { message, code, data, user_facing } = failure.clone();
            let failure = Failure { message, code, data, user_facing };
            let text = serde_json::to_vec(&failure).unwrap_or_default();
            [&[FAILED][..], &text].concat()
        }
        // A step that its handler dropped has no outcome to store.
        StepOutcome::Abandoned => Vec::new(),
    }
}

fn decode(bytes: &[u8]) -> Option<StepOutcome> {
    let (kind, text) = bytes.split_first()?;
    match *kind {
        DONE => Some(StepOutcome::Done(std::str::from_utf8(text).ok()?.into())),
        FAILED => {
            let Failure { message, code, data, user_facing } = serde_json::from_slice(text).ok()?;
            Some(StepOutcome::Failed(StepFailure { message, code, data, user_facing }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_read_as_they_were_written() {
        let failure = StepFailure {
            message: "no".to_owned(),
            code: Some("c".to_owned()),
            data: None,
            user_facing: true,
        };
        for outcome in [StepOutcome::Done("[1]".into()), StepOutcome::Failed(failure)] {
            assert_eq!(decode(&encode(&outcome)), Some(outcome));
        }
        assert_eq!(decode(b""), None);
        assert_eq!(decode(b"x{}"), None);
    }

    #[test]
    fn names_fit_and_differ() {
        let long = "s".repeat(400);
        let names = [name(1, "", "a"), name(2, "", "a"), name(1, FAILURE, "a"), name(1, "", &long)];
        assert!(names.iter().all(|name| name.len() <= MAX_STEP_NAME), "{names:?}");
        assert_eq!(names.iter().collect::<std::collections::HashSet<_>>().len(), names.len());
        assert_ne!(name(1, "", &long), name(1, "", &format!("{long}t")));
    }
}
