//! Places that all share: so many in all, and so many for one principal.

use antiphon_seal::Digest;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The places that are taken.
#[derive(Default)]
pub(crate) struct Quota(Mutex<Usage>);

#[derive(Default)]
struct Usage {
    all: usize,
    by_principal: HashMap<[u8; 16], usize>,
}

/// One place; free again when dropped.
pub(crate) struct QuotaPermit {
    of: Arc<Quota>,
    principal: Option<[u8; 16]>,
}

/// Why there is none: so many are taken, and so many of them by who wants one more.
pub(crate) struct QuotaExceeded {
    pub(crate) all: usize,
    pub(crate) theirs: usize,
}

impl Quota {
    /// One more place of at most `all`, and of at most `each` of one principal. Who has no name is bounded by `all` alone.
    pub(crate) fn take(
        self: &Arc<Self>,
        principal: Option<&Digest>,
        all: usize,
        each: usize,
    ) -> Result<QuotaPermit, QuotaExceeded> {
        let principal = principal.map(|digest| digest.to_bytes());
        let mut taken = self.taken();
        let theirs = principal.map_or(0, |known| taken.by_principal.get(&known).copied().unwrap_or_default());
        if taken.all >= all || (principal.is_some() && theirs >= each) {
            return Err(QuotaExceeded { all: taken.all, theirs });
        }
        taken.all += 1;
        if let Some(known) = principal {
            *taken.by_principal.entry(known).or_default() += 1;
        }
        drop(taken);
        Ok(QuotaPermit { of: Arc::clone(self), principal })
    }

    /// How many are taken.
    pub(crate) fn len(&self) -> usize {
        self.taken().all
    }

    fn taken(&self) -> MutexGuard<'_, Usage> {
        // Each change of it leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        taken.all -= 1;
        let Some(known) = self.principal else { return };
        if let Some(theirs) = taken.by_principal.get_mut(&known) {
            *theirs -= 1;
            if *theirs == 0 {
                taken.by_principal.remove(&known);
            }
        }
    }
}
