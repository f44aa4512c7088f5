//! All sessions of a server: how many there may be, and which of them was asked to open which URL.

use super::session::{Session, Shared};
use crate::server::{Limits, refusal::Refusal};
use antiphon_seal::{CallSecret, Digest, EntropyError, Principal};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

/// The sessions that are open.
pub(in crate::server) struct Sessions {
    /// Principals are told apart by digests under it.
    secret: CallSecret,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    count: usize,
    by_principal: HashMap<[u8; 16], usize>,
    /// Who was asked to open a URL, by the id of that question.
    asked: HashMap<String, Vec<Weak<Shared>>>,
}

/// A session's place among those that may be open; free again when dropped.
pub(super) struct Place {
    sessions: Arc<Sessions>,
    principal: Option<[u8; 16]>,
}

impl Sessions {
    pub(in crate::server) fn new() -> Result<Arc<Self>, EntropyError> {
        Ok(Arc::new(Self { secret: CallSecret::random()?, open: Mutex::default() }))
    }

    /// Who a caller is, to be compared in constant time.
    pub(super) fn digest(&self, principal: &Principal) -> Digest {
        self.secret.principal_digest(principal)
    }

    /// A place for one more session.
    pub(super) fn place(
        self: &Arc<Self>,
        principal: Option<&Digest>,
        limits: &Limits,
    ) -> Result<Place, Refusal> {
        let principal = principal.map(|digest| digest.to_bytes());
        let mut open = self.open();
        let theirs = principal.map_or(0, |known| open.by_principal.get(&known).copied().unwrap_or_default());
        if open.count >= limits.sessions || theirs >= limits.sessions_per_principal {
            tracing::warn!(open = open.count, theirs, "too many sessions: one was refused");
            return Err(Refusal::Busy);
        }
        open.count += 1;
        if let Some(known) = principal {
            *open.by_principal.entry(known).or_default() += 1;
        }
        drop(open);
        Ok(Place { sessions: Arc::clone(self), principal })
    }

    /// Remembers who was asked to open a URL.
    pub(super) fn note_asked(&self, id: &str, session: &Session) {
        let mut open = self.open();
        let asked = open.asked.entry(id.to_owned()).or_default();
        if !asked.iter().any(|known| known.as_ptr() == Arc::as_ptr(&session.0)) {
            asked.push(Arc::downgrade(&session.0));
        }
    }

    /// Forgets that this session was asked.
    pub(super) fn forget_asked(&self, id: &str, session: *const Shared) {
        let mut open = self.open();
        if let Some(asked) = open.asked.get_mut(id) {
            asked.retain(|known| known.as_ptr() != session);
            if asked.is_empty() {
                open.asked.remove(id);
            }
        }
    }

    /// The sessions that were asked to open the URL of this id.
    pub(in crate::server) fn asked(&self, id: &str) -> Vec<Session> {
        let open = self.open();
        open.asked.get(id).into_iter().flatten().filter_map(Weak::upgrade).map(Session).collect()
    }

    /// How many are open.
    pub(in crate::server) fn len(&self) -> usize {
        self.open().count
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // Each change of it leaves it whole.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.sessions.open();
        open.count -= 1;
        let Some(known) = self.principal else { return };
        if let Some(theirs) = open.by_principal.get_mut(&known) {
            *theirs -= 1;
            if *theirs == 0 {
                open.by_principal.remove(&known);
            }
        }
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("open", &self.len()).finish_non_exhaustive()
    }
}
