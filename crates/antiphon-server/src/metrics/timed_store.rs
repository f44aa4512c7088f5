//! A store of calls whose operations are timed.

use super::{Meters, StoreOperation};
use antiphon_store::{
    Appended, BlobDigest, CallKey, CallStore, Claim, ClaimRequest, Fence, Owner, StepRecord, StoreError,
    StoreFuture, StoreIdentity, StoreReach, Swept, TaskStore,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// A store, and the meters of its server.
#[derive(Debug)]
pub(crate) struct TimedStore {
    store: Arc<dyn CallStore>,
    meters: Arc<Meters>,
}

impl TimedStore {
    pub(crate) fn new(store: Arc<dyn CallStore>, meters: Arc<Meters>) -> Self {
        Self { store, meters }
    }

    fn timed<'a, T>(
        &'a self,
        operation: StoreOperation,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let begin = Instant::now();
            let result = work.await;
            self.meters.stored(operation, result.is_ok(), begin.elapsed());
            result
        })
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
}
