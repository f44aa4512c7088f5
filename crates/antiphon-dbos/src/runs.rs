//! The workflows that run in this process, those that it has and does not run, and the values that dbos records: decisions, with
//! their sealed snapshots.
//!
//! dbos ends the run of a workflow when it cannot record a step, and takes workflows from its queue that it then cannot read. Both
//! stay those of its executor, and it recovers them only when the executor is launched again.

use antiphon_store::{TaskAction, TaskDecision, TaskKey};
use antiphon_wire::lock::Lock;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, MutexGuard},
    time::Duration,
};

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

/// A decision, as the result of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) snapshot: Sealed,
    pub(crate) taken: u64,
    /// The number of the last message that the decision was made with.
    pub(crate) seen: u64,
    pub(crate) action: Action,
}

/// [`TaskAction`], as it is recorded.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Action {
    Continue,
    Wait(Option<Duration>),
    Pause(Duration),
    Finish(Duration),
    /// An action that is never recorded: the step does not end.
    Leave,
}

impl From<TaskDecision> for Recorded {
    fn from(decision: TaskDecision) -> Self {
        Self {
            snapshot: Sealed(decision.snapshot),
            taken: decision.taken,
            seen: 0,
            action: match decision.action {
                TaskAction::Continue => Action::Continue,
                TaskAction::Wait(time) => Action::Wait(time),
                TaskAction::Pause(time) => Action::Pause(time),
                TaskAction::Finish(keep) => Action::Finish(keep),
                TaskAction::Leave => Action::Leave,
            },
        }
    }
}

/// Sealed bytes, which are text in almost every case. Their JSON is a string: `t` and the text, or `x` and hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sealed(pub(crate) Vec<u8>);

impl Serialize for Sealed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            // The database's text has no zero.
            Ok(text) if !text.contains('\0') => serializer.serialize_str(&format!("t{text}")),
            _ => serializer.serialize_str(&format!("x{}", hex(&self.0))),
        }
    }
}

impl<'de> Deserialize<'de> for Sealed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = match text.split_at_checked(1) {
            Some(("t", text)) => Some(text.as_bytes().to_vec()),
            Some(("x", digits)) => from_hex(digits),
            _ => None,
        };
        bytes.map(Self).ok_or_else(|| D::Error::custom("no sealed bytes"))
    }
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes of hexadecimal digits.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect()
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

    #[test]
    fn sealed_bytes_return_as_they_were() {
        for bytes in [&b"r1.text"[..], b"", b"\xff\x00", b"a\0b", "x\u{e9}".as_bytes()] {
            let json = serde_json::to_string(&Sealed(bytes.to_vec())).unwrap();
            assert_eq!(serde_json::from_str::<Sealed>(&json).unwrap().0, bytes, "{json}");
        }
        assert_eq!(serde_json::to_string(&Sealed(b"r1.text".to_vec())).unwrap(), r#""tr1.text""#);
        for wrong in [r#""""#, r#""y00""#, r#""x0""#, r#""xzz""#, "[1]"] {
            assert!(serde_json::from_str::<Sealed>(wrong).is_err(), "{wrong}");
        }
    }
}
