//! The sessions of one endpoint, by their ids. How many there may be is the server's affair; here they end when nobody
//! uses them any more.

use crate::{
    Outbox, Session,
    serve::http::legacy::{store::Bounds, streams::Streams},
};
use antiphon_seal::{EntropyError, SecretKey};
use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// Sessions that nobody uses are looked for this often at most.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// A session whose client says nothing behind its `initialize` ends after so long: anybody can begin one.
const UNUSED_FOR: Duration = Duration::from_secs(60);

/// One session, and what it needs on this transport. It has ended when it is dropped.
pub(crate) struct Open {
    pub(crate) session: Session,
    pub(crate) streams: Arc<Streams>,
    /// What is told on the stream of a GET.
    pub(crate) told: Outbox,
    /// Its client named it.
    used: AtomicBool,
}

impl Open {
    /// Who opened it uses it now.
    pub(crate) fn touch(&self) {
        self.used.store(true, Ordering::Relaxed);
        self.streams.touch();
    }

    pub(crate) fn end(&self) {
        self.session.end();
        self.streams.end();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.end();
    }
}

/// All sessions of an endpoint. They end with it.
pub(crate) struct Sessions {
    table: Mutex<Table>,
    idle: Duration,
    bounds: Bounds,
    /// The bytes of events that all of them keep.
    bytes: Arc<AtomicUsize>,
}

struct Table {
    by_id: HashMap<String, Arc<Open>>,
    swept: Instant,
}

impl Sessions {
    pub(crate) fn new(idle: Duration, bounds: Bounds) -> Self {
        let table = Table { by_id: HashMap::new(), swept: Instant::now() };
        Self { table: Mutex::new(table), idle, bounds, bytes: Arc::default() }
    }

    /// Keeps a session, under a new id that begins so.
    ///
    /// > The session ID **SHOULD** be globally unique and cryptographically secure
    pub(crate) fn add(&self, session: Session, prefix: &str) -> Result<String, EntropyError> {
        // 256 random bits, of letters, digits, `-` and `_`.
        let id = format!("{prefix}{}", *SecretKey::random()?.to_base64url());
        let streams = Streams::new(self.bounds, Arc::clone(&self.bytes));
        let open = Arc::new(Open { session, streams, told: Outbox::default(), used: AtomicBool::new(false) });
        self.table().by_id.insert(id.clone(), open);
        Ok(id)
    }

    /// The session of this id. Whose it is has yet to be looked at; asked for by a stranger, it is not in use.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Open>> {
        let mut table = self.table();
        let open = Arc::clone(table.by_id.get(id)?);
        if self.is_over(&open) {
            let gone = table.by_id.remove(id);
            // What it holds is dropped without the lock.
            drop(table);
            drop(gone);
            open.end();
            return None;
        }
        Some(open)
    }

    /// Ends the session of this id.
    pub(crate) fn end(&self, id: &str) {
        let open = self.table().by_id.remove(id);
        if let Some(open) = open {
            open.end();
        }
    }

    /// Ends the sessions that nobody uses.
    pub(crate) fn sweep(&self) {
        let mut table = self.table();
        if table.swept.elapsed() < SWEEP_EVERY {
            return;
        }
        table.swept = Instant::now();
        let over: Vec<_> = table.by_id.extract_if(|_, open| self.is_over(open)).collect();
        drop(table);
        for (_, open) in over {
            open.end();
        }
    }

    /// Ends all sessions.
    pub(crate) fn end_all(&self) {
        let all = std::mem::take(&mut self.table().by_id);
        for open in all.into_values() {
            open.end();
        }
    }

    fn is_over(&self, open: &Open) -> bool {
        let idle = if open.used.load(Ordering::Relaxed) { self.idle } else { self.idle.min(UNUSED_FOR) };
        open.session.is_ended() || open.streams.idle() >= idle
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Each change of it leaves it whole.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl fmt::Debug for Sessions {
    /// No ids: whoever has one has the session.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("open", &self.table().by_id.len()).finish_non_exhaustive()
    }
}
