//! Expiry, wrong options, and tables that nobody else has created.

use crate::{connect, postgres_server::Server, url};
use antiphon_dbos::{DbosOptions, DbosTasks};
use antiphon_store::{NewTask, Owner, StoreErrorKind, TaskCreated, TaskEngine as _, TaskKey, TaskLimits};
use std::time::Duration;

fn task(ttl: Option<Duration>) -> NewTask {
    let (key, owner) = (TaskKey::from_bytes([7; 16]), Owner::from_bytes([1; 16]));
    NewTask::new(key, owner, b"\xff\x00snapshot").with_ttl(ttl)
}

/// A task whose time is over is gone, also before it is removed, and a new one may have its key.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_gone_after_its_time() {
    let server = Server::start("dbos-expiry");
    let engine = connect(&server, DbosOptions::default()).await;
    let (limits, new) = (TaskLimits::default(), task(Some(Duration::from_secs(60))));
    assert_eq!(engine.start(&new, &limits).await.unwrap(), TaskCreated::First);
    assert_eq!(*engine.get(new.task).await.unwrap().unwrap().snapshot, *new.snapshot);
    server
        .execute("UPDATE antiphon_tasks.antiphon_tasks_1 SET expires_at = now() - interval '1 second'")
        .await;
    assert_eq!(engine.get(new.task).await.unwrap(), None);
    assert_eq!(engine.list(9).await.unwrap(), []);
    assert_eq!(engine.list_of_owner(new.owner, None, 9).await.unwrap(), []);
    assert_eq!(
        engine.start(&new, &limits.tasks(1)).await.unwrap(),
        TaskCreated::First,
        "gone ones do not count"
    );
    assert_eq!(server.count("antiphon_tasks.antiphon_tasks_1").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_options_and_unreachable_databases_are_errors() {
    let server = Server::start("dbos-options");
    let kind = async |url: &str, options| DbosTasks::connect(url, options).await.unwrap_err().kind();
    let wrong = DbosOptions::default().schema("Robert'); DROP TABLE tasks");
    assert_eq!(kind(&url(&server), wrong).await, StoreErrorKind::Invalid);
    assert_eq!(kind("no url", DbosOptions::default()).await, StoreErrorKind::Unreachable);
    // Two servers that share no tasks share a database.
    let other = connect(&server, DbosOptions::default().schema("others")).await;
    let engine = connect(&server, DbosOptions::default()).await;
    assert_eq!(engine.start(&task(None), &TaskLimits::default()).await.unwrap(), TaskCreated::First);
    assert_eq!(other.get(task(None).task).await.unwrap(), None);
}

/// The statement in the documentation of the crate.
#[tokio::test(flavor = "multi_thread")]
async fn the_statement_for_the_operator_lists_the_tasks_that_need_somebody() {
    let text = include_str!("../../src/lib.md");
    let statement = text.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    let server = Server::start("dbos-stuck");
    let engine = connect(&server, DbosOptions::default()).await;
    engine.start(&task(None), &TaskLimits::default()).await.unwrap();
    let listed = async || server.number(&format!("SELECT count(*) FROM ({statement}) AS listed")).await;
    assert_eq!(listed().await, 0, "a young task");
    let tasks = "antiphon_tasks.antiphon_tasks_1";
    server.execute(&format!("UPDATE {tasks} SET changed_at = now() - interval '2 minutes'")).await;
    assert_eq!(listed().await, 1, "nobody runs it");
    server.execute(&format!("UPDATE {tasks} SET state = 2")).await;
    assert_eq!(listed().await, 0, "it waits");
    let workflow = "INSERT INTO antiphon_tasks.workflow_status (workflow_uuid, status, recovery_attempts)";
    server.execute(&format!("{workflow} SELECT encode(task, 'hex'), 'PENDING', 11 FROM {tasks}")).await;
    assert_eq!(listed().await, 1, "its instance dies each time");
    server.execute(&format!("UPDATE {tasks} SET state = 3")).await;
    assert_eq!(listed().await, 0, "it is over");
}
