//! The state that the runs of an embedded engine share.

use super::active::ActiveTasks;
use crate::{TaskKey, TaskListener, TaskProgram, TaskStore};
use std::{
    sync::{
        Arc, OnceLock, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Semaphore;

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
