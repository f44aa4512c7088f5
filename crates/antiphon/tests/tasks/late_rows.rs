//! A store whose rows of tasks are written late, while a leg runs.

use crate::client::{TaskClient, text_of};
use antiphon::{
    Error,
    server::{Ctx, Server, State},
    store::{
        MemoryTasks, StoreFuture, TaskLimits, TaskStore,
        calls::{Owner, RunnerId, StoreReach},
        tasks::{
            NewTask, TaskClaim, TaskCreated, TaskFence, TaskKey, TaskRow, TaskSent, TaskSummary, TaskUpdate,
        },
    },
    tool,
};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::timeout};

/// A store that writes the second row of a running task when somebody says so: the first one is that of the decision to run.
#[derive(Debug)]
struct LateRows {
    rows: MemoryTasks,
    updates: AtomicU32,
    begun: Arc<Notify>,
    goes_on: Arc<Notify>,
}

impl TaskStore for LateRows {
    fn create<'a>(&'a self, task: &'a NewTask, limits: &'a TaskLimits) -> StoreFuture<'a, TaskCreated> {
        self.rows.create(task, limits)
    }
    fn load(&self, task: TaskKey) -> StoreFuture<'_, Option<TaskRow>> {
        self.rows.load(task)
    }
    fn send<'a>(
        &'a self,
        task: TaskKey,
        message: &'a [u8],
        limits: &'a TaskLimits,
    ) -> StoreFuture<'a, TaskSent> {
        self.rows.send(task, message, limits)
    }
    fn claim(&self, task: TaskKey, runner: RunnerId, lease: Duration) -> StoreFuture<'_, TaskClaim> {
        self.rows.claim(task, runner, lease)
    }
    fn renew<'a>(&'a self, fence: &'a TaskFence, lease: Duration) -> StoreFuture<'a, ()> {
        self.rows.renew(fence, lease)
    }
    fn update<'a>(&'a self, fence: &'a TaskFence, update: &'a TaskUpdate) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            if self.updates.fetch_add(1, Ordering::SeqCst) == 1 {
                self.begun.notify_one();
                self.goes_on.notified().await;
            }
            self.rows.update(fence, update).await
        })
    }
    fn due(&self, limit: usize) -> StoreFuture<'_, Vec<TaskKey>> {
        self.rows.due(limit)
    }
    fn list(&self, limit: usize) -> StoreFuture<'_, Vec<TaskSummary>> {
        self.rows.list(limit)
    }
    fn list_of_owner(
        &self,
        owner: Owner,
        after: Option<TaskKey>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<TaskKey>> {
        self.rows.list_of_owner(owner, after, limit)
    }
    fn sweep(&self, limit: usize) -> StoreFuture<'_, usize> {
        self.rows.sweep(limit)
    }
    fn reach(&self) -> StoreReach {
        self.rows.reach()
    }
}

/// The signals of the step.
#[derive(Clone, Default)]
struct Signals {
    /// The row of the progress is about to be written.
    shown: Arc<Notify>,
    /// The step went on after that.
    went_on: Arc<Notify>,
    goes_on: Arc<Notify>,
}

/// Reports progress in a step, and goes on while it is written.
#[tool(task = "required")]
async fn report(ctx: &Ctx, signals: State<Signals>) -> Result<String, Error> {
    let done: String = ctx
        .step("work", async |_| {
            ctx.report_progress(1.0, Some(2.0), Some("half"));
            signals.shown.notified().await;
            signals.went_on.notify_one();
            Ok("whole".to_owned())
        })
        .await?;
    Ok(done)
}

/// A leg that is not polled does not renew the lease of its call.
#[tokio::test(start_paused = true)]
async fn a_leg_goes_on_while_its_progress_is_written() {
    let signals = Signals::default();
    let rows = LateRows {
        rows: MemoryTasks::new(),
        updates: AtomicU32::new(0),
        begun: Arc::clone(&signals.shown),
        goes_on: Arc::clone(&signals.goes_on),
    };
    let server = Server::builder("tasks", "1").task_store(Arc::new(rows)).state(signals.clone()).tool(report);
    let client = TaskClient::of(server.build().unwrap());
    let id = client.task("report", json!({})).await;
    timeout(Duration::from_secs(60), signals.went_on.notified()).await.expect("the step goes on");
    signals.goes_on.notify_one();
    assert_eq!(text_of(&client.status(&id, "completed").await), "whole");
}
