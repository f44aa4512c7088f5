//! The tasks of a server: their store, and the runs in this process.

use super::{
    active::ActiveTasks,
    options::{TaskOptions, TaskSettings},
    run::run,
    run_leg::RunLeg,
};
use crate::{BuildError, runtime::Runtime};
use antiphon_store::{CallStore, MemoryTasks, StoreReach, TaskKey, TaskStore};
use antiphon_wire::escaped;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, broadcast},
};

/// The time between two looks for tasks that are due: those of processes that died, and those that waited for a moment.
const LOOK: Duration = Duration::from_secs(1);
/// The number of tasks that are taken at one look.
const AT_ONCE: usize = 64;
/// The number of looks between two removals of expired rows.
const LOOKS_PER_SWEEP: u32 = 60;
const SWEEP_LIMIT: usize = 1000;
/// The number of changes that a slow subscription may be behind; after that it looks at all its tasks.
const CHANGES: usize = 1024;

/// The tasks of a server.
pub(crate) struct Tasks {
    pub(super) store: Arc<dyn TaskStore>,
    pub(super) options: TaskOptions,
    pub(super) active: ActiveTasks,
    /// The places of the tasks that run at once.
    pub(super) places: Arc<Semaphore>,
    pub(super) legs: Box<dyn RunLeg>,
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
        Ok(Self { store, options, active: ActiveTasks::new(), places, legs, changes, has_begun })
    }

    /// Notes that a task has changed, for the subscriptions.
    pub(super) fn changed(&self, key: TaskKey) {
        // Without a subscription nobody receives it.
        let _ = self.changes.send(key);
    }

    pub(super) fn changes(&self) -> broadcast::Receiver<TaskKey> {
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

/// Runs a task in this process, if it does not run here already.
pub(super) fn wake(server: &Arc<Runtime>, key: TaskKey) {
    let Some(tasks) = &server.tasks else { return };
    let (Ok(runtime), Some(active)) = (Handle::try_current(), tasks.active.begin(key)) else { return };
    runtime.spawn(run(Arc::clone(server), key, active));
}

/// Begins to look for tasks that are due, once. Outside of a runtime, the first request does.
pub(crate) fn begin(server: &Arc<Runtime>) {
    let Some(tasks) = &server.tasks else { return };
    if tasks.has_begun.load(Ordering::Relaxed) {
        return;
    }
    let Ok(runtime) = Handle::try_current() else { return };
    if tasks.has_begun.swap(true, Ordering::Relaxed) {
        return;
    }
    let server = Arc::downgrade(server);
    runtime.spawn(async move {
        for look in 0_u32.. {
            let Some(server) = server.upgrade() else { return };
            let Some(tasks) = &server.tasks else { return };
            look_once(&server, tasks, look).await;
            drop(server);
            tokio::time::sleep(LOOK).await;
        }
    });
}

async fn look_once(server: &Arc<Runtime>, tasks: &Tasks, look: u32) {
    if look % LOOKS_PER_SWEEP == LOOKS_PER_SWEEP - 1
        && let Err(error) = tasks.store.sweep(SWEEP_LIMIT).await
    {
        tracing::warn!(error = %escaped(&error), "expired tasks were not removed from the store");
    }
    if server.subscriptions.is_draining() {
        return;
    }
    let free = tasks.places.available_permits().min(AT_ONCE);
    match tasks.store.due(free).await {
        Ok(due) => {
            due.into_iter().filter(|key| !tasks.active.contains(*key)).for_each(|key| wake(server, key))
        }
        Err(error) => tracing::warn!(error = %escaped(&error), "the store does not say which tasks are due"),
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
