//! The store of a claimed leg while its handler runs: the order of deliveries is stored, and a step is noted.

use crate::{at_most_once::ClaimedLeg, call::leg_runtime::LegRuntime};
use antiphon_engine::{StopReason, WriteAhead};
use futures_util::future::BoxFuture;
use std::task::{Context, Poll, ready};

/// The operation of the store. The leg does not end while it runs.
pub(crate) struct StoreOrder<'l> {
    runtime: &'l LegRuntime,
    /// `None` once the operation has ended.
    operation: Option<BoxFuture<'static, Result<(), StopReason>>>,
    ahead: WriteAhead,
}

impl<'l> StoreOrder<'l> {
    /// Begins to store the deliveries up to here. `None` if the leg has no store, or the store has them all.
    pub(crate) fn begin(runtime: &'l LegRuntime) -> Option<Self> {
        let claim = runtime.claim().filter(|claim| claim.writes_ahead())?;
        let ahead = runtime.with(|leg| {
            let ahead = leg.write_ahead()?;
            leg.store_operation(true);
            Some(ahead)
        })?;
        let operation = Some(claim.store_order(&ahead));
        Some(Self { runtime, operation, ahead })
    }

    /// Returns true once the deliveries are stored, or false if they are not: the leg then ends.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(operation) = &mut self.operation else { return Poll::Ready(false) };
        let stored = ready!(operation.as_mut().poll(cx));
        self.operation = None;
        Poll::Ready(self.runtime.with(|leg| {
            leg.store_operation(false);
            match stored {
                Ok(()) => {
                    leg.written(&self.ahead);
                    !leg.is_over()
                }
                Err(reason) => {
                    leg.stop(reason);
                    false
                }
            }
        }))
    }
}

impl Drop for StoreOrder<'_> {
    fn drop(&mut self) {
        if self.operation.is_some() {
            self.runtime.with(|leg| leg.store_operation(false));
        }
    }
}

/// A guard: a step of a claimed leg runs. A step that is dropped while its leg goes on is in the record, as abandoned;
/// one that is dropped with its leg is interrupted.
pub(crate) struct OpenStep<'a> {
    leg: &'a LegRuntime,
    claim: &'a ClaimedLeg,
    ended: bool,
}

impl<'a> OpenStep<'a> {
    pub(crate) fn new(leg: &'a LegRuntime, claim: &'a ClaimedLeg) -> Self {
        claim.step_began();
        Self { leg, claim, ended: false }
    }

    /// Notes that the step has an outcome.
    pub(crate) fn end(mut self) {
        self.ended = true;
    }

    /// Notes that the step has no outcome, and may run again.
    pub(crate) fn fail(mut self) {
        self.ended = true;
        self.claim.step_failed();
    }
}

impl Drop for OpenStep<'_> {
    fn drop(&mut self) {
        if !self.ended && !self.leg.with(|leg| leg.may_attempt_step()) {
            self.claim.step_interrupted();
        }
    }
}
