//! The stored records of steps: the start of each attempt before it runs, and the outcome before the handler has it.

use crate::at_most_once::{
    claimed_leg::ClaimedLeg,
    earlier::{FAILURE, name},
    store_error::repeated,
};
use antiphon_engine::{StepFailure, StepOutcome, StopReason};
use antiphon_store::{Appended, StepRecord, StoreError, mutant::is_mutant};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
            None if earlier.is_interrupted()
                && !self.claim.reruns
                && !is_mutant("interrupted_step_runs_again") =>
            {
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
                // The confirmation came late: another run may have taken the leg over and resolved this attempt.
                Ok(true) if !leg.has_lease() && !is_mutant("late_start_runs") => {
                    // If none has, the next run knows that the body did not begin.
                    let _ = leg.fail_attempt(&path, attempt).await;
                    StepBegin::Stop(StopReason::TakenOver)
                }
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
        let (leg, record) = (Arc::clone(self), self.end_of_step(path)(outcome));
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
    pub(crate) fn end_of_step(
        &self,
        path: &str,
    ) -> impl FnOnce(&StepOutcome) -> Result<StepRecord, StopReason> + Send + 'static {
        let (server, row) = (Arc::clone(&self.claim.server), self.claim.row.clone());
        let (name, kind) = (self.name(path), format!("step {path}"));
        move |outcome| {
            let sealed = row.seal(&server.sealing.sealer(), &kind, &encode(outcome), server.clock.now());
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
    async fn started(&self, path: &str, attempt: u32) -> Result<bool, StoreError> {
        if is_mutant("start_not_stored") {
            return Ok(true);
        }
        let run = self.claim.fence.number().to_be_bytes();
        let record = StepRecord::started(self.name(path), attempt).with_value(run);
        let appended = repeated(|| self.claim.store.append(&self.claim.fence, &record)).await?;
        Ok(match appended {
            Appended::First => true,
            Appended::Existing(of) => of == run,
        })
    }

    pub(super) fn name(&self, path: &str) -> String {
        name(self.claim.row.leg, "", path)
    }

    fn name_of_failure(&self, path: &str) -> String {
        name(self.claim.row.leg, FAILURE, path)
    }

    pub(super) fn open_outcome(&self, path: &str, stored: &[u8]) -> Option<StepOutcome> {
        let server = &self.claim.server;
        decode(&self.claim.row.open(
            &server.sealing.sealer(),
            &format!("step {path}"),
            stored,
            server.clock.now(),
        )?)
    }
}

pub(super) fn stop(error: &StoreError) -> StopReason {
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
}
