//! A handler that runs for its request, and its cancellation.

use crate::call::{DriveResult, ctx, permit::ConcurrencyPermit, result::HandlerFuture};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::runtime::Handle;

/// A running handler. Dropping it cancels the handler: at once, or, if a step runs, after that step has ended. The step
/// continues on a task of its own, to its end or for `grace`; no line after it runs.
pub(crate) struct InFlight<T: Send + 'static> {
    /// `None` after the handler has finished.
    handler: Option<HandlerFuture<T>>,
    /// Released when all work for the request is done.
    slot: Option<ConcurrencyPermit>,
    leg: Arc<ctx::LegContext>,
    grace: Duration,
}

impl<T: Send + 'static> InFlight<T> {
    pub(crate) fn new(
        handler: HandlerFuture<T>,
        leg: Arc<ctx::LegContext>,
        slot: ConcurrencyPermit,
        grace: Duration,
    ) -> Self {
        Self { handler: Some(handler), slot: Some(slot), leg, grace }
    }
}

impl<T: Send + 'static> Future for InFlight<T> {
    type Output = DriveResult<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<DriveResult<T>> {
        // Taken out first: a handler that panics is dropped here and not polled again.
        let Some(mut handler) = self.handler.take() else { return Poll::Pending };
        let polled = handler.as_mut().poll(cx);
        if polled.is_pending() {
            self.handler = Some(handler);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for InFlight<T> {
    fn drop(&mut self) {
        let Some(handler) = self.handler.take() else { return };
        let runs = self.leg.runtime.with(|leg| {
            leg.cancel();
            leg.has_running_step()
        });
        if !runs {
            return;
        }
        self.leg.runtime.carrier().detach();
        let Ok(runtime) = Handle::try_current() else { return };
        let (grace, leg) = (self.grace, Arc::clone(&self.leg));
        let detached = DetachedStep::begin(&leg, self.slot.take());
        runtime.spawn(async move {
            let _detached = detached;
            if tokio::time::timeout(grace, handler).await.is_err() {
                tracing::warn!(call = ?leg.call, ?grace, "a step of a cancelled request exceeded its time and was dropped");
            }
        });
    }
}

/// A step that still runs after its request was cancelled. It is counted while it exists.
struct DetachedStep {
    leg: Arc<ctx::LegContext>,
    _slot: Option<ConcurrencyPermit>,
}

impl DetachedStep {
    fn begin(leg: &Arc<ctx::LegContext>, slot: Option<ConcurrencyPermit>) -> Self {
        leg.runtime.server().detached.send_modify(|running| *running += 1);
        Self { leg: Arc::clone(leg), _slot: slot }
    }
}

impl Drop for DetachedStep {
    fn drop(&mut self) {
        self.leg.runtime.server().detached.send_modify(|running| *running -= 1);
    }
}
