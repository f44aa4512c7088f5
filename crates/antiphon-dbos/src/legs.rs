//! The legs that run in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_store::{LegControl, TaskKey};
use tokio::sync::watch;

/// The legs that run in this process. A workflow that was taken over and comes back may run twice here for a moment.
#[derive(Debug)]
pub(crate) struct Legs {
    running: Mutex<HashMap<TaskKey, Vec<Arc<LegControl>>>>,
    /// The number of their tasks.
    count: watch::Sender<usize>,
}

/// A leg that runs, until this value is dropped.
#[derive(Debug)]
pub(crate) struct RunningLeg {
    legs: Arc<Legs>,
    task: TaskKey,
    pub(crate) control: Arc<LegControl>,
}

impl Legs {
    pub(crate) fn new() -> Self {
        Self { running: Mutex::default(), count: watch::Sender::new(0) }
    }

    pub(crate) fn begin(self: &Arc<Self>, task: TaskKey) -> RunningLeg {
        let control = Arc::new(LegControl::new());
        let mut running = self.running();
        running.entry(task).or_default().push(Arc::clone(&control));
        self.count.send_replace(running.len());
        drop(running);
        RunningLeg { legs: Arc::clone(self), task, control }
    }

    /// Ends the legs of a task soon.
    pub(crate) fn end_soon(&self, task: TaskKey) {
        for control in self.running().get(&task).into_iter().flatten() {
            control.end_soon();
        }
    }

    /// Ends all legs soon.
    pub(crate) fn end_all(&self) {
        for control in self.running().values().flatten() {
            control.end_soon();
        }
    }

    /// Waits until no leg runs.
    pub(crate) async fn idle(&self) {
        // The sender is here, so there is no error.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    fn running(&self) -> MutexGuard<'_, HashMap<TaskKey, Vec<Arc<LegControl>>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningLeg {
    fn drop(&mut self) {
        let mut running = self.legs.running();
        if let Some(controls) = running.get_mut(&self.task) {
            controls.retain(|control| !Arc::ptr_eq(control, &self.control));
            if controls.is_empty() {
                running.remove(&self.task);
            }
        }
        self.legs.count.send_replace(running.len());
    }
}
