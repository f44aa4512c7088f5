//! The engine under test: two instances, their programs, and the changes that they report.

use super::script::{Script, ScriptProgram};
use crate::{
    blob::BlobDigest,
    claim::Owner,
    task::{
        NewTask, TaskCreated, TaskKey, TaskLimits, TaskRow, TaskSent,
        program::{TaskEngine, TaskProgram},
    },
};
use std::{
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
