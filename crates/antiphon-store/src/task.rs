//! The trait of stores of tasks: one row per task, run under a lease with a fence, with a queue of messages.

pub(crate) mod program;
pub(crate) mod state;

pub use crate::properties::TaskLimits;

use crate::{
    claim::{Owner, RunnerId},
    error::StoreFuture,
    properties::StoreReach,
};
use std::{fmt, sync::Arc, time::Duration};

/// A store of tasks, for one machine: the rows of the embedded task engine.
///
/// A row has a snapshot, which the run of the task replaces, and a queue of messages, which clients fill while nothing runs or
/// beside a run. A runner claims the row, reads the snapshot and the messages, runs, and [updates](TaskStore::update) the row:
/// with the new snapshot, and without the messages that it took. Updates are atomic: a message is either still in the queue or
/// part of the snapshot.
///
/// A row whose time is over is not found any more, although [`sweep`](TaskStore::sweep) removes it later. All moments are on the
/// store's clock; durations count from now. Every operation may be repeated after [`Written::Unknown`](crate::Written::Unknown),
/// but a repeated [`send`](TaskStore::send) may add its message twice, and a repeated update that gives the lease back fails with
/// [`FenceLost`](crate::StoreErrorKind::FenceLost) if the first one was written.
/// The caller seals snapshots and messages: a store sees no plain text. `antiphon_store::contract::check_tasks` (feature
/// `testing`) checks a store of your own.
pub trait TaskStore: fmt::Debug + Send + Sync + 'static {
    /// Creates a row that is due at once. A row that exists stays as it is: the same task is created again.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError); [`Full`](crate::StoreErrorKind::Full) if a limit is reached. Then there is no row.
    fn create<'a>(&'a self, task: &'a NewTask, limits: &'a TaskLimits) -> StoreFuture<'a, TaskCreated>;

    /// Returns a row, or nothing if there is none or its time is over.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn load(&self, task: TaskKey) -> StoreFuture<'_, Option<TaskRow>>;

    /// Returns a row as [`load`](Self::load) does, but its snapshot may end behind its first `bytes` bytes: requests about a task
    /// need no more of a long one. The default returns the whole row.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn load_head(&self, task: TaskKey, bytes: usize) -> StoreFuture<'_, Option<TaskRow>> {
        let _ = bytes;
        self.load(task)
    }

    /// Adds a message to the queue of a task. A task that [waits](TaskNext::Waits) is then due. A message that is sent again because
    /// its confirmation was lost may be in the queue twice.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError); [`Full`](crate::StoreErrorKind::Full) if the queue has as many messages or bytes as the
    /// limits allow.
    fn send<'a>(
        &'a self,
        task: TaskKey,
        message: &'a [u8],
        limits: &'a TaskLimits,
    ) -> StoreFuture<'a, TaskSent>;

    /// Asks to run a task: whether it is due does not matter, unless it [pauses](TaskNext::Pauses). The same runner that claims
    /// again within its lease gets the same fence.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError); then the task does not run.
    fn claim(&self, task: TaskKey, runner: RunnerId, lease: Duration) -> StoreFuture<'_, TaskClaim>;

    /// Extends the lease: it ends `lease` from now. A lease that ended is valid again if nobody took the task over.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError), also if the fence is lost.
    fn renew<'a>(&'a self, fence: &'a TaskFence, lease: Duration) -> StoreFuture<'a, ()>;

    /// Replaces the snapshot, and removes the messages up to `taken`.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError), also if the fence is lost. Then nothing has changed.
    fn update<'a>(&'a self, fence: &'a TaskFence, update: &'a TaskUpdate) -> StoreFuture<'a, ()>;

    /// Returns tasks that are due, the one that waits longest first. A task is due if it is not [final](TaskNext::Final), no
    /// lease holds it, and it [runs](TaskNext::Runs), has a message, or the moment has come until which it waits.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn due(&self, limit: usize) -> StoreFuture<'_, Vec<TaskKey>>;

    /// Returns the rows of all tasks, the oldest first, without snapshots and messages, for the operator.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn list(&self, limit: usize) -> StoreFuture<'_, Vec<TaskSummary>>;

    /// Returns the tasks of one owner after this key, in the order of their keys: the next page of a list.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn list_of_owner(
        &self,
        owner: Owner,
        after: Option<TaskKey>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<TaskKey>>;

    /// Removes at most `limit` rows whose time is over and which no lease holds. Returns their number.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn sweep(&self, limit: usize) -> StoreFuture<'_, usize>;

    /// Returns the set of processes that see the rows of this store.
    fn reach(&self) -> StoreReach;
}

/// The key of a task: 16 random bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey([u8; 16]);

impl TaskKey {
    /// Returns the key with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::claim::write_hex(f, &self.0)
    }
}

impl fmt::Debug for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskKey({self})")
    }
}

/// A task to create.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewTask {
    /// The key.
    pub task: TaskKey,
    /// The caller who is charged.
    pub owner: Owner,
    /// The first snapshot.
    pub snapshot: Vec<u8>,
    /// The time for which the row exists, whatever happens. `None`: until it is final, and then for the time of
    /// [`TaskNext::Final`].
    pub ttl: Option<Duration>,
}

impl NewTask {
    /// Returns a task that exists until it is final, and then for the time of [`TaskNext::Final`].
    #[must_use]
    pub fn new(task: TaskKey, owner: Owner, snapshot: impl Into<Vec<u8>>) -> Self {
        Self { task, owner, snapshot: snapshot.into(), ttl: None }
    }

