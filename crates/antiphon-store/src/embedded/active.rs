//! The tasks that this process runs now.

use crate::{LegControl, TaskKey, TaskListener, TaskProgram, TaskStore};
use antiphon_wire::lock::Lock;
use std::{
    collections::HashMap,
    sync::{
        Arc, MutexGuard, OnceLock, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Notify, Semaphore, watch};

/// The tasks that this process runs now.
pub(super) struct ActiveTasks {
    tasks: Lock<HashMap<TaskKey, Arc<ActiveTask>>>,
    /// Their number.
    count: watch::Sender<usize>,
}

/// A task that this process runs.
#[derive(Default)]
pub(super) struct ActiveTask {
    /// Wakes the run: there is a message, or the process drains.
    pub(super) message: Notify,
    state: Lock<ActiveState>,
}

#[derive(Default)]
struct ActiveState {
    /// True if something has come since the run looked last.
    is_dirty: bool,
    /// The leg that runs.
    leg: Option<Arc<LegControl>>,
}

impl ActiveTasks {
    pub(super) fn new() -> Self {
        Self { tasks: Lock::default(), count: watch::Sender::new(0) }
    }

    /// Adds a task that is not active. Otherwise its leg ends at the next opportunity, and its run looks again.
    pub(super) fn begin(&self, key: TaskKey) -> Option<Arc<ActiveTask>> {
        let mut tasks = self.tasks();
        if let Some(active) = tasks.get(&key) {
            let mut state = active.state();
            state.is_dirty = true;
            if let Some(leg) = &state.leg {
                leg.end_soon();
            }
            active.message.notify_one();
            return None;
        }
        let active = Arc::new(ActiveTask::default());
        tasks.insert(key, Arc::clone(&active));
        self.count.send_replace(tasks.len());
        Some(active)
    }

    /// Returns true if the task is active.
    pub(super) fn contains(&self, key: TaskKey) -> bool {
        self.tasks().contains_key(&key)
    }

    /// Removes a task whose run is over. Returns false if something has come meanwhile: the run looks again.
    pub(super) fn end(&self, key: TaskKey, active: &ActiveTask) -> bool {
        let mut tasks = self.tasks();
        if std::mem::take(&mut active.state().is_dirty) {
            return false;
        }
        tasks.remove(&key);
        self.count.send_replace(tasks.len());
        true
    }

    /// Removes a task whose run is over in any case.
    pub(super) fn remove(&self, key: TaskKey) {
        let mut tasks = self.tasks();
        tasks.remove(&key);
        self.count.send_replace(tasks.len());
    }

    /// Wakes every run: the process drains.
    pub(super) fn wake_all(&self) {
        self.tasks().values().for_each(|active| active.message.notify_one());
    }

    /// Waits until no task runs.
    pub(super) async fn idle(&self) {
        // The sender is here, so there is no error.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<TaskKey, Arc<ActiveTask>>> {
        self.tasks.lock()
    }
}

impl ActiveTask {
    /// Sets the leg that runs.
    pub(super) fn set_leg(&self, leg: Option<Arc<LegControl>>) {
        self.state().leg = leg;
    }

    /// Notes that the run looks now.
    pub(super) fn looks(&self) {
        self.state().is_dirty = false;
    }

    fn state(&self) -> MutexGuard<'_, ActiveState> {
        self.state.lock()
    }
}

pub(super) struct Shared {
    pub(super) store: Arc<dyn TaskStore>,
    pub(super) lease: Duration,
    pub(super) active: ActiveTasks,
    /// The places of the tasks that run at once.
    pub(super) places: Semaphore,
    pub(super) program: OnceLock<Weak<dyn TaskProgram>>,
    pub(super) listeners: RwLock<Vec<TaskListener>>,
    pub(super) is_draining: AtomicBool,
}

impl Shared {
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    /// Reports that a task has changed, or perhaps any of them.
    pub(super) fn changed(&self, task: Option<TaskKey>) {
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().for_each(|listener| listener(task));
    }
}
