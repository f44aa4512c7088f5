//! The engine under test: two instances, their programs, and the changes that they report. A program of tasks for the checks: a
//! snapshot is a script, and the log of what happened.

use crate::{
    claim::{BlobDigest, Owner},
    error::TaskFuture,
    task::{
        NewTask, TaskCreated, TaskKey, TaskLimits, TaskMessage, TaskRow, TaskSent,
        program::{LegControl, LegStop, TaskAction, TaskDecision, TaskEngine, TaskProgram},
    },
};
use std::{
    collections::HashMap,
    future::poll_fn,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Poll, Waker},
    time::Duration,
};

/// Two instances of an engine.
pub(super) struct EngineSubject {
    pub(super) first: Instance,
    pub(super) second: Instance,
    nonce: u64,
    keys: AtomicU64,
}

/// An instance, its program, and the changes that it reported.
pub(super) struct Instance {
    pub(super) engine: Arc<dyn TaskEngine>,
    pub(super) program: Arc<ScriptProgram>,
    changes: Arc<Changes>,
}

#[derive(Default)]
struct Changes(Mutex<(Vec<Option<TaskKey>>, Vec<Waker>)>);

impl EngineSubject {
    pub(super) fn new(first: Arc<dyn TaskEngine>, second: Arc<dyn TaskEngine>) -> Self {
        Self {
            first: Instance::new(first, "1"),
            second: Instance::new(second, "2"),
            nonce: RandomState::new().build_hasher().finish(),
            keys: AtomicU64::new(0),
        }
    }

    /// Returns bytes that no other task and no other owner has.
    fn next_bytes(&self) -> [u8; 16] {
        let number = self.keys.fetch_add(1, Ordering::SeqCst);
        let digest = BlobDigest::of(&[self.nonce.to_be_bytes(), number.to_be_bytes()].concat());
        let (half, _) = digest.as_bytes().split_at(16);
        half.try_into().unwrap_or([0; 16])
    }

    /// Returns a task with this script, of an owner of its own.
    pub(super) fn new_task(&self, steps: &str) -> NewTask {
        NewTask {
            task: TaskKey::from_bytes(self.next_bytes()),
            owner: Owner::from_bytes(self.next_bytes()),
            snapshot: Script::new(steps).write(),
            ttl: Some(Duration::from_secs(600)),
        }
    }

    /// Starts a task with this script on the first instance.
    pub(super) async fn started(&self, steps: &str) -> TaskKey {
        self.first.start(&self.new_task(steps)).await
    }
}

impl Instance {
    fn new(engine: Arc<dyn TaskEngine>, name: &'static str) -> Self {
        let changes = Arc::new(Changes::default());
        let noted = Arc::clone(&changes);
        engine.subscribe(Box::new(move |task| noted.note(task)));
        Self { engine, program: Arc::new(ScriptProgram::new(name)), changes }
    }

    /// Begins to run tasks.
    pub(super) fn begin(&self) {
        let program: Arc<dyn TaskProgram> = Arc::<ScriptProgram>::clone(&self.program);
        self.engine.begin(Arc::downgrade(&program));
    }

    /// Starts a task, which must be a new one.
    pub(super) async fn start(&self, new: &NewTask) -> TaskKey {
        let created = self.engine.start(new, &TaskLimits::default()).await;
        assert!(matches!(created, Ok(TaskCreated::First)), "a new task: {created:?}");
        new.task
    }

    /// Sends a message, which must be queued.
    pub(super) async fn send(&self, task: TaskKey, body: &str) {
        let sent = self.engine.send(task, body.as_bytes(), &TaskLimits::default()).await;
        assert!(matches!(sent, Ok(TaskSent::Queued)), "the message {body}: {sent:?}");
    }

    /// Returns a task that must be there.
    pub(super) async fn row(&self, task: TaskKey) -> TaskRow {
        let row = self.engine.get(task).await.unwrap_or_else(|error| panic!("get: {error:?}"));
        row.unwrap_or_else(|| panic!("{task} is gone"))
    }

    /// Waits until the task looks like this, and returns it.
    pub(super) async fn until(&self, task: TaskKey, is_so: impl Fn(&TaskRow) -> bool) -> TaskRow {
        loop {
            let seen = self.changes.count();
            let row = self.row(task).await;
            if is_so(&row) {
                return row;
            }
            self.changes.after(seen).await;
        }
    }

    /// Waits until the log of the task is this, and returns the task.
    pub(super) async fn until_log(&self, task: TaskKey, log: &str) -> TaskRow {
        self.until(task, |row| Script::read(&row.snapshot).log() == log).await
    }

    /// Waits until the task is over, and returns its log.
    pub(super) async fn ended(&self, task: TaskKey) -> String {
        let row = self.until(task, |row| row.is_final).await;
        assert_eq!(row.messages, [], "a final task has no messages");
        Script::read(&row.snapshot).log()
    }

    /// Returns true if a change of this task was reported, or of any.
    pub(super) fn has_reported(&self, task: TaskKey) -> bool {
        self.changes.with(|(changes, _)| changes.contains(&Some(task)) || changes.contains(&None))
    }
}

impl Changes {
    fn note(&self, task: Option<TaskKey>) {
        let wakers = self.with(|(changes, wakers)| {
            changes.push(task);
            std::mem::take(wakers)
        });
        wakers.into_iter().for_each(Waker::wake);
    }

    fn count(&self) -> usize {
        self.with(|(changes, _)| changes.len())
    }

    /// Waits until more changes were reported.
    async fn after(&self, seen: usize) {
        poll_fn(|context| {
            self.with(|(changes, wakers)| {
                if changes.len() > seen {
                    return Poll::Ready(());
                }
                wakers.push(context.waker().clone());
                Poll::Pending
            })
        })
        .await;
    }

    fn with<T>(&self, operation: impl FnOnce(&mut (Vec<Option<TaskKey>>, Vec<Waker>)) -> T) -> T {
        operation(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

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
