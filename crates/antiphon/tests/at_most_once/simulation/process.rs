//! One process of the fleet: it may die, or pause for a time, at each of its events.

use antiphon::store::{
    CallStore, StoreFuture, TaskLimits, TaskStore,
    calls::{
        Appended, BlobDigest, CallKey, Claim, ClaimRequest, Fence, Owner, RunnerId, StepRecord, StoreReach,
        Swept,
    },
    tasks::{
        NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskRow, TaskSent, TaskSummary, TaskUpdate,
    },
};
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep_until};

/// The fault of a process at one of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// Nothing of the process runs any longer.
    Dies,
    /// Nothing of the process runs for this time.
    Pauses(Duration),
}

/// A process.
#[derive(Debug)]
pub(super) struct Process {
    fault: Fault,
    /// The number of events until the fault.
    left: AtomicUsize,
    dead: AtomicBool,
    paused_at: std::sync::Mutex<Option<Instant>>,
}

impl Process {
    /// Returns a process that has this fault at the event of this number.
    pub(super) fn new(fault: Fault, at: usize) -> Arc<Self> {
        let (left, dead, paused_at) = (AtomicUsize::new(at), AtomicBool::new(false), Default::default());
        Arc::new(Self { fault, left, dead, paused_at })
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(SeqCst)
    }

    /// Returns true if the process died or paused.
    pub(super) fn had_fault(&self) -> bool {
        self.is_dead() || self.paused_at.lock().unwrap().is_some()
    }

    /// An event at which the process may die or pause.
    pub(super) async fn event(&self) {
        self.meets(true).await;
    }

    /// An event at which the process may die. Between the stored start of a step and its effect, a pause beyond the lease
    /// has a late effect, which no store can prevent.
    pub(super) async fn event_of_step(&self) {
        self.meets(false).await;
    }

    async fn meets(&self, may_pause: bool) {
        // Others run in between.
        tokio::task::yield_now().await;
        let is_due = self.left.load(SeqCst) == 0 && (may_pause || self.fault == Fault::Dies);
        match self.fault {
            Fault::Dies if is_due => self.dead.store(true, SeqCst),
            Fault::Pauses(_) if is_due => {
                self.paused_at.lock().unwrap().get_or_insert_with(Instant::now);
            }
            _ => {
                let _ = self.left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
            }
        }
        if self.is_dead() {
            pending::<()>().await;
        }
        let paused_at = *self.paused_at.lock().unwrap();
        if let (Some(begun), Fault::Pauses(time)) = (paused_at, self.fault) {
            sleep_until(begun + time).await;
        }
    }
}

/// The store as a process has it: each operation has an event before and after.
#[derive(Debug)]
pub(super) struct ProcessStore {
    pub(super) process: Arc<Process>,
    pub(super) store: Arc<dyn CallStore>,
}

impl ProcessStore {
    fn run<'a, T: Send + 'a>(&'a self, operation: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(async move {
            self.process.event().await;
            let result = operation.await;
            self.process.event().await;
            result
        })
    }
}

impl CallStore for ProcessStore {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.run(self.store.claim(request))
    }

    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        self.run(self.store.renew(fence, lease))
    }

    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            self.process.event().await;
            let result = self.store.append(fence, record).await;
            self.process.event_of_step().await;
            result
        })
    }

    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        self.run(self.store.commit(fence, outcome))
    }

    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        self.run(self.store.release(fence))
    }

    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        self.run(self.store.load(call))
    }

    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest> {
        self.run(self.store.put(blob, keep, owner))
    }

    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        self.run(self.store.get(digest))
    }

    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        self.store.sweep(limit)
    }

    fn reach(&self) -> StoreReach {
        StoreReach::Fleet
    }

    fn tasks(&self) -> Option<Arc<dyn TaskStore>> {
        let calls = Self { process: Arc::clone(&self.process), store: Arc::clone(&self.store) };
        Some(Arc::new(ProcessTasks { calls, tasks: self.store.tasks()? }))
    }
}

/// The tasks of a [`ProcessStore`].
#[derive(Debug)]
struct ProcessTasks {
    calls: ProcessStore,
    tasks: Arc<dyn TaskStore>,
}

impl TaskStore for ProcessTasks {
    fn create<'a>(&'a self, task: &'a NewTask, limits: &'a TaskLimits) -> StoreFuture<'a, TaskCreated> {
        self.calls.run(self.tasks.create(task, limits))
    }

    fn load(&self, task: TaskKey) -> StoreFuture<'_, Option<TaskRow>> {
        self.tasks.load(task)
    }

    fn send<'a>(
        &'a self,
        task: TaskKey,
        message: &'a [u8],
        limits: &'a TaskLimits,
    ) -> StoreFuture<'a, TaskSent> {
        self.calls.run(self.tasks.send(task, message, limits))
    }

    fn claim(&self, task: TaskKey, runner: RunnerId, lease: Duration) -> StoreFuture<'_, TaskClaim> {
        self.calls.run(self.tasks.claim(task, runner, lease))
    }

    fn renew<'a>(&'a self, fence: &'a TaskFence, lease: Duration) -> StoreFuture<'a, ()> {
        self.calls.run(self.tasks.renew(fence, lease))
    }

    fn update<'a>(&'a self, fence: &'a TaskFence, update: &'a TaskUpdate) -> StoreFuture<'a, ()> {
        self.calls.run(self.tasks.update(fence, update))
    }

    fn due(&self, limit: usize) -> StoreFuture<'_, Vec<TaskKey>> {
        self.tasks.due(limit)
    }

    fn list(&self, limit: usize) -> StoreFuture<'_, Vec<TaskSummary>> {
        self.tasks.list(limit)
    }

    fn list_of_owner(
        &self,
        owner: Owner,
        after: Option<TaskKey>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<TaskKey>> {
        self.tasks.list_of_owner(owner, after, limit)
    }

    fn sweep(&self, limit: usize) -> StoreFuture<'_, usize> {
        self.tasks.sweep(limit)
    }

    fn reach(&self) -> StoreReach {
        StoreReach::Fleet
    }
}
