//! A handler while its request waits for it, and what becomes of it when nobody does any more.

use super::{ctx, leg::Running, round::Ran, serve::Slot};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::runtime::Handle;

/// A handler that runs. Dropped, it is cancelled: at once, unless a step runs. That step goes on, on a task of its own, to
/// its end or for `grace`; no line behind it runs.
pub(super) struct InFlight<T: Send + 'static> {
    /// `None` once it has come to something.
    handler: Option<Running<T>>,
    /// Free again once all that belongs to the request is done.
    slot: Option<Slot>,
    leg: Arc<ctx::Leg>,
    grace: Duration,
}

impl<T: Send + 'static> InFlight<T> {
    pub(super) fn new(handler: Running<T>, leg: Arc<ctx::Leg>, slot: Slot, grace: Duration) -> Self {
        Self { handler: Some(handler), slot: Some(slot), leg, grace }
    }
}

impl<T: Send + 'static> Future for InFlight<T> {
    type Output = Ran<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ran<T>> {
        // Taken out: one that panics is dropped where it stands, and is not polled again.
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
        let runs = self.leg.flow.with(|leg| {
            leg.cancel();
            leg.has_running_step()
        });
        if !runs {
            return;
        }
        self.leg.flow.carrier().detach();
        let Ok(runtime) = Handle::try_current() else { return };
        let (grace, leg) = (self.grace, Arc::clone(&self.leg));
        let detached = Detached::begin(&leg, self.slot.take());
        runtime.spawn(async move {
            let _detached = detached;
            if tokio::time::timeout(grace, handler).await.is_err() {
                tracing::warn!(call = ?leg.call, ?grace, "a step of a cancelled request ran longer than it may, and was dropped");
            }
        });
    }
}

/// A step that runs though its request was cancelled; counted while it lives.
struct Detached {
    leg: Arc<ctx::Leg>,
    _slot: Option<Slot>,
}

impl Detached {
    fn begin(leg: &Arc<ctx::Leg>, slot: Option<Slot>) -> Self {
        leg.flow.server().0.detached.send_modify(|running| *running += 1);
        Self { leg: Arc::clone(leg), _slot: slot }
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        self.leg.flow.server().0.detached.send_modify(|running| *running -= 1);
    }
}
