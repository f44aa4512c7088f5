//! The tasks of a server: their engine, their settings, and their changes.

pub(crate) mod asked;
pub(crate) mod leg;
mod metrics;
mod options;

pub(crate) use self::metrics::RunningLeg;
pub use self::metrics::TaskMetrics;
pub use self::options::TaskOptions;
pub(crate) use self::options::TaskSettings;
use self::{asked::AskedQuestions, metrics::TaskCounters};
use crate::{
    errors::{build_error::BuildError, refusal::Refusal},
    task_registry::leg::TaskLeg,
};
use antiphon_store::{CallStore, EmbeddedEngine, MemoryTasks, StoreReach, TaskEngine, TaskKey};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::{
    fmt,
    num::NonZero,
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
    /// The tasks that have changed; nothing if it may be any.
    changes: broadcast::Sender<Option<TaskKey>>,
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
        let sender = changes.clone();
        engine.subscribe(Box::new(move |task| {
            // Without a subscription nobody receives it.
            let _ = sender.send(task);
        }));
        let sender = changes.clone();
        let asked = AskedQuestions::new(Box::new(move |task| {
            // Another request may wait for the question.
            let _ = sender.send(Some(task));
        }));
        let (counters, has_begun) = (TaskCounters::default(), AtomicBool::new(false));
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let openings = Arc::new(Semaphore::new((processors / 2).max(1)));
        Ok(Self { engine, options, legs, is_draft, asked, counters, openings, changes, has_begun })
    }

    /// Returns true for the first call: the engine is to begin.
    pub(crate) fn is_first_begin(&self) -> bool {
        !self.has_begun.load(Ordering::Relaxed) && !self.has_begun.swap(true, Ordering::Relaxed)
    }

    /// Returns the counts so far.
    pub(crate) fn metrics(&self) -> TaskMetrics {
        self.counters.to_metrics()
    }

    pub(crate) fn changes(&self) -> broadcast::Receiver<Option<TaskKey>> {
        self.changes.subscribe()
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
