//! All sessions of a server: their quota, the quota of their handlers, and the sessions that were asked to open a URL.

use crate::{
    identity::account::Account,
    metrics::Meters,
    options::limits::Limits,
    quota::{Quota, QuotaExceeded, QuotaLimits, QuotaPermit},
};
use antiphon_seal::{CallSecret, Digest, EntropyError, Principal};
use antiphon_wire::lock::Lock;
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, MutexGuard, Weak},
};

/// A session whose client may have been asked to open a URL.
pub(crate) trait UrlSession: Send + Sync {
    /// Records that the person has finished at the URL of this id, and wakes the task that sends notifications.
    fn url_finished(&self, id: &str);
}

/// The sessions that are open.
pub(crate) struct Sessions {
    /// The key of the digests that identify principals.
    secret: CallSecret,
    open: Arc<Quota>,
    /// The permits of handlers in sessions.
    handlers: Arc<Quota>,
    /// The sessions that were asked to open a URL, by the id of the question.
    url_sessions: Lock<HashMap<String, Vec<Weak<dyn UrlSession>>>>,
    pub(crate) metrics: Arc<Meters>,
}

impl Sessions {
    pub(crate) fn new(metrics: Arc<Meters>) -> Result<Arc<Self>, EntropyError> {
        let secret = CallSecret::random()?;
        Ok(Arc::new(Self {
            secret,
            open: Arc::default(),
            handlers: Arc::default(),
            url_sessions: Lock::default(),
            metrics,
        }))
    }

    /// Returns the digest of a principal, for comparison in constant time.
    pub(crate) fn digest(&self, principal: &Principal) -> Digest {
        self.secret.principal_digest(principal)
    }

    /// Takes a permit for one more session.
    pub(crate) fn session_permit(
        &self,
        account: Account,
        limits: &Limits,
    ) -> Result<QuotaPermit, QuotaExceeded> {
        let (each_principal, each_address) = (limits.sessions_per_principal, limits.sessions_per_address);
        self.open.take(account, &QuotaLimits::new(limits, limits.sessions, each_principal, each_address))
    }

    /// Takes a permit for one more handler; `None` if all are taken, or all of this caller.
    pub(crate) fn handler_permit(&self, account: Account, limits: &Limits) -> Option<QuotaPermit> {
        let all = limits.session_handlers;
        let each_principal = limits.session_handlers_per_principal;
        let each_address = limits.session_handlers_per_address;
        self.handlers
            .take(account, &QuotaLimits::new(limits, all, each_principal, each_address))
            .inspect_err(|full| {
                let (limit, all, theirs) = (full.limit, full.all, full.theirs);
                tracing::debug!(?limit, all, theirs, "too many handlers of sessions: a request was refused");
            })
            .ok()
    }

    /// Adds a session that was asked to open a URL.
    pub(crate) fn add_url_session(&self, id: &str, session: Weak<dyn UrlSession>) {
        let mut all = self.all_url_sessions();
        let asked = all.entry(id.to_owned()).or_default();
        if !asked.iter().any(|known| known.as_ptr().addr() == session.as_ptr().addr()) {
            asked.push(session);
        }
    }

    /// Removes a session that was asked to open a URL.
    pub(crate) fn remove_url_session(&self, id: &str, session: usize) {
        let mut all = self.all_url_sessions();
        if let Some(asked) = all.get_mut(id) {
            asked.retain(|known| known.as_ptr().addr() != session);
            if asked.is_empty() {
                all.remove(id);
            }
        }
    }

    /// Returns the sessions that were asked to open the URL of this id.
    pub(crate) fn url_sessions(&self, id: &str) -> Vec<Arc<dyn UrlSession>> {
        self.all_url_sessions().get(id).into_iter().flatten().filter_map(Weak::upgrade).collect()
    }

    /// Returns the number of open sessions.
    pub(crate) fn len(&self) -> usize {
        self.open.in_use()
    }

    /// Returns the number of handlers that run in sessions.
    pub(crate) fn handlers(&self) -> usize {
        self.handlers.in_use()
    }

    fn all_url_sessions(&self) -> MutexGuard<'_, HashMap<String, Vec<Weak<dyn UrlSession>>>> {
        // Each change is complete before the lock is released.
        self.url_sessions.lock()
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("open", &self.len()).finish_non_exhaustive()
    }
}
