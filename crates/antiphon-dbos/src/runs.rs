//! The workflows that run in this process, and those that it has and does not run.
//!
//! dbos ends the run of a workflow when it cannot record a step, and takes workflows from its queue that it then cannot read. Both
//! stay those of its executor, and it recovers them only when the executor is launched again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_store::TaskKey;

/// The workflows that run in this process.
#[derive(Debug, Default)]
pub(crate) struct Runs(Mutex<HashMap<TaskKey, usize>>);

/// The run of a workflow, until this value is dropped.
#[derive(Debug)]
pub(crate) struct RunningWorkflow {
    runs: Arc<Runs>,
    task: TaskKey,
}

impl Runs {
    pub(crate) fn begin(self: &Arc<Self>, task: TaskKey) -> RunningWorkflow {
        *self.running().entry(task).or_default() += 1;
        RunningWorkflow { runs: Arc::clone(self), task }
    }

    /// Returns those of these workflows that do not run, and did not when this was called before: those in `idle`. One that was
    /// just taken from the queue is about to run.
    pub(crate) fn lost(&self, owned: &[TaskKey], idle: &mut HashSet<TaskKey>) -> Vec<TaskKey> {
        let running = self.running();
        let before = std::mem::take(idle);
        let (lost, new) = owned
            .iter()
            .filter(|task| !running.contains_key(task))
            .partition::<Vec<TaskKey>, _>(|task| before.contains(task));
        idle.extend(new);
        lost
    }

    fn running(&self) -> MutexGuard<'_, HashMap<TaskKey, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningWorkflow {
    fn drop(&mut self) {
        let mut running = self.runs.running();
        if let Some(count) = running.get_mut(&self.task) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.task);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_is_lost_when_it_was_idle_twice() {
        let [first, second] = [1, 2].map(|byte| TaskKey::from_bytes([byte; 16]));
        let (runs, mut idle) = (Arc::new(Runs::default()), HashSet::new());
        let (run, again) = (runs.begin(first), runs.begin(first));
        drop(run);
        assert_eq!(runs.lost(&[first, second], &mut idle), []);
        assert_eq!(runs.lost(&[first, second], &mut idle), [second], "one run of the first one is left");
        assert_eq!(runs.lost(&[first, second], &mut idle), [], "it was returned, and begins anew");
        drop(again);
        assert_eq!(runs.lost(&[first], &mut idle), []);
        let run = runs.begin(first);
        assert_eq!(runs.lost(&[first], &mut idle), []);
        drop(run);
        assert_eq!(runs.lost(&[first], &mut idle), [], "it ran in between");
    }
}
