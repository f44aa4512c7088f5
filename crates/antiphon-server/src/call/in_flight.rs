//! A handler that runs for its request: its permit, and its cancellation.

use crate::{
    call::{DriveResult, ctx, leg_end::HandlerFuture},
    identity::Caller,
    quota::QuotaPermit,
    request::carrier::HandlerPlace,
    runtime::Runtime,
};
use antiphon_seal::Principal;
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
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

/// A handler's permit, released when it is dropped.
pub(crate) struct ConcurrencyPermit {
    _place: Place,
}

enum Place {
    /// A place of the handlers outside of sessions.
    Outside(#[expect(dead_code, reason = "held until it is dropped")] RunningHandler),
    /// A place of the handlers in sessions, which wait for people.
    InSession(#[expect(dead_code, reason = "held until it is dropped")] QuotaPermit),
    /// No place of a handler: a task, which its runner counts.
    InTask,
}

impl ConcurrencyPermit {
    /// Takes a permit; `None` if all are taken. Handlers in sessions wait for people, so they have a quota of their
    /// own, and each caller gets only a part of it. Anonymous callers leave a share of both to the others.
    pub(crate) fn take(
        runtime: &Arc<Runtime>,
        place: HandlerPlace<'_>,
        caller: &Caller<'_>,
        principal: Option<&Principal>,
    ) -> Option<Self> {
        let place = match place {
            HandlerPlace::Session(session) => {
                let account = runtime.accounts.of(caller, principal);
                Place::InSession(session.handler_permit(account, &runtime.limits)?)
            }
            HandlerPlace::Task => Place::InTask,
            HandlerPlace::Request => {
                Place::Outside(RunningHandler::begin(runtime, principal.is_none() && caller.is_remote())?)
            }
        };
        Some(Self { _place: place })
    }
}

/// A handler outside of sessions, counted while this exists. The counters are atomic: modern requests share no lock.
struct RunningHandler {
    runtime: Arc<Runtime>,
    is_anonymous: bool,
}

impl RunningHandler {
    fn begin(runtime: &Arc<Runtime>, is_anonymous: bool) -> Option<Self> {
        let limits = &runtime.limits;
        // Counted first, so that two requests cannot both take the last permit.
        let enters = |count: &AtomicUsize, limit: usize| count.fetch_add(1, Ordering::Relaxed) < limit;
        let mut has_place = enters(&runtime.running, limits.handlers);
        if is_anonymous {
            has_place &= enters(&runtime.running_anonymous, limits.for_anonymous(limits.handlers));
        }
        let handler = Self { runtime: Arc::clone(runtime), is_anonymous };
        has_place.then_some(handler)
    }
}

impl Drop for RunningHandler {
    fn drop(&mut self) {
        self.runtime.running.fetch_sub(1, Ordering::Relaxed);
        if self.is_anonymous {
            self.runtime.running_anonymous.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
