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
    handler: Option<(Running<T>, Slot)>,
    leg: Arc<ctx::Leg>,
    grace: Duration,
}

impl<T: Send + 'static> InFlight<T> {
    pub(super) fn new(handler: Running<T>, leg: Arc<ctx::Leg>, slot: Slot, grace: Duration) -> Self {
        Self { handler: Some((handler, slot)), leg, grace }
    }
}

impl<T: Send + 'static> Future for InFlight<T> {
    type Output = Ran<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ran<T>> {
        let Some((handler, _slot)) = &mut self.handler else { return Poll::Pending };
        let ran = std::task::ready!(handler.as_mut().poll(cx));
        self.handler = None;
        Poll::Ready(ran)
    }
}

impl<T: Send + 'static> Drop for InFlight<T> {
    fn drop(&mut self) {
        let Some((handler, slot)) = self.handler.take() else { return };
        {
            let mut machine = self.leg.flow.machine();
            machine.cancel();
            if !machine.runs_a_step() {
                return;
            }
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let (grace, leg) = (self.grace, Arc::clone(&self.leg));
        runtime.spawn(async move {
            let _slot = slot;
            if tokio::time::timeout(grace, handler).await.is_err() {
                tracing::warn!(call = ?leg.call, ?grace, "a step of a cancelled request ran longer than it may, and was dropped");
            }
        });
    }
}
