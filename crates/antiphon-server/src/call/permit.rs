//! Permits for running handlers.

use crate::{identity::caller::Caller, quota::QuotaPermit, request::carrier::HandlerPlace, runtime::Runtime};
use antiphon_seal::Principal;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

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
