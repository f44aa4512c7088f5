//! The store in the memory of one process: bounded, and gone with the process.

mod changes;
mod table;
mod tasks;

pub use self::{table::MemoryLimits, tasks::MemoryTasks};

use self::{changes::MemoryChanges, table::Table};
use crate::{
    changes::ChangeFeed,
    check,
    claim::{BlobDigest, CallKey, Claim, ClaimRequest, Fence, Owner},
    clock::{Micros, StoreClock},
    error::{StoreError, StoreErrorKind},
    properties::StoreIdentity,
    row::{Operation, Reply},
    step::{Appended, StepRecord},
    store::{CallStore, StoreFuture, StoreReach, Swept},
    task::TaskStore,
};
#[cfg(antiphon_loom)]
use loom::sync::{Mutex, MutexGuard};
#[cfg(not(antiphon_loom))]
use std::sync::{Mutex, MutexGuard};
use std::{
    future::ready,
    sync::{Arc, PoisonError},
    time::Duration,
};

/// A store in the memory of one process.
///
/// The store is bounded in rows and bytes, in all and for each owner, and refuses what is over a limit. A row is never removed
/// before it expires. The rows end with the process: if the sealing keys outlive it, a leg may run again after a restart.
#[derive(Debug)]
pub struct MemoryStore {
    table: Mutex<Table>,
    limits: MemoryLimits,
    clock: StoreClock,
    tasks: Arc<MemoryTasks>,
    changes: Arc<MemoryChanges>,
    identity: StoreIdentity,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// Returns an empty store with the default limits and a clock that never goes back.
    #[must_use]
    pub fn new() -> Self {
        let clock = StoreClock::monotonic();
        let tasks = Arc::new(MemoryTasks::new().clock(clock.clone()));
        let (table, limits, identity) = (Mutex::default(), MemoryLimits::default(), StoreIdentity::new());
        Self { table, limits, clock, tasks, changes: Arc::default(), identity }
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: MemoryLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the clock of the rows. The store of tasks is then a new one.
    #[must_use]
    pub fn clock(mut self, clock: StoreClock) -> Self {
        self.tasks = Arc::new(MemoryTasks::new().clock(clock.clone()));
        self.clock = clock;
        self
    }

    /// Returns the number of calls and blobs in the store.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.begin().0.totals().0
    }

    /// Returns the number of bytes in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.begin().0.totals().1
    }

    /// Returns the number of owners that have a row.
    #[must_use]
    pub fn owners(&self) -> usize {
        self.begin().0.totals().2
    }

    fn begin(&self) -> (MutexGuard<'_, Table>, Micros) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = table.begin(self.clock.now());
        (table, now)
    }

    fn run(&self, call: CallKey, operation: Operation<'_>) -> Result<Reply, StoreError> {
        let (mut table, now) = self.begin();
        table.run(&self.limits, call, operation, now)
    }

    fn write(&self, name: &'static str, fence: &Fence, operation: Operation<'_>) -> Result<(), StoreError> {
        match self.run(fence.call(), operation)? {
            Reply::FenceLost => Err(StoreError::fence_lost(name)),
            Reply::Claim(_) | Reply::Written | Reply::Existing => Ok(()),
        }
    }

    fn claim_now(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        check::claim(request)?;
        match self.run(request.call, Operation::Claim(request))? {
            Reply::Claim(claim) => Ok(claim),
            reply => Err(StoreError::read(StoreErrorKind::Corrupt, "claim", format!("{reply:?}"))),
        }
    }

    fn append_now(&self, fence: &Fence, record: &StepRecord) -> Result<Appended, StoreError> {
        check::record(record)?;
        let (mut table, now) = self.begin();
        match table.run(&self.limits, fence.call(), Operation::Append(fence, record), now)? {
            Reply::FenceLost => Err(StoreError::fence_lost("append")),
            Reply::Existing => Ok(Appended::Existing(table.value(fence.call(), record))),
            Reply::Claim(_) | Reply::Written => Ok(Appended::First),
        }
    }

    fn put_now(&self, blob: &[u8], keep: Duration, owner: Owner) -> Result<BlobDigest, StoreError> {
        check::value("put", blob)?;
        check::keep("put", keep)?;
        let digest = BlobDigest::of(blob);
        let (mut table, now) = self.begin();
        table.put(&self.limits, digest, blob, now.after(keep), owner)?;
        Ok(digest)
    }
}

impl CallStore for MemoryStore {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        Box::pin(async { self.claim_now(request) })
    }

    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            check::lease("renew", lease)?;
            self.write("renew", fence, Operation::Renew(fence, lease))
        })
    }

    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        Box::pin(async { self.append_now(fence, record) })
    }

    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async {
            check::value("commit", outcome)?;
            self.write("commit", fence, Operation::Commit(fence, outcome))
        })
    }

    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        Box::pin(async { self.write("release", fence, Operation::Release(fence)) })
    }

    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        Box::pin(async move {
            let (table, now) = self.begin();
            Ok(table.load(call, now))
        })
    }

    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest> {
        Box::pin(async move { self.put_now(blob, keep, owner) })
    }

    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            let (table, now) = self.begin();
            // The map's own key is compared; the bytes of this process do not change.
            Ok(table.get(digest, now))
        })
    }

    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        let swept = {
            let (mut table, _) = self.begin();
            table.sweep(limit)
        };
        Box::pin(ready(Ok(swept)))
    }

    fn reach(&self) -> StoreReach {
        StoreReach::Process
    }

    fn identity(&self) -> Option<StoreIdentity> {
        Some(self.identity)
    }

    fn tasks(&self) -> Option<Arc<dyn TaskStore>> {
        Some(self.tasks.clone())
    }

    /// Reaches the servers of this process that share the store.
    fn change_feed(&self) -> Option<Arc<dyn ChangeFeed>> {
        Some(self.changes.clone())
    }
}
