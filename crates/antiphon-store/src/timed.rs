//! A store of calls whose operations are timed.

use crate::{
    blob::BlobDigest,
    changes::ChangeFeed,
    claim::{CallKey, Claim, ClaimRequest, Fence, Owner},
    error::{StoreError, StoreFuture},
    identity::{StoreIdentity, StoreReach},
    step::{Appended, StepRecord},
    store::{CallStore, Swept},
    task::TaskStore,
};
use std::{
    fmt,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

/// An operation of a store that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreOperation {
    /// [`CallStore::claim`].
    Claim,
    /// [`CallStore::renew`].
    Renew,
    /// [`CallStore::append`].
    Append,
    /// [`CallStore::commit`].
    Commit,
    /// [`CallStore::release`].
    Release,
    /// [`CallStore::load`].
    Load,
    /// [`CallStore::put`].
    Put,
    /// [`CallStore::get`].
    Get,
}

/// Receives an operation that ended, true if it succeeded, and its time.
type Observer = dyn Fn(StoreOperation, bool, Duration) + Send + Sync;

/// A store that passes the time of each operation to an observer: for metrics. Transactions and sweeps are not timed.
#[derive(Clone)]
pub struct TimedStore {
    store: Arc<dyn CallStore>,
    observer: Arc<Observer>,
}

impl TimedStore {
    /// Returns the store, with an observer of its operations.
    pub fn new(
        store: Arc<dyn CallStore>,
        observer: impl Fn(StoreOperation, bool, Duration) + Send + Sync + 'static,
    ) -> Self {
        Self { store, observer: Arc::new(observer) }
    }

    fn timed<'a, T>(
        &'a self,
        operation: StoreOperation,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let begin = Instant::now();
            let result = work.await;
            (self.observer)(operation, result.is_ok(), begin.elapsed());
            result
        })
    }
}

impl fmt::Debug for TimedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

impl CallStore for TimedStore {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.timed(StoreOperation::Claim, self.store.claim(request))
    }

    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        self.timed(StoreOperation::Renew, self.store.renew(fence, lease))
    }

    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        self.timed(StoreOperation::Append, self.store.append(fence, record))
    }

    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        self.timed(StoreOperation::Commit, self.store.commit(fence, outcome))
    }

    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        self.timed(StoreOperation::Release, self.store.release(fence))
    }

    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        self.timed(StoreOperation::Load, self.store.load(call))
    }

    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest> {
        self.timed(StoreOperation::Put, self.store.put(blob, keep, owner))
    }

    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        self.timed(StoreOperation::Get, self.store.get(digest))
    }

    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        self.store.sweep(limit)
    }

    fn reach(&self) -> StoreReach {
        self.store.reach()
    }

    fn identity(&self) -> Option<StoreIdentity> {
        self.store.identity()
    }

    fn tasks(&self) -> Option<Arc<dyn TaskStore>> {
        self.store.tasks()
    }

    fn change_feed(&self) -> Option<Arc<dyn ChangeFeed>> {
        self.store.change_feed()
    }
}
