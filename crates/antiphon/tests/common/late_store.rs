//! A store of calls whose operations, or their confirmations, are late or never come.

use antiphon::store::{
    CallStore, StoreFuture, TaskStore,
    calls::{
        Appended, BlobDigest, CallKey, Claim, ClaimRequest, Fence, Owner, StepRecord, StoreReach, Swept,
    },
};
use futures_util::future::BoxFuture;
use std::{fmt, sync::Arc, time::Duration};

/// A moment of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    BeforeRenew,
    AfterRenew,
    AfterAppend,
    BeforeCommit,
    AfterCommit,
    BeforeRelease,
}

type Wait = dyn Fn(Moment) -> BoxFuture<'static, ()> + Send + Sync;

/// A store that waits at moments of its operations.
pub struct LateStore {
    store: Arc<dyn CallStore>,
    wait: Box<Wait>,
}

impl LateStore {
    pub fn new<F>(store: Arc<dyn CallStore>, wait: impl Fn(Moment) -> F + Send + Sync + 'static) -> Arc<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Arc::new(Self { store, wait: Box::new(move |moment| Box::pin(wait(moment))) })
    }
}

impl fmt::Debug for LateStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LateStore").field(&self.store).finish()
    }
}

impl CallStore for LateStore {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.store.claim(request)
    }
    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            (self.wait)(Moment::BeforeRenew).await;
            let renewed = self.store.renew(fence, lease).await;
            (self.wait)(Moment::AfterRenew).await;
            renewed
        })
    }
    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            let appended = self.store.append(fence, record).await;
            (self.wait)(Moment::AfterAppend).await;
            appended
        })
    }
    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            (self.wait)(Moment::BeforeCommit).await;
            let committed = self.store.commit(fence, outcome).await;
            (self.wait)(Moment::AfterCommit).await;
            committed
        })
    }
    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            (self.wait)(Moment::BeforeRelease).await;
            self.store.release(fence).await
        })
    }
    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        self.store.load(call)
    }
    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest> {
        self.store.put(blob, keep, owner)
    }
    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        self.store.get(digest)
    }
    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        self.store.sweep(limit)
    }
    fn tasks(&self) -> Option<Arc<dyn TaskStore>> {
        self.store.tasks()
    }
    fn reach(&self) -> StoreReach {
        self.store.reach()
    }
}
