//! The store of tasks under test: two handles to the same rows, and the hand of their clock.

pub(super) use crate::contract::outcome_of;

use crate::{
    claim::{BlobDigest, Owner, RunnerId},
    clock::ManualStoreClock,
    error::{StoreError, StoreErrorKind},
    task::{
        NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskLimits, TaskNext, TaskRow, TaskSent,
        TaskStore, TaskSummary, TaskUpdate,
    },
};
use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The lease of the checks.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// The `ttl` of the checks: longer than a check that is not about the end of a row.
pub(super) const TTL: Duration = Duration::from_secs(600);
/// The smallest step of the clock.
pub(super) const TICK: Duration = Duration::from_micros(1);
/// More rows than the checks make.
pub(super) const MANY: usize = 10_000;

/// The first snapshot of a task.
pub(super) const FIRST_SNAPSHOT: &[u8] = b"first snapshot";

/// A store of tasks under test.
#[derive(Debug)]
pub struct TaskSubject {
    pub(super) first: Arc<dyn TaskStore>,
    pub(super) second: Arc<dyn TaskStore>,
    pub(super) clock: ManualStoreClock,
    /// Distinguishes the tasks of this subject from those of earlier ones in the same rows.
    nonce: u64,
    keys: AtomicU64,
}

impl TaskSubject {
    /// Returns a subject of two handles to the same rows, and the hand of the clock that both use. Two handles are two
    /// instances of a server: two connections, two pools.
    #[must_use]
    pub fn new(first: Arc<dyn TaskStore>, second: Arc<dyn TaskStore>, clock: ManualStoreClock) -> Self {
        Self {
            first,
            second,
            clock,
            nonce: RandomState::new().build_hasher().finish(),
            keys: AtomicU64::new(0),
        }
    }

    /// Returns bytes that no other task and no other owner has.
    fn next_bytes(&self) -> [u8; 16] {
        let number = self.keys.fetch_add(1, Ordering::SeqCst);
        let digest = BlobDigest::of(&[self.nonce.to_be_bytes(), number.to_be_bytes()].concat());
        let (half, _) = digest.as_bytes().split_at(16);
        half.try_into().unwrap_or([0; 16])
    }

    /// Returns a task that has no row, of an owner without tasks.
    pub(super) fn new_task(&self) -> NewTask {
        NewTask {
            task: TaskKey::from_bytes(self.next_bytes()),
            owner: Owner::from_bytes(self.next_bytes()),
            snapshot: FIRST_SNAPSHOT.to_vec(),
            ttl: Some(TTL),
        }
    }

    /// Creates a task through the first handle.
    pub(super) async fn create(&self, task: &NewTask, limits: &TaskLimits) -> Outcome<TaskCreated> {
        outcome_of(self.first.create(task, limits).await)
    }

    /// Creates a new task with this `ttl`.
    pub(super) async fn created(&self, ttl: Option<Duration>) -> TaskKey {
        let new = NewTask { ttl, ..self.new_task() };
        assert_eq!(self.create(&new, &TaskLimits::default()).await, Ok(TaskCreated::First), "{new:?}");
        new.task
    }

    /// Sends a message through the second handle.
    pub(super) async fn send(&self, task: TaskKey, message: &[u8]) -> Outcome<TaskSent> {
        outcome_of(self.second.send(task, message, &TaskLimits::default()).await)
    }

    /// Sends a message to a task that must accept it.
    pub(super) async fn queued(&self, task: TaskKey, message: &[u8]) {
        assert_eq!(self.send(task, message).await, Ok(TaskSent::Queued), "{task}: {message:?}");
    }

    /// Claims through the second handle.
    pub(super) async fn claim(&self, task: TaskKey, runner: u8) -> TaskClaim {
        expect("claim", self.second.claim(task, self::runner(runner), LEASE).await)
    }

    /// Claims through the first handle; the claim must be granted.
    pub(super) async fn granted(&self, task: TaskKey, runner: u8) -> (TaskFence, TaskRow) {
        match self.first.claim(task, self::runner(runner), LEASE).await {
            Ok(TaskClaim::Fresh(fence, row)) => (fence, row),
            other => panic!("the claim of {task} by runner {runner} was not granted: {other:?}"),
        }
    }

    /// Updates through the first handle.
    pub(super) async fn update(&self, fence: &TaskFence, update: &TaskUpdate) -> Outcome<()> {
        outcome_of(self.first.update(fence, update).await)
    }

    /// Updates a task whose fence must be valid.
    pub(super) async fn updated(&self, fence: &TaskFence, update: &TaskUpdate) {
        assert_eq!(self.update(fence, update).await, Ok(()), "{update:?}");
    }

