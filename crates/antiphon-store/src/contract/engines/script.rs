//! A program of tasks for the checks: a snapshot is a script, and the log of what happened.

use crate::{
    error::TaskFuture,
    task::{
        TaskKey, TaskMessage,
        program::{LegControl, LegStop, TaskAction, TaskDecision, TaskProgram},
    },
};
use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{Mutex, PoisonError},
    task::{Poll, Waker},
    time::Duration,
};

/// The time of a pause, and of a wait with a limit.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// The time of a pause that no check outlasts.
const REST: Duration = Duration::from_secs(24 * 3600);
/// The time for which finished tasks are kept.
pub(super) const KEEP: Duration = Duration::from_secs(600);

/// The script and the log of a task, as text: `wait leg|one two`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    steps: Vec<String>,
    log: Vec<String>,
}

impl Script {
    pub(super) fn new(steps: &str) -> Self {
        Self { steps: steps.split_whitespace().map(ToOwned::to_owned).collect(), log: Vec::new() }
    }

    pub(super) fn read(snapshot: &[u8]) -> Self {
        let text =
            std::str::from_utf8(snapshot).unwrap_or_else(|_| panic!("a foreign snapshot: {snapshot:?}"));
        let (steps, log) = text.split_once('|').unwrap_or_else(|| panic!("a foreign snapshot: {text}"));
        Self { log: Self::new(log).steps, ..Self::new(steps) }
    }

    pub(super) fn write(&self) -> Vec<u8> {
        format!("{}|{}", self.steps.join(" "), self.log()).into_bytes()
    }

    pub(super) fn log(&self) -> String {
        self.log.join(" ")
    }

    pub(super) fn step(&self) -> &str {
        self.steps.first().map_or("end", String::as_str)
    }

    /// Ends the present step.
    fn done(&mut self, text: impl Into<String>) {
        self.log.push(text.into());
        if !self.steps.is_empty() {
            self.steps.remove(0);
        }
    }

    fn becomes(&mut self, step: &str) {
        self.steps[0] = step.to_owned();
    }
}

/// The program of one instance.
///
/// | step | it |
/// |---|---|
/// | `leg` | is a leg that ends at once |
/// | `fail` | is a leg that fails for now, and then `leg` |
/// | `gate` | is a leg that ends when the test opens its gate, and not before |
/// | `hold` | is a leg that shows a snapshot, and ends when it is told to |
/// | `wait` | waits for a message |
/// | `brief` | waits for a message, for a short time |
/// | `pause` | pauses, whatever comes |
/// | `rest` | pauses, for longer than any check |
/// | `end` | finishes the task, as the end of the script does |
pub(super) struct ScriptProgram {
    name: &'static str,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of legs of each task.
    legs: HashMap<TaskKey, usize>,
    open: Vec<TaskKey>,
    wakers: Vec<Waker>,
}

impl ScriptProgram {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, state: Mutex::default() }
    }

    /// Returns the number of legs of a task that this instance ran.
    pub(super) fn legs(&self, task: TaskKey) -> usize {
        self.with(|state| state.legs.get(&task).copied().unwrap_or_default())
    }

    /// Opens the gate of a task.
    pub(super) fn open(&self, task: TaskKey) {
        let wakers = self.with(|state| {
            state.open.push(task);
            std::mem::take(&mut state.wakers)
        });
        wakers.into_iter().for_each(Waker::wake);
    }

    async fn gate(&self, task: TaskKey) {
        poll_fn(|context| {
            self.with(|state| {
                if state.open.contains(&task) {
                    return Poll::Ready(());
                }
                state.wakers.push(context.waker().clone());
                Poll::Pending
            })
        })
        .await;
    }

    fn with<T>(&self, operation: impl FnOnce(&mut State) -> T) -> T {
        operation(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn logs(&self, text: &str) -> String {
        format!("{text}:{}", self.name)
    }
}

impl TaskProgram for ScriptProgram {
    fn decide(&self, _task: TaskKey, snapshot: &[u8], messages: &[TaskMessage]) -> TaskDecision {
        let mut script = Script::read(snapshot);
        let (mut messages, mut taken) = (messages.iter(), 0);
        let mut message = |script: &mut Script| {
            let message = messages.next()?;
            taken = message.number;
            script.done(String::from_utf8_lossy(&message.body).into_owned());
            Some(())
        };
        let action = loop {
            match script.step() {
                "leg" | "fail" | "gate" | "hold" => break TaskAction::Continue,
                "wait" => {
                    if message(&mut script).is_none() {
                        break TaskAction::Wait(None);
                    }
                }
                "brief" => {
                    if message(&mut script).is_none() {
                        script.becomes("late");
                        break TaskAction::Wait(Some(PAUSE));
                    }
                }
                "late" => {
                    if message(&mut script).is_none() {
                        script.done("late");
                    }
                }
                "pause" => {
                    script.becomes("paused");
                    break TaskAction::Pause(PAUSE);
                }
                "rest" => {
                    script.becomes("rested");
                    break TaskAction::Pause(REST);
                }
                step @ ("paused" | "rested") => {
                    let step = step.to_owned();
                    script.done(step);
                }
                "end" => break TaskAction::Finish(KEEP),
                other => panic!("the step {other}"),
            }
        };
        TaskDecision { snapshot: script.write(), taken, action }
    }

    fn run<'a>(
        &'a self,
        task: TaskKey,
        snapshot: &'a [u8],
        control: &'a LegControl,
    ) -> TaskFuture<'a, TaskDecision> {
        Box::pin(async move {
            self.with(|state| *state.legs.entry(task).or_default() += 1);
            let mut script = Script::read(snapshot);
            let mut action = TaskAction::Continue;
            match script.step() {
                "leg" => script.done(self.logs("leg")),
                "fail" => {
                    script.becomes("leg");
                    action = TaskAction::Pause(PAUSE);
                }
                "gate" => {
                    self.gate(task).await;
                    script.done(self.logs("gate"));
                }
                "hold" => {
                    let mut shown = script.clone();
                    // A leg that runs again may get the snapshot that it has shown.
                    shown.log.retain(|entry| entry != "shown");
                    script.log.clone_from(&shown.log);
                    shown.log.push("shown".to_owned());
                    control.show(shown.write());
                    control.ends_before(LegStop::No).await;
                    script.done(self.logs("hold"));
                }
                other => panic!("the step {other} is no leg"),
            }
            TaskDecision { snapshot: script.write(), taken: 0, action }
        })
    }
}
