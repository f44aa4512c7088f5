//! Storing the order in which a handler has received everything, where the next line may act on it.

use crate::call::leg_runtime::LegRuntime;
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
