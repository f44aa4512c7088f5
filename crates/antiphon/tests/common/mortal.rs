//! A process that dies at an operation of its store, and its store of calls and tasks.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its part")]

use antiphon::store::{
    CallStore, StoreClock, StoreFuture, StoreIdentity, TaskLimits, TaskStore,
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
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::time::Instant;

/// The death of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    /// The operations of the store that come before, from now on.
    pub after: usize,
    /// True if the operation at which the process dies takes effect, and only its confirmation is lost.
    pub takes_effect: bool,
}

/// A process. When it is dead, its operations never return, and its code stops where it [waits](Self::alive).
#[derive(Debug, Default)]
pub struct Process {
    dead: AtomicBool,
    died: tokio::sync::Notify,
    death: Mutex<Option<Death>>,
    /// The operation, counted from the first one, that is confirmed so much later.
    late: Mutex<Option<(usize, Duration)>>,
    /// The operation from which on all wait, and for how long; then the moment.
    stands: Mutex<Option<(usize, Duration)>>,
    stands_until: Mutex<Option<Instant>>,
    operations: AtomicUsize,
    /// The seed of the pauses of operations; none with 0.
    pauses: AtomicU64,
}

impl Process {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Has each operation pause by itself before and after its effect, so that others run in between.
    pub fn pauses(&self, seed: u64) {
        self.pauses.store(seed | 1, SeqCst);
    }

    async fn pause(&self) {
        let seed = self.pauses.load(SeqCst);
        if seed == 0 {
            return;
        }
        let next = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.pauses.store(next | 1, SeqCst);
        match (next >> 33) % 16 {
            0 => tokio::time::sleep(Duration::from_millis((next >> 40) % 20)).await,
            1..5 => tokio::task::yield_now().await,
            _ => {}
        }
    }

    /// Has the process die at an operation to come, if there are so many.
    pub fn dies(&self, death: Option<Death>) {
        *self.death.lock().unwrap() = death;
    }

    /// Has the confirmation of one operation come late.
    pub fn is_late(&self, operation: usize, by: Duration) {
        *self.late.lock().unwrap() = Some((operation, by));
    }

    /// Has all operations from this one of those to come wait for so long, together.
    pub fn stands(&self, operation: usize, time: Duration) {
        *self.stands.lock().unwrap() = Some((self.operations() + operation, time));
    }

    pub fn die(&self) {
        self.dead.store(true, SeqCst);
        self.died.notify_waiters();
    }

    /// Returns when the process is dead.
    pub async fn died(&self) {
        let died = self.died.notified();
        if !self.is_dead() {
            died.await;
        }
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(SeqCst)
    }

    /// Returns the number of operations that began.
    pub fn operations(&self) -> usize {
        self.operations.load(SeqCst)
    }

    /// Never returns in a dead process.
    pub async fn alive(&self) {
        if self.is_dead() {
            pending::<()>().await;
        }
    }

    /// Begins an operation. Returns true if the process dies behind it.
    async fn begin(&self) -> bool {
        self.alive().await;
        let dies = {
            let mut death = self.death.lock().unwrap();
            match &mut *death {
                Some(death) if death.after > 0 => {
                    death.after -= 1;
                    None
                }
                due => due.take(),
            }
        };
        if dies.is_some_and(|death| !death.takes_effect) {
            self.die();
        }
        self.alive().await;
        dies.is_some()
    }

    async fn stand(&self, number: usize) {
        let stands = *self.stands.lock().unwrap();
        if let Some((_, time)) = stands.filter(|(first, _)| number >= *first) {
            let until = *self.stands_until.lock().unwrap().get_or_insert_with(|| Instant::now() + time);
            tokio::time::sleep_until(until).await;
        }
    }

    /// Runs an operation that counts.
    async fn run<T>(&self, operation: impl Future<Output = T>) -> T {
        let number = self.operations.fetch_add(1, SeqCst);
        self.pause().await;
        self.stand(number).await;
        let dies_behind = self.begin().await;
        let result = operation.await;
        if dies_behind {
            self.die();
        }
        self.pause().await;
        self.alive().await;
        let late = *self.late.lock().unwrap();
        if let Some((_, by)) = late.filter(|(late, _)| *late == number) {
            tokio::time::sleep(by).await;
            self.alive().await;
        }
        result
    }
}

