//! Steps whose end is stored in a transaction of the author: they have no stored start, because nothing has happened until
//! the transaction is committed.

use crate::{
    at_most_once::{claimed_leg::ClaimedLeg, step_record::stop},
    errors::store_error::repeated,
};
use antiphon_engine::{StepOutcome, StopReason};
use antiphon_store::{Fence, StepEvent, StoreError, StoreIdentity, Written};
use antiphon_wire::escaped;

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