    /// Ends a task, so that its row does not stay.
    pub(super) async fn end(&self, task: TaskKey) {
        self.clock.advance(TTL);
        if self.load(task).await.is_some_and(|row| !row.is_final) {
            let (fence, _) = self.granted(task, 1).await;
            self.updated(&fence, &release(b"end", 0, TaskNext::Final(LEASE))).await;
        }
    }

    /// Loads through the second handle.
    pub(super) async fn load(&self, task: TaskKey) -> Option<TaskRow> {
        expect("load", self.second.load(task).await)
    }

    /// Loads a row that must exist.
    pub(super) async fn row(&self, task: TaskKey) -> TaskRow {
        self.load(task).await.unwrap_or_else(|| panic!("{task} is gone"))
    }

    /// Returns true if the second handle lists the task as due.
    pub(super) async fn is_due(&self, task: TaskKey) -> bool {
        expect("due", self.second.due(MANY).await).contains(&task)
    }

    /// Returns the summary of a task in the list of the second handle.
    pub(super) async fn summary(&self, task: TaskKey) -> Option<TaskSummary> {
        let list = expect("list", self.second.list(MANY).await);
        list.into_iter().find(|summary| summary.task == task)
    }
}

/// The result of an operation, without the text of its error.
pub(super) type Outcome<T> = Result<T, StoreErrorKind>;

/// Returns the value of an operation that must succeed.
pub(super) fn expect<T>(operation: &str, result: Result<T, StoreError>) -> T {
    result.unwrap_or_else(|error| panic!("{operation}: {error:?}"))
}

/// Returns the runner with this number.
pub(super) fn runner(number: u8) -> RunnerId {
    RunnerId::from_bytes([number; 16])
}

/// Returns an update that gives the lease back.
pub(super) fn release(snapshot: &[u8], taken: u64, next: TaskNext) -> TaskUpdate {
    TaskUpdate { snapshot: snapshot.to_vec(), taken, next, keeps_lease: false }
}

/// Returns an update after which the run goes on.
pub(super) fn keep(snapshot: &[u8], taken: u64, next: TaskNext) -> TaskUpdate {
    TaskUpdate { keeps_lease: true, ..release(snapshot, taken, next) }
}

/// Returns the messages of a row as pairs of number and content.
pub(super) fn messages(row: &TaskRow) -> Vec<(u64, &[u8])> {
    row.messages.iter().map(|message| (message.number, &*message.body)).collect()
}

/// An event in the life of a task.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The clock advances.
    Wait(Duration),
    /// A client sends a message.
    Send,
    /// Runner 1 claims the task, with the lease of the checks.
    Claim,
    /// The lease ends this much later.
    Renew(Duration),
    /// The runner takes the messages up to a number, and gives the lease back.
    Release(u64, TaskNext),
    /// The runner takes the messages up to a number, and runs on.
    Keep(u64, TaskNext),
}

/// A task, and the fence of its last claim.
pub(super) struct Life<'a> {
    subject: &'a TaskSubject,
    pub(super) new: NewTask,
    pub(super) fence: Option<TaskFence>,
}

impl<'a> Life<'a> {
    /// Creates a task with this `ttl`, to which all these events happen.
    pub(super) async fn of(
        subject: &'a TaskSubject,
        ttl: Option<Duration>,
        events: &[Event],
        case: &str,
    ) -> Self {
        let new = NewTask { ttl, ..subject.new_task() };
        expect(case, subject.first.create(&new, &TaskLimits::default()).await);
        let mut life = Self { subject, new, fence: None };
        for event in events {
            life.happens(*event, case).await;
        }
        life
    }

    pub(super) fn task(&self) -> TaskKey {
        self.new.task
    }

    async fn happens(&mut self, event: Event, case: &str) {
        let case = format!("{case}: {event:?}");
        let subject = self.subject;
        match event {
            Event::Wait(time) => subject.clock.advance(time),
            Event::Send => subject.queued(self.task(), b"message").await,
            Event::Claim => self.fence = Some(subject.granted(self.task(), 1).await.0),
            Event::Renew(lease) => expect(&case, subject.first.renew(&self.last_fence(), lease).await),
            Event::Release(taken, next) => self.update(&case, release(b"snapshot", taken, next)).await,
            Event::Keep(taken, next) => {
                self.update(&case, keep(b"snapshot", taken, next)).await;
            }
        }
    }

    async fn update(&self, case: &str, update: TaskUpdate) {
        expect(case, self.subject.first.update(&self.last_fence(), &update).await);
    }

    /// Returns the fence of the last claim, or one that was never given.
    pub(super) fn last_fence(&self) -> TaskFence {
        self.fence.unwrap_or(TaskFence::new(self.task(), 0))
    }
}

/// Half a lease.
pub(super) const HALF: Duration = Duration::from_secs(LEASE.as_secs() / 2);