/// The clock of a store: the paused one of the runtime, also in other threads.
#[derive(Clone, Debug)]
pub struct StoreTime {
    begun: Instant,
    now: Arc<AtomicU64>,
}

impl StoreTime {
    pub fn begin() -> Self {
        Self { begun: Instant::now(), now: Arc::default() }
    }

    pub fn clock(&self) -> StoreClock {
        let now = Arc::clone(&self.now);
        StoreClock::from_fn(move || {
            antiphon::store::calls::Micros::new(1_800_000_000_000_000)
                .after(Duration::from_micros(now.load(SeqCst)))
        })
    }

    /// Returns the moment at which the clock began.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    fn read(&self) {
        let now = u64::try_from(self.begun.elapsed().as_micros()).expect("a short test");
        self.now.store(now, SeqCst);
    }
}

/// The store of a [`Process`]. Operations take no time of the runtime's clock, also if a thread serves them.
#[derive(Clone, Debug)]
pub struct MortalStore {
    pub process: Arc<Process>,
    pub store: Arc<dyn CallStore>,
    pub time: StoreTime,
}

impl MortalStore {
    fn run<'a, T: Send + 'a>(&'a self, operation: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(self.process.run(self.at_once(operation)))
    }

    /// Waits for the operation while the clock stands.
    async fn at_once<T>(&self, operation: StoreFuture<'_, T>) -> Result<T, antiphon::store::StoreError> {
        self.time.read();
        block_on(operation)
    }

    /// Runs an operation that does not count: it changes nothing.
    fn reads<'a, T: Send + 'a>(&'a self, operation: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(async move {
            self.process.alive().await;
            self.at_once(operation).await
        })
    }
}

/// Blocks the thread until the future is ready: the paused clock of its runtime stands meanwhile.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    let mut cx = std::task::Context::from_waker(&waker);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        std::thread::park();
    }
}

impl CallStore for MortalStore {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.run(self.store.claim(request))
    }
    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        self.run(self.store.renew(fence, lease))
    }
    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        self.run(self.store.append(fence, record))
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
        self.reads(self.store.sweep(limit))
    }
    fn reach(&self) -> StoreReach {
        StoreReach::Fleet
    }
    fn identity(&self) -> Option<StoreIdentity> {
        self.store.identity()
    }
    fn tasks(&self) -> Option<Arc<dyn TaskStore>> {
        Some(Arc::new(MortalTasks { calls: self.clone(), tasks: self.store.tasks()? }))
    }
}

/// The tasks of a [`MortalStore`].
#[derive(Debug)]
struct MortalTasks {
    calls: MortalStore,
    tasks: Arc<dyn TaskStore>,
}

impl TaskStore for MortalTasks {
    fn create<'a>(&'a self, task: &'a NewTask, limits: &'a TaskLimits) -> StoreFuture<'a, TaskCreated> {
        self.calls.run(self.tasks.create(task, limits))
    }
    fn load(&self, task: TaskKey) -> StoreFuture<'_, Option<TaskRow>> {
        self.calls.reads(self.tasks.load(task))
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
        self.calls.reads(self.tasks.due(limit))
    }
    fn list(&self, limit: usize) -> StoreFuture<'_, Vec<TaskSummary>> {
        self.calls.reads(self.tasks.list(limit))
    }
    fn list_of_owner(
        &self,
        owner: Owner,
        after: Option<TaskKey>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<TaskKey>> {
        self.calls.reads(self.tasks.list_of_owner(owner, after, limit))
    }
    fn sweep(&self, limit: usize) -> StoreFuture<'_, usize> {
        self.calls.reads(self.tasks.sweep(limit))
    }
    fn reach(&self) -> StoreReach {
        StoreReach::Fleet
    }
}
