//! The stored records of steps: the start of each attempt before it runs, and the outcome before the handler has it; and the order
//! of what the handler received, before an effect that may depend on it.
//!
//! A step whose end is stored in a transaction of the author has no stored start, because nothing has happened until the transaction
//! is committed.

use crate::{
    at_most_once::{
        claimed_leg::{ClaimedLeg, NewClaim},
        records::{
            FAILURE, FENCE, begin_kind, decode, encode, end_kind, name, order_name, short, with_start,
        },
    },
    errors::refusal::repeated,
};
use antiphon_engine::{StepOutcome, StopReason, WriteAhead};
use antiphon_store::{Appended, Fence, StepEvent, StepRecord, StoreError, StoreIdentity, Written};
use antiphon_wire::escaped;
use futures_util::future::BoxFuture;
use std::sync::Arc;

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

    pub(super) fn open_outcome(&self, path: &str, stored: &[u8]) -> Option<StepOutcome> {
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
