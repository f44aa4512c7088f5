//! The workflows that run in this process, and those that it has and does not run.
//!
//! dbos ends the run of a workflow when it cannot record a step, and takes workflows from its queue that it then cannot read. Both
//! stay those of its executor, and it recovers them only when the executor is launched again.

use antiphon_wire::lock::Lock;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard};

use antiphon_store::TaskKey;

/// The workflows that run in this process. One that was taken over and comes back may run twice for a moment.
#[derive(Debug, Default)]
pub(crate) struct Runs(Lock<Running>);

#[derive(Debug, Default)]
struct Running {
    /// The runs of each workflow, in their order.
    numbers: HashMap<TaskKey, Vec<u64>>,
    begun: u64,
}

/// The run of a workflow, until this value is dropped.
#[derive(Debug)]
pub(crate) struct RunningWorkflow {
    runs: Arc<Runs>,
    task: TaskKey,
    number: u64,
}

impl Runs {
    pub(crate) fn begin(self: &Arc<Self>, task: TaskKey) -> RunningWorkflow {
        let mut running = self.running();
        running.begun += 1;
        let number = running.begun;
        running.numbers.entry(task).or_default().push(number);
        drop(running);
        RunningWorkflow { runs: Arc::clone(self), task, number }
    }

    /// Returns those of these workflows that do not run, and did not when this was called before: those in `idle`. One that was
    /// just taken from the queue is about to run.
    pub(crate) fn lost(&self, owned: &[TaskKey], idle: &mut HashSet<TaskKey>) -> Vec<TaskKey> {
        let running = self.running();
        let before = std::mem::take(idle);
        let (lost, new) = owned
            .iter()
            .filter(|task| !running.numbers.contains_key(task))
            .partition::<Vec<TaskKey>, _>(|task| before.contains(task));
        idle.extend(new);
        lost
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock()
    }
}

impl RunningWorkflow {
    /// Returns true if no later run of the workflow has begun in this process.
    pub(crate) fn is_latest(&self) -> bool {
        let running = self.runs.running();
        running.numbers.get(&self.task).and_then(|numbers| numbers.last()) == Some(&self.number)
    }
}

impl Drop for RunningWorkflow {
    fn drop(&mut self) {
        let mut running = self.runs.running();
        if let Some(numbers) = running.numbers.get_mut(&self.task) {
            numbers.retain(|number| *number != self.number);
            if numbers.is_empty() {
                running.numbers.remove(&self.task);
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
        assert_eq!([run.is_latest(), again.is_latest()], [false, true]);
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
