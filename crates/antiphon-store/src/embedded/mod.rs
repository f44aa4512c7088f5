//! The embedded engine of tasks: it runs them over a store of rows, for one process or for the processes of one machine.
//!
//! A process that runs a task holds the lease of its row, and renews the lease. Each process looks for rows that are due: new
//! ones, those with a message, those of processes that died, and those that waited for a moment.

mod active;
mod run;

use crate::{
    NewTask, Owner, StoreFuture, StoreReach, TaskCreated, TaskEngine, TaskFuture, TaskKey, TaskLimits,
    TaskListener, TaskProgram, TaskRow, TaskSent, TaskStore, TaskSummary,
};
use active::{ActiveTasks, Shared};
use std::{
    fmt,
    sync::{
        Arc, OnceLock, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Semaphore;

/// The shortest lease: it is renewed after a third of its time.
const MIN_LEASE: Duration = Duration::from_millis(30);

/// The engine of tasks over a [`TaskStore`]: it runs them in this process, and continues those of processes of the same machine that
/// stopped. A server makes one from the store of its tasks.
///
/// It runs on the tokio runtime of the call that [begins](TaskEngine::begin) it, or that starts a task.
///
/// ```
/// use antiphon_store::{EmbeddedEngine, MemoryTasks, StoreReach, TaskEngine as _};
/// use std::{sync::Arc, time::Duration};
///
/// let engine = EmbeddedEngine::new(Arc::new(MemoryTasks::new()), Duration::from_secs(30), 256);
/// assert_eq!(engine.reach(), StoreReach::Process);
/// ```
pub struct EmbeddedEngine(Arc<Shared>);

impl EmbeddedEngine {
    /// Returns an engine in which this number of tasks run at once, one at least. Another process may take a task over when its lease,
    /// of 30 ms at least, was not renewed.
    #[must_use]
    pub fn new(store: Arc<dyn TaskStore>, lease: Duration, running: usize) -> Self {
        Self(Arc::new(Shared {
            store,
            lease: lease.max(MIN_LEASE),
            active: ActiveTasks::new(),
            places: Semaphore::new(running.clamp(1, Semaphore::MAX_PERMITS)),
            program: OnceLock::new(),
            listeners: RwLock::default(),
            is_draining: AtomicBool::new(false),
        }))
    }
}

impl TaskEngine for EmbeddedEngine {
    fn start<'a>(&'a self, task: &'a NewTask, limits: &'a TaskLimits) -> StoreFuture<'a, TaskCreated> {
        Box::pin(async {
            let created = self.0.store.create(task, limits).await?;
            run::wake(&self.0, task.task);
            Ok(created)
        })
    }

    fn get(&self, task: TaskKey) -> StoreFuture<'_, Option<TaskRow>> {
        self.0.store.load(task)
    }

    fn get_head(&self, task: TaskKey, bytes: usize) -> StoreFuture<'_, Option<TaskRow>> {
        self.0.store.load_head(task, bytes)
    }

    fn send<'a>(
        &'a self,
        task: TaskKey,
        message: &'a [u8],
        limits: &'a TaskLimits,
    ) -> StoreFuture<'a, TaskSent> {
        Box::pin(async move {
            let sent = self.0.store.send(task, message, limits).await?;
            if sent == TaskSent::Queued {
                self.0.changed(Some(task));
                run::wake(&self.0, task);
            }
            Ok(sent)
        })
    }

    fn subscribe(&self, listener: TaskListener) {
        self.0.listeners.write().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    fn list(&self, limit: usize) -> StoreFuture<'_, Vec<TaskSummary>> {
        self.0.store.list(limit)
    }

    fn list_of_owner(
        &self,
        owner: Owner,
        after: Option<TaskKey>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<TaskKey>> {
        self.0.store.list_of_owner(owner, after, limit)
    }

    fn begin(&self, program: Weak<dyn TaskProgram>) {
        run::begin(&self.0, program);
    }

    fn drain(&self) {
        self.0.is_draining.store(true, Ordering::Release);
        self.0.active.wake_all();
    }

    fn idle(&self) -> TaskFuture<'_, ()> {
        Box::pin(self.0.active.idle())
    }

    fn reach(&self) -> StoreReach {
        self.0.store.reach()
    }
}

impl fmt::Debug for EmbeddedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedEngine")
            .field("store", &self.0.store)
            .field("lease", &self.0.lease)
            .finish_non_exhaustive()
    }
}
