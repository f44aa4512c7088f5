//! A quota: a limit in all, and a limit for each principal.

use antiphon_seal::Digest;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The permits in use.
#[derive(Default)]
pub(crate) struct Quota(Mutex<Usage>);

#[derive(Default)]
struct Usage {
    all: usize,
    by_principal: HashMap<[u8; 16], usize>,
}

/// One permit, released when it is dropped.
pub(crate) struct QuotaPermit {
    of: Arc<Quota>,
    principal: Option<[u8; 16]>,
}

/// The error of a full quota: the number of permits in use, in all and by this principal.
pub(crate) struct QuotaExceeded {
    pub(crate) all: usize,
    pub(crate) theirs: usize,
}

impl Quota {
    /// Takes a permit, of at most `all` in all, and at most `each` of one principal. Anonymous callers are limited by
    /// `all` only.
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

    /// Returns the number of permits in use.
    pub(crate) fn len(&self) -> usize {
        self.taken().all
    }

    fn taken(&self) -> MutexGuard<'_, Usage> {
        // Each change is complete before the lock is released.
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
