//! Wrappers of stores and engines: an `Arc`, so that several parts of a program share one store, and a store of calls whose
//! operations are timed.

use crate::{
    changes::{ChangeChannel, ChangeFeed, ChangeWatch},
    claim::{BlobDigest, CallKey, Claim, ClaimRequest, Fence, Owner, RunnerId},
    error::{StoreError, StoreFuture, TaskFuture},
    properties::{StoreIdentity, StoreReach},
    step::{Appended, StepRecord},
    store::{CallStore, Swept},
    task::{
        NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskLimits, TaskRow, TaskSent, TaskStore,
        TaskSummary, TaskUpdate,
        program::{TaskEngine, TaskListener, TaskProgram},
    },
};
use std::{
    fmt,
    future::Future,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

/// Methods that call the same method of the value in an `Arc`.
macro_rules! forward {
    ($(fn $name:ident $(<$life:lifetime>)? (&$($self_life:lifetime)? self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => { $(
        fn $name $(<$life>)? (&$($self_life)? self $(, $argument: $type)*) $(-> $result)? {
            (**self).$name($($argument),*)
        }
    )* };
}

impl<T: CallStore + ?Sized> CallStore for Arc<T> {
    forward! {
        fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim>;
        fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()>;
        fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended>;
        fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()>;
        fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()>;
        fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>>;
        fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest>;
        fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>>;
        fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept>;
        fn reach(&self) -> StoreReach;
        fn identity(&self) -> Option<StoreIdentity>;
        fn tasks(&self) -> Option<Arc<dyn TaskStore>>;
        fn change_feed(&self) -> Option<Arc<dyn ChangeFeed>>;
    }
}

impl<T: ChangeFeed + ?Sized> ChangeFeed for Arc<T> {
    forward! {
        fn publish<'a>(&'a self, channel: ChangeChannel, message: &'a str) -> StoreFuture<'a, ()>;
        fn watch(&self, channel: ChangeChannel) -> StoreFuture<'_, Box<dyn ChangeWatch>>;
    }
}

impl<T: TaskStore + ?Sized> TaskStore for Arc<T> {
    forward! {
        fn create<'a>(&'a self, task: &'a NewTask, limits: &'a TaskLimits) -> StoreFuture<'a, TaskCreated>;
        fn load(&self, task: TaskKey) -> StoreFuture<'_, Option<TaskRow>>;
        fn load_head(&self, task: TaskKey, bytes: usize) -> StoreFuture<'_, Option<TaskRow>>;
        fn send<'a>(&'a self, task: TaskKey, message: &'a [u8], limits: &'a TaskLimits) -> StoreFuture<'a, TaskSent>;
        fn claim(&self, task: TaskKey, runner: RunnerId, lease: Duration) -> StoreFuture<'_, TaskClaim>;
        fn renew<'a>(&'a self, fence: &'a TaskFence, lease: Duration) -> StoreFuture<'a, ()>;
        fn update<'a>(&'a self, fence: &'a TaskFence, update: &'a TaskUpdate) -> StoreFuture<'a, ()>;
        fn due(&self, limit: usize) -> StoreFuture<'_, Vec<TaskKey>>;
        fn list(&self, limit: usize) -> StoreFuture<'_, Vec<TaskSummary>>;
        fn list_of_owner(&self, owner: Owner, after: Option<TaskKey>, limit: usize) -> StoreFuture<'_, Vec<TaskKey>>;
        fn sweep(&self, limit: usize) -> StoreFuture<'_, usize>;
        fn reach(&self) -> StoreReach;
    }
}

impl<T: TaskEngine + ?Sized> TaskEngine for Arc<T> {
    forward! {
        fn start<'a>(&'a self, task: &'a NewTask, limits: &'a TaskLimits) -> StoreFuture<'a, TaskCreated>;
        fn get(&self, task: TaskKey) -> StoreFuture<'_, Option<TaskRow>>;
        fn get_head(&self, task: TaskKey, bytes: usize) -> StoreFuture<'_, Option<TaskRow>>;
        fn send<'a>(&'a self, task: TaskKey, message: &'a [u8], limits: &'a TaskLimits) -> StoreFuture<'a, TaskSent>;
        fn subscribe(&self, listener: TaskListener);
        fn list(&self, limit: usize) -> StoreFuture<'_, Vec<TaskSummary>>;
        fn list_of_owner(&self, owner: Owner, after: Option<TaskKey>, limit: usize) -> StoreFuture<'_, Vec<TaskKey>>;
        fn begin(&self, program: Weak<dyn TaskProgram>);
        fn drain(&self);
        fn idle(&self) -> TaskFuture<'_, ()>;
        fn reach(&self) -> StoreReach;
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, MemoryTasks};

    /// Methods with a default are those of the store too.
    #[test]
    fn a_shared_store_is_the_store() {
        fn has_tasks(store: impl CallStore) -> bool {
            store.tasks().is_some() && store.change_feed().is_some()
        }
        fn reach(store: impl TaskStore) -> StoreReach {
            store.reach()
        }
        let shared = Arc::new(MemoryStore::new());
        assert!(has_tasks(Arc::clone(&shared)) && has_tasks(shared as Arc<dyn CallStore>));
        let tasks: Arc<dyn TaskStore> = Arc::new(MemoryTasks::new());
        assert_eq!(reach(Arc::clone(&tasks)), tasks.reach());
    }
}