    /// Returns the task with this [`ttl`](Self::ttl).
    #[must_use]
    pub fn with_ttl(mut self, ttl: impl Into<Option<Duration>>) -> Self {
        self.ttl = ttl.into();
        self
    }
}

/// The result of [`TaskStore::create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskCreated {
    /// A new row was created.
    First,
    /// A row with this key existed. It has not changed.
    Existing,
}

/// The result of [`TaskStore::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskSent {
    /// The message is in the queue.
    Queued,
    /// The task is final: the message was dropped.
    Final,
    /// No task has this key.
    NotFound,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskRow {
    /// The snapshot. A store in memory shares it, so that a look at a large task costs no more than one at a small task.
    pub snapshot: Arc<[u8]>,
    /// The messages in the queue, in the order of their arrival.
    pub messages: Vec<TaskMessage>,
    /// A number that grows with each change of the snapshot or of the queue.
    pub version: u64,
    /// True if the task is final.
    pub is_final: bool,
    /// True if a lease holds the task now.
    pub is_held: bool,
}

impl TaskRow {
    /// Returns a row without messages, which is neither final nor held: for authors of stores, who set the other fields.
    #[must_use]
    pub fn new(snapshot: impl Into<Arc<[u8]>>, version: u64) -> Self {
        Self { snapshot: snapshot.into(), messages: Vec::new(), version, is_final: false, is_held: false }
    }
}

/// A message in the queue of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskMessage {
    /// The number of the message: from 1, in the order of arrival, never used twice in a task.
    pub number: u64,
    /// The content.
    pub body: Vec<u8>,
}

impl TaskMessage {
    /// Returns the message with this number.
    #[must_use]
    pub fn new(number: u64, body: impl Into<Vec<u8>>) -> Self {
        Self { number, body: body.into() }
    }
}

/// The result of [`TaskStore::claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskClaim {
    /// The caller runs the task, under this fence.
    Fresh(TaskFence, TaskRow),
    /// Another runner runs the task, under a valid lease, or the task [pauses](TaskNext::Pauses).
    Held {
        /// The rest of the lease; of the pause, if no lease is valid.
        retry_after: Duration,
    },
    /// The task is final.
    Final,
    /// No task has this key.
    NotFound,
}

/// The proof that its owner runs a task: the number of a claim, higher for every later claim of the same key, also if the row of
/// the earlier claim is gone and there is a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskFence {
    task: TaskKey,
    number: i64,
}

impl TaskFence {
    /// Returns the fence with this number: for authors of stores.
    #[must_use]
    pub const fn new(task: TaskKey, number: i64) -> Self {
        Self { task, number }
    }

    /// Returns the task.
    #[must_use]
    pub const fn task(&self) -> TaskKey {
        self.task
    }

    /// Returns the number of the claim.
    #[must_use]
    pub const fn number(&self) -> i64 {
        self.number
    }
}

/// A change of a row by its runner.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskUpdate {
    /// The new snapshot.
    pub snapshot: Vec<u8>,
    /// The number of the last message that the snapshot contains; 0 for none.
    pub taken: u64,
    /// The state of the task after the update.
    pub next: TaskNext,
    /// True if the lease stays: the run goes on.
    pub keeps_lease: bool,
}

impl TaskUpdate {
    /// Returns the update with this snapshot and state, which takes no messages and gives the lease back.
    #[must_use]
    pub fn new(snapshot: impl Into<Vec<u8>>, next: TaskNext) -> Self {
        Self { snapshot: snapshot.into(), taken: 0, next, keeps_lease: false }
    }

    /// Returns the update with this number of the last message that the snapshot contains.
    #[must_use]
    pub fn with_taken(mut self, number: u64) -> Self {
        self.taken = number;
        self
    }

    /// Returns the update, with which the lease stays or not.
    #[must_use]
    pub fn with_lease_kept(mut self, keeps: bool) -> Self {
        self.keeps_lease = keeps;
        self
    }
}

/// The state of a task after an update.
///
/// The enum is exhaustive: a store that ignored a state would run a task too early, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskNext {
    /// The task runs on: it is due whenever no lease holds it.
    Runs,
    /// The task runs on after this time, and not before, also if a message comes.
    Pauses(Duration),
    /// The task waits for a message, and for this time at most, if there is one.
    Waits(Option<Duration>),
    /// The task is over. The row is kept for this time, or until its `ttl` if that is later. Messages are dropped.
    Final(Duration),
}

/// A row without its content, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskSummary {
    /// The key.
    pub task: TaskKey,
    /// The age of the row.
    pub age: Duration,
    /// The time since the last change.
    pub unchanged_for: Duration,
    /// The rest of the time for which the row exists; `None` for a task without a limit that is not final.
    pub rest: Option<Duration>,
    /// The state of the row.
    pub state: TaskState,
    /// The number of messages in the queue.
    pub messages: usize,
    /// The number of messages so far, those in the queue included.
    pub received: u64,
    /// The bytes of the snapshot.
    pub snapshot_bytes: usize,
    /// The number of claims so far.
    pub claims: i64,
}

/// The state of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskState {
    /// A lease holds the task.
    Held,
    /// The task is due, and no lease holds it.
    Due,
    /// The task waits.
    Waits,
    /// The task is over.
    Final,
}

impl TaskSummary {
    /// Returns a summary without messages and claims: for authors of stores, who set the other fields.
    #[must_use]
    pub fn new(task: TaskKey, state: TaskState) -> Self {
        Self {
            task,
            age: Duration::ZERO,
            unchanged_for: Duration::ZERO,
            rest: None,
            state,
            messages: 0,
            received: 0,
            snapshot_bytes: 0,
            claims: 0,
        }
    }
}
