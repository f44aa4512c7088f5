//! The tasks of a server: their engine, their settings, and their changes.

pub(crate) mod leg;

use crate::{
    errors::{BuildError, refusal::Refusal},
    feed::{Change, Feed, TaskChange},
};
use antiphon_store::{
    BlobDigest, CallStore, EmbeddedEngine, MemoryTasks, StoreReach, TaskEngine, TaskLimits, TaskListener,
    TaskStore,
};
use futures_util::future::BoxFuture;
use leg::{AskedQuestions, TaskLeg};
use serde_json::value::RawValue;
use std::{
    fmt,
    num::NonZero,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Semaphore, broadcast};

/// The number of changes that a slow subscription may be behind; after that it looks at all its tasks.
const CHANGES: usize = 1024;

/// The way in which a leg of a task runs: as the server answers any request.
pub(crate) trait RunLeg: Send + Sync {
    /// Returns the result, or nothing if the server is gone.
    fn run<'a>(
        &'a self,
        message: &'a [u8],
        leg: &'a Arc<TaskLeg>,
    ) -> BoxFuture<'a, Option<Result<Box<RawValue>, Refusal>>>;
}

/// The number of the engine's reports that some tasks may have changed, of which one counts while the feed reports the tasks of other
/// instances: an instance may have died before it published its last change.
const UNNAMED: u32 = 10;

/// Returns the listener of an engine. It reports the changes of this process to the other instances.
fn listener(changes: broadcast::Sender<TaskChange>, feed: Option<Weak<Feed>>) -> TaskListener {
    let unnamed = AtomicU32::new(0);
    Box::new(move |task| {
        let feed = feed.as_ref().and_then(Weak::upgrade);
        let change = match (task, feed) {
            (Some(task), feed) => {
                feed.inspect(|feed| feed.report(Change::of_task(task)));
                TaskChange::Of(task)
            }
            (None, Some(feed))
                if feed.is_received() && unnamed.fetch_add(1, Ordering::Relaxed) % UNNAMED != UNNAMED - 1 =>
            {
                return;
            }
            (None, _) => TaskChange::Any,
        };
        // Without a subscription nobody receives it.
        let _ = changes.send(change);
    })
}

/// The tasks of a server.
pub(crate) struct Tasks {
    pub(crate) engine: Arc<dyn TaskEngine>,
    pub(crate) options: TaskOptions,
    pub(crate) legs: Box<dyn RunLeg>,
    /// True if requests of the draft are served.
    pub(crate) is_draft: bool,
    /// The questions that are with the client of a session.
    pub(crate) asked: Arc<AskedQuestions>,
    pub(crate) counters: TaskCounters,
    /// The places for requests that open a large content at once: another processor answers other requests.
    pub(crate) openings: Arc<Semaphore>,
    changes: broadcast::Sender<TaskChange>,
    /// The feed that reports the tasks of other instances.
    feed: Option<Weak<Feed>>,
    has_begun: AtomicBool,
}

impl Tasks {
    /// Returns the tasks of a server with these settings.
    pub(crate) fn new(
        settings: TaskSettings,
        calls: Option<&Arc<dyn CallStore>>,
        is_single: bool,
        legs: Box<dyn RunLeg>,
        feed: Option<&Arc<Feed>>,
    ) -> Result<Self, BuildError> {
        let TaskSettings { store, engine, options, is_draft } = settings;
        if engine.is_some() && store.is_some() {
            return Err(BuildError(
                "an engine of tasks has its own store: set `.task_engine(..)` or `.task_store(..)`, not both"
                    .to_owned(),
            ));
        }
        if options.lease < Duration::from_millis(30) || options.running == 0 {
            return Err(BuildError("tasks need a lease of 30 ms at least, and one that may run".to_owned()));
        }
        // Another engine reports the changes of other processes itself.
        let feed = feed.filter(|_| engine.is_none()).map(Arc::downgrade);
        let engine = engine.unwrap_or_else(|| {
            let store = store.or_else(|| calls.and_then(|calls| calls.tasks()));
            let store = store.unwrap_or_else(|| Arc::new(MemoryTasks::new()));
            Arc::new(EmbeddedEngine::new(store, options.lease, options.running))
        });
        if engine.reach() == StoreReach::Process && !is_single {
            return Err(BuildError(
                "other processes with the same keys do not see tasks in memory: use a store that they share, or say \
                 `.single_instance(true)` if there is one only"
                    .to_owned(),
            ));
        }
        let changes = broadcast::Sender::new(CHANGES);
        engine.subscribe(listener(changes.clone(), feed.clone()));
        let sender = changes.clone();
        let asked = AskedQuestions::new(Box::new(move |task| {
            // Another request may wait for the question.
            let _ = sender.send(TaskChange::Of(task));
        }));
        let (counters, has_begun) = (TaskCounters::default(), AtomicBool::new(false));
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let openings = Arc::new(Semaphore::new((processors / 2).max(1)));
        Ok(Self { engine, options, legs, is_draft, asked, counters, openings, changes, feed, has_begun })
    }

    /// Returns true for the first call: the engine is to begin.
    pub(crate) fn is_first_begin(&self) -> bool {
        !self.has_begun.load(Ordering::Relaxed) && !self.has_begun.swap(true, Ordering::Relaxed)
    }

    /// Returns the counts so far.
    pub(crate) fn metrics(&self) -> TaskMetrics {
        self.counters.to_metrics()
    }

