//! A store that counts the operations of a leg, and notes what the leg writes.

use antiphon::store::{
    CallStore, StoreFuture,
    calls::{
        Appended, BlobDigest, CallKey, Claim, ClaimRequest, Fence, Owner, StepRecord, StoreReach, Swept,
    },
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The values that a leg writes, which the raw operations write too.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sizes {
    /// The length of the outcome.
    pub(crate) outcome: usize,
    /// The lengths of the records of the step: of its start, and of its end.
    pub(crate) records: Vec<usize>,
}

/// A store that counts.
#[derive(Debug)]
pub(crate) struct Counted {
    store: Arc<dyn CallStore>,
    operations: AtomicUsize,
    sizes: Mutex<Sizes>,
}

impl Counted {
    pub(crate) fn new(store: Arc<dyn CallStore>) -> Self {
        Self { store, operations: AtomicUsize::new(0), sizes: Mutex::default() }
    }

    /// Returns the number of operations so far.
    pub(crate) fn operations(&self) -> usize {
        self.operations.load(Ordering::Relaxed)
    }

    /// Returns the lengths of what the last leg has written.
    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts an operation, and notes what it writes.
    fn count(&self, note: impl FnOnce(&mut Sizes)) -> &dyn CallStore {
        self.operations.fetch_add(1, Ordering::Relaxed);
        note(&mut self.sizes.lock().unwrap_or_else(PoisonError::into_inner));
        &*self.store
    }
}

impl CallStore for Counted {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.count(|sizes| *sizes = Sizes::default()).claim(request)
    }

    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        self.count(|_| ()).renew(fence, lease)
    }

    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        self.count(|sizes| sizes.records.push(record.value().len())).append(fence, record)
    }

    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        self.count(|sizes| sizes.outcome = outcome.len()).commit(fence, outcome)
    }

    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        self.count(|_| ()).release(fence)
    }

    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        self.count(|_| ()).load(call)
    }

    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest> {
        self.count(|_| ()).put(blob, keep, owner)
    }

    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        self.count(|_| ()).get(digest)
    }

    // The sweeper is not a part of a leg.
    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        self.store.sweep(limit)
    }

    fn reach(&self) -> StoreReach {
        self.store.reach()
    }
}
