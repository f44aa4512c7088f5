//! The tasks of a server: their store, their settings, and those that this process runs now.

pub(crate) mod active;
mod metrics;
mod options;

pub use self::metrics::TaskMetrics;
pub use self::options::TaskOptions;
pub(crate) use self::options::TaskSettings;
use self::{active::ActiveTasks, metrics::TaskCounters};
use crate::{BuildError, refusal::Refusal, task_leg::TaskLeg};
use antiphon_store::{CallStore, MemoryTasks, StoreReach, TaskKey, TaskStore};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
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

/// The tasks of a server.
pub(crate) struct Tasks {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) options: TaskOptions,
    pub(crate) active: ActiveTasks,
    /// The places of the tasks that run at once.
    pub(crate) places: Arc<Semaphore>,
    pub(crate) legs: Box<dyn RunLeg>,
    pub(crate) counters: TaskCounters,
    changes: broadcast::Sender<TaskKey>,
    has_begun: AtomicBool,
}

impl Tasks {
    /// Returns the tasks of a server with these settings.
    pub(crate) fn new(
        settings: TaskSettings,
        calls: Option<&Arc<dyn CallStore>>,
        is_single: bool,
        legs: Box<dyn RunLeg>,
    ) -> Result<Self, BuildError> {
        let TaskSettings { store, options } = settings;
        let store = store.or_else(|| calls.and_then(|calls| calls.tasks()));
        let store = store.unwrap_or_else(|| Arc::new(MemoryTasks::new()));
        if store.reach() == StoreReach::Process && !is_single {
            return Err(BuildError(
                "other processes with the same keys do not see tasks in memory: use a store that they share, or say \
                 `.single_instance()` if there is one only"
                    .to_owned(),
            ));
        }
        if options.lease < Duration::from_millis(30) || options.running == 0 {
            return Err(BuildError("tasks need a lease of 30 ms at least, and one that may run".to_owned()));
        }
        let places = Arc::new(Semaphore::new(options.running.min(Semaphore::MAX_PERMITS)));
        let changes = broadcast::Sender::new(CHANGES);
        let has_begun = AtomicBool::new(false);
        let counters = TaskCounters::default();
        Ok(Self { store, options, active: ActiveTasks::new(), places, legs, counters, changes, has_begun })
    }

    /// Returns true for the first call: the process is to look for tasks that are due.
    pub(crate) fn is_first_look(&self) -> bool {
        !self.has_begun.load(Ordering::Relaxed) && !self.has_begun.swap(true, Ordering::Relaxed)
    }

    /// Returns the counts so far.
    pub(crate) fn metrics(&self) -> TaskMetrics {
        self.counters.to_metrics(self.active.count())
    }

    /// Notes that a task has changed, for the subscriptions.
    pub(crate) fn changed(&self, key: TaskKey) {
        // Without a subscription nobody receives it.
        let _ = self.changes.send(key);
    }

    pub(crate) fn changes(&self) -> broadcast::Receiver<TaskKey> {
        self.changes.subscribe()
    }

    /// Ends the legs that run, so that another process continues their tasks.
    pub(crate) fn drain(&self) {
        self.active.end_legs();
    }

    /// Waits until no task runs in this process, for this time at most.
    pub(crate) async fn idle(&self, at_most: Duration) {
        // Tasks that still run are continued by another process when their lease is over.
        let _ = tokio::time::timeout(at_most, self.active.idle()).await;
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("store", &self.store)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
