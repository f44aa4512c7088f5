//! The launch of dbos, which takes its time after the beginning.

use crate::{LIMIT, connect, postgres_server::Server};
use antiphon_dbos::DbosOptions;
use antiphon_store::{
    LegControl, NewTask, Owner, TaskAction, TaskDecision, TaskEngine as _, TaskFuture, TaskKey, TaskLimits,
    TaskMessage, TaskProgram,
};
use std::{sync::Arc, time::Duration};
use tokio::{sync::Notify, time::timeout};

/// A program that ends each task at once.
struct AtOnce;

impl TaskProgram for AtOnce {
    fn decide(&self, _: TaskKey, snapshot: &[u8], _: &[TaskMessage]) -> TaskDecision {
        let action = TaskAction::Finish(Duration::from_secs(600));
        TaskDecision::new(snapshot, action)
    }

    fn run<'a>(&'a self, _: TaskKey, _: &'a [u8], _: &'a LegControl) -> TaskFuture<'a, TaskDecision> {
        unreachable!("no decision continues")
    }
}

/// The upkeep waits before it starts a task that another instance may be about to start. Here, that time never comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_created_before_the_launch_starts_with_it() {
    let server = Server::start("dbos-launch");
    let engine = connect(&server, DbosOptions::default()).await;
    let changed = Arc::new(Notify::new());
    let notified = Arc::clone(&changed);
    engine.subscribe(Box::new(move |_| notified.notify_one()));
    let new = NewTask::new(TaskKey::from_bytes([7; 16]), Owner::from_bytes([1; 16]), b"snapshot");
    engine.start(&new, &TaskLimits::default()).await.unwrap();
    server.execute("UPDATE antiphon_tasks.antiphon_tasks_1 SET created_at = now() + interval '1 day'").await;
    let program: Arc<dyn TaskProgram> = Arc::new(AtOnce);
    engine.begin(Arc::downgrade(&program));
    let ends = async {
        while !engine.get(new.task).await.unwrap().unwrap().is_final {
            changed.notified().await;
        }
    };
    timeout(LIMIT, ends).await.unwrap();
    engine.drain();
    timeout(LIMIT, engine.idle()).await.unwrap();
}