    pub(crate) fn changes(&self) -> broadcast::Receiver<TaskChange> {
        if let Some(feed) = self.feed.as_ref().and_then(Weak::upgrade) {
            feed.start();
        }
        self.changes.subscribe()
    }

    /// Reports that another instance has changed the task with this digest, or that it may be any.
    pub(crate) fn changed_elsewhere(&self, task: Option<BlobDigest>) {
        // Without a subscription nobody receives it.
        let _ = self.changes.send(task.map_or(TaskChange::Any, TaskChange::Elsewhere));
    }

    /// Ends the legs that run, so that another process continues their tasks.
    pub(crate) fn drain(&self) {
        self.engine.drain();
    }

    /// Waits until no task runs in this process, for this time at most.
    pub(crate) async fn idle(&self, at_most: Duration) {
        // Tasks that still run are continued by another process when their lease is over.
        let _ = tokio::time::timeout(at_most, self.engine.idle()).await;
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("engine", &self.engine)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The settings of the tasks of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskOptions {
    pub(crate) ttl: Option<Duration>,
    pub(crate) keep: Duration,
    pub(crate) poll_interval: Duration,
    pub(crate) running: usize,
    pub(crate) lease: Duration,
    pub(crate) limits: TaskLimits,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self {
            ttl: Some(Duration::from_secs(24 * 3600)),
            keep: Duration::from_secs(3600),
            poll_interval: Duration::from_secs(1),
            running: 256,
            lease: Duration::from_secs(30),
            limits: TaskLimits::default(),
        }
    }
}

impl TaskOptions {
    /// Sets the time for which a task exists, from its creation; `None` for no limit. A question of the task can be answered as
    /// long as the task exists, but not after 390 days. Default: 24 hours.
    #[must_use]
    pub fn ttl(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.ttl = time.into();
        self
    }

    /// Sets the time for which a finished task is kept at least. Default: 1 hour.
    #[must_use]
    pub fn keep(mut self, time: Duration) -> Self {
        self.keep = time;
        self
    }

    /// Sets the time between two polls that is suggested to clients. Default: 1 second.
    #[must_use]
    pub fn poll_interval(mut self, time: Duration) -> Self {
        self.poll_interval = time;
        self
    }

    /// Sets the number of tasks that the embedded engine runs at once in this process; tasks that wait for an answer do not
    /// count. Default: 256.
    #[must_use]
    pub fn running(mut self, number: usize) -> Self {
        self.running = number;
        self
    }

    /// Sets the time until a process that does not renew its claim on a task counts as dead, for the embedded engine.
    /// Default: 30 seconds.
    #[must_use]
    pub fn lease(mut self, time: Duration) -> Self {
        self.lease = time;
        self
    }

    /// Sets the limits of the engine. Default: [`TaskLimits::default`].
    #[must_use]
    pub fn limits(mut self, limits: TaskLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// The tasks of a server, before it is built.
#[derive(Debug, Default)]
pub(crate) struct TaskSettings {
    pub(crate) store: Option<Arc<dyn TaskStore>>,
    pub(crate) engine: Option<Arc<dyn TaskEngine>>,
    pub(crate) options: TaskOptions,
    /// True if requests of the draft are served.
    pub(crate) is_draft: bool,
}

/// The counts of the tasks of one process, since it began: see [`Server::task_metrics`](crate::Server::task_metrics). A task that
/// moves to another process is counted there from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskMetrics {
    /// The legs that run now. A task that waits for an answer has none.
    pub running: u64,
    /// The tasks that were created.
    pub created: u64,
    /// The tasks that ended with a result, errors of tools included.
    pub completed: u64,
    /// The tasks that ended with a JSON-RPC error.
    pub failed: u64,
    /// The tasks that were cancelled.
    pub cancelled: u64,
    /// The legs that began: a task has one for each answer, at least.
    pub legs: u64,
    /// The legs that failed for now, and were to run again.
    pub failed_legs: u64,
    /// The legs that were stopped before their end: another process took the task over, or its time was over.
    pub lost_claims: u64,
    /// The answers and cancellations that were stored.
    pub messages: u64,
}

/// The counters behind [`TaskMetrics`].
#[derive(Debug, Default)]
pub(crate) struct TaskCounters {
    running: Counter,
    pub(crate) created: Counter,
    pub(crate) completed: Counter,
    pub(crate) failed: Counter,
    pub(crate) cancelled: Counter,
    pub(crate) legs: Counter,
    pub(crate) failed_legs: Counter,
    pub(crate) lost_claims: Counter,
    pub(crate) messages: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn subtract_one(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl TaskCounters {
    pub(crate) fn to_metrics(&self) -> TaskMetrics {
        TaskMetrics {
            running: self.running.get(),
            created: self.created.get(),
            completed: self.completed.get(),
            failed: self.failed.get(),
            cancelled: self.cancelled.get(),
            legs: self.legs.get(),
            failed_legs: self.failed_legs.get(),
            lost_claims: self.lost_claims.get(),
            messages: self.messages.get(),
        }
    }
}

/// A leg that runs. It counts as lost if it is dropped before its [end](Self::end).
pub(crate) struct RunningLeg<'a> {
    counters: &'a TaskCounters,
    has_ended: bool,
}

impl<'a> RunningLeg<'a> {
    pub(crate) fn new(counters: &'a TaskCounters) -> Self {
        counters.running.add_one();
        Self { counters, has_ended: false }
    }

    pub(crate) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for RunningLeg<'_> {
    fn drop(&mut self) {
        self.counters.running.subtract_one();
        if !self.has_ended {
            self.counters.lost_claims.add_one();
        }
    }
}
