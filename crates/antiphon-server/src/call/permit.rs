//! Permits for running handlers.

use crate::{Request, runtime::Runtime, session::QuotaPermit};
use antiphon_seal::Principal;
use std::sync::{Arc, atomic::Ordering};

/// A handler's permit, released when it is dropped.
pub(crate) struct ConcurrencyPermit {
    /// The server that counts the handler; `None` if the handler runs in a session.
    running: Option<Arc<Runtime>>,
    _in_session: Option<QuotaPermit>,
}

impl ConcurrencyPermit {
    /// Takes a permit; `None` if all are taken. Handlers in sessions wait for people, so they have a quota of their
    /// own, and each caller gets only a part of it.
    pub(crate) fn take(
        runtime: &Arc<Runtime>,
        request: &Request<'_>,
        principal: Option<&Principal>,
    ) -> Option<Self> {
        if let Some(session) = &request.session {
            let share = session.handler_permit(principal, &runtime.limits)?;
            return Some(Self { running: None, _in_session: Some(share) });
        }
        let permit = Self { running: Some(Arc::clone(runtime)), _in_session: None };
        // Counted first, so that two requests cannot both take the last permit.
        (runtime.running.fetch_add(1, Ordering::Relaxed) < runtime.limits.handlers).then_some(permit)
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        if let Some(runtime) = &self.running {
            runtime.running.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
