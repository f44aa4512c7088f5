//! A store that fails on purpose, before or after a chosen operation reaches the rows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::blob::BlobDigest;
use crate::claim::{Claim, ClaimRequest, Fence};
use crate::error::{StoreError, StoreErrorKind, Written};
use crate::identity::StoreIdentity;
use crate::key::{CallKey, Owner};
use crate::step::{Appended, StepRecord};
use crate::store::{CallStore, StoreFuture, StoreReach, Swept};

/// A failure of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreFault {
    /// The store refused the operation: [`Written::No`].
    Refused,
    /// The operation did not reach the store, and the caller cannot know that: [`Written::Unknown`].
    LostRequest,
    /// The operation reached the store, and its confirmation was lost: [`Written::Unknown`].
    LostReply,
}

impl StoreFault {
    /// All faults.
    pub const ALL: [Self; 3] = [Self::Refused, Self::LostRequest, Self::LostReply];
}

/// A store that passes operations on to another one, and fails those that it is told to. It has the identity of that store, whose
/// [transactions](crate::Transact) do not pass through it.
#[derive(Debug)]
pub struct FaultyStore {
    inner: Arc<dyn CallStore>,
    plan: Mutex<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    operations: usize,
    faults: HashMap<usize, StoreFault>,
    down: Option<StoreFault>,
}

impl FaultyStore {
    /// Returns a store without faults.
    #[must_use]
    pub fn new(inner: Arc<dyn CallStore>) -> Self {
        Self { inner, plan: Mutex::default() }
    }

    /// Adds a fault of the operation with this number. The first operation has the number 0.
    #[must_use]
    pub fn fail(self, operation: usize, fault: StoreFault) -> Self {
        self.plan().faults.insert(operation, fault);
        self
    }

    /// Sets the fault of every operation from now on, or none.
    pub fn set_down(&self, fault: Option<StoreFault>) {
        self.plan().down = fault;
    }

    /// Returns the number of operations so far, with those that failed.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.plan().operations
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_fault(&self) -> Option<StoreFault> {
        let mut plan = self.plan();
        let number = plan.operations;
        plan.operations += 1;
        plan.faults.get(&number).copied().or(plan.down)
    }

    fn run<'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        operation: StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let fail = |kind, written| Err(StoreError::new(kind, written, name, "a fault on purpose"));
            match self.next_fault() {
                None => operation.await,
                Some(StoreFault::Refused) => fail(StoreErrorKind::Unreachable, Written::No),
                Some(StoreFault::LostRequest) => fail(StoreErrorKind::Timeout, Written::Unknown),
                Some(StoreFault::LostReply) => {
                    operation.await?;
                    fail(StoreErrorKind::Timeout, Written::Unknown)
                }
            }
        })
    }
}

impl CallStore for FaultyStore {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.run("claim", self.inner.claim(request))
    }

    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        self.run("renew", self.inner.renew(fence, lease))
    }

    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        self.run("append", self.inner.append(fence, record))
    }

    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        self.run("commit", self.inner.commit(fence, outcome))
    }

    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        self.run("release", self.inner.release(fence))
    }

    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        self.run("load", self.inner.load(call))
    }

    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest> {
        self.run("put", self.inner.put(blob, keep, owner))
    }

    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        self.run("get", self.inner.get(digest))
    }

    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        self.run("sweep", self.inner.sweep(limit))
    }

    fn reach(&self) -> StoreReach {
        self.inner.reach()
    }

    /// The tasks have no faults.
    fn tasks(&self) -> Option<Arc<dyn crate::TaskStore>> {
        self.inner.tasks()
    }

    fn identity(&self) -> Option<StoreIdentity> {
        self.inner.identity()
    }
}
