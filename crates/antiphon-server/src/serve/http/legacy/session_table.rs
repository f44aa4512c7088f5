//! The sessions of one endpoint, by their ids. The server limits their number; the endpoint ends those that are idle.

use crate::{
    identity::account::Account,
    outbox::Outbox,
    quota::Exceeded,
    serve::http::{legacy::streams::SessionStreams, options::EventLimits},
    server::message_service::MessageSession,
};
use antiphon_seal::{EntropyError, SecretKey};
use antiphon_wire::lock::Lock;
use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// The minimum time between two searches for idle sessions.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The time after which a session ends whose client sends nothing after `initialize`: anybody can open one.
const UNUSED_FOR: Duration = Duration::from_secs(60);

/// The time without use after which a session may end for an anonymous `initialize`.
const EVICTED_AFTER: Duration = Duration::from_secs(10);

/// A session and its event streams. Dropping it ends the session.
pub(crate) struct OpenSession<T: MessageSession> {
    pub(crate) session: T,
    pub(crate) streams: Arc<SessionStreams>,
    /// The messages for the stream of a GET.
    pub(crate) outbox: Outbox,
    /// The account of the caller who opened the session.
    account: Account,
    /// True once the client has named the session.
    used: AtomicBool,
}

impl<T: MessageSession> OpenSession<T> {
    /// Notes that the caller who opened the session uses it now.
    pub(crate) fn touch(&self) {
        self.used.store(true, Ordering::Relaxed);
        self.streams.touch();
    }

    pub(crate) fn end(&self) {
        self.session.end();
        self.streams.end();
    }
}

impl<T: MessageSession> Drop for OpenSession<T> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The sessions of an endpoint. Dropping the table ends them.
pub(crate) struct SessionTable<T: MessageSession> {
    entries: Lock<Entries<T>>,
    idle: Duration,
    limits: EventLimits,
    /// An outbox that stays empty: those of the sessions are limited together with it.
    outbox: Outbox,
    /// The bytes of the events that are stored for all sessions.
    bytes: Arc<AtomicUsize>,
}

struct Entries<T: MessageSession> {
    by_id: HashMap<String, Arc<OpenSession<T>>>,
    swept: Instant,
}

impl<T: MessageSession> SessionTable<T> {
    pub(crate) fn new(idle: Duration, limits: EventLimits, outbox: Outbox) -> Self {
        let entries = Entries { by_id: HashMap::new(), swept: Instant::now() };
        Self { entries: Lock::new(entries), idle, limits, outbox, bytes: Arc::default() }
    }

    /// Adds a session under a new id with this prefix, and returns the id.
    ///
    /// > The session ID **SHOULD** be globally unique and cryptographically secure
    pub(crate) fn add(&self, session: T, account: Account, prefix: &str) -> Result<String, EntropyError> {
        // 256 random bits, of letters, digits, `-` and `_`.
        let id = format!("{prefix}{}", *SecretKey::random()?.to_base64url());
        let streams = SessionStreams::new(self.limits, Arc::clone(&self.bytes));
        let (outbox, used) = (self.outbox.sibling(), AtomicBool::new(false));
        let open = Arc::new(OpenSession { session, streams, outbox, account, used });
        self.entries().by_id.insert(id.clone(), open);
        Ok(id)
    }

    /// Returns the session of this id. The caller of this function checks who opened the session, then touches it.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<OpenSession<T>>> {
        let mut entries = self.entries();
        let open = Arc::clone(entries.by_id.get(id)?);
        if self.is_over(&open) {
            let gone = entries.by_id.remove(id);
            // The streams are dropped without the lock.
            drop(entries);
            drop(gone);
            open.end();
            return None;
        }
        Some(open)
    }

    /// Ends the session of this id.
    pub(crate) fn end(&self, id: &str) {
        let open = self.entries().by_id.remove(id);
        if let Some(open) = open {
            open.end();
        }
    }

    /// Ends the sessions that are idle.
    pub(crate) fn sweep(&self) {
        let mut entries = self.entries();
        if entries.swept.elapsed() < SWEEP_EVERY {
            return;
        }
        entries.swept = Instant::now();
        let over: Vec<_> = entries.by_id.extract_if(|_, open| self.is_over(open)).collect();
        drop(entries);
        for (_, open) in over {
            open.end();
        }
    }

    /// Ends an anonymous session, so that this account can open one although the quota is full. Returns whether one ended.
    ///
    /// The session that was not used for the longest time ends. A caller with a principal takes the place of any anonymous
    /// session, of one without requests and open streams first. An anonymous caller takes only that of a session which
    /// seems to be abandoned; if its own address has too many, that of a session of the same address.
    pub(crate) fn make_room(&self, account: Account, full: Exceeded) -> bool {
        let is_anonymous = account.is_anonymous();
        let of_address = full == Exceeded::Account;
        if of_address && !is_anonymous {
            return false;
        }
        let mut entries = self.entries();
        let oldest = entries
            .by_id
            .iter()
            .filter(|(_, open)| open.account.is_anonymous() && (!of_address || open.account == account))
            .map(|(id, open)| (open.streams.use_now(), id))
            .filter(|(used, _)| !is_anonymous || (!used.is_busy && used.before >= EVICTED_AFTER))
            .max_by_key(|(used, _)| (!used.is_busy, used.before))
            .map(|(_, id)| id.clone());
        let gone = oldest.and_then(|id| entries.by_id.remove(&id));
        drop(entries);
        let Some(gone) = gone else { return false };
        tracing::info!(?full, "the anonymous session that was idle for longest ends, for another");
        gone.end();
        true
    }

    /// Ends all sessions.
    pub(crate) fn end_all(&self) {
        let all = std::mem::take(&mut self.entries().by_id);
        for open in all.into_values() {
            open.end();
        }
    }

    fn is_over(&self, open: &OpenSession<T>) -> bool {
        let idle = if open.used.load(Ordering::Relaxed) { self.idle } else { self.idle.min(UNUSED_FOR) };
        open.session.is_ended() || open.streams.idle() >= idle
    }

    fn entries(&self) -> MutexGuard<'_, Entries<T>> {
        self.entries.lock()
    }
}

impl<T: MessageSession> Drop for SessionTable<T> {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl<T: MessageSession> fmt::Debug for SessionTable<T> {
    /// Writes no ids: an id gives access to its session.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionTable").field("open", &self.entries().by_id.len()).finish_non_exhaustive()
    }
}
