//! Instances that live while the database fails, and workflows that dbos does not run again itself.

use crate::{LIMIT, connect, postgres_server::Server};
use antiphon_dbos::{DbosOptions, DbosTasks};
use antiphon_store::{
    LegControl, NewTask, Owner, TaskAction, TaskCreated, TaskDecision, TaskEngine as _, TaskFuture, TaskKey,
    TaskLimits, TaskMessage, TaskProgram, TaskSent,
};
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};

/// The number of tasks that wait.
const WAITING: &str = "SELECT count(*) FROM antiphon_tasks.antiphon_tasks_1 WHERE state = 2";

/// Ends each task with its first message as the snapshot.
struct Echo;

impl TaskProgram for Echo {
    fn decide(&self, _: TaskKey, snapshot: &[u8], messages: &[TaskMessage]) -> TaskDecision {
        match messages.first() {
            None => TaskDecision::new(snapshot, TaskAction::Wait(None)),
            Some(message) => {
                let action = TaskAction::Finish(Duration::from_secs(600));
                TaskDecision::new(message.body.clone(), action).with_taken(message.number)
            }
        }
    }

    fn run<'a>(&'a self, _: TaskKey, snapshot: &'a [u8], _: &'a LegControl) -> TaskFuture<'a, TaskDecision> {
        Box::pin(async move { TaskDecision::new(snapshot, TaskAction::Continue) })
    }
}

/// An instance with a short lease, so that its upkeep looks often.
struct Instance {
    engine: Arc<DbosTasks>,
    /// The engine has a weak reference to it.
    _program: Arc<dyn TaskProgram>,
}

impl Instance {
    async fn begin(server: &Server) -> Self {
        let engine = connect(server, DbosOptions::default().lease(Duration::from_millis(300))).await;
        let program: Arc<dyn TaskProgram> = Arc::new(Echo);
        engine.begin(Arc::downgrade(&program));
        Self { engine, _program: program }
    }

    async fn start(&self, number: u8) -> TaskKey {
        let task = TaskKey::from_bytes([number; 16]);
        let new = NewTask::new(task, Owner::from_bytes([1; 16]), b"begun");
        let created = self.engine.start(&new, &TaskLimits::default()).await.unwrap();
        assert_eq!(created, TaskCreated::First);
        task
    }

    async fn ends(&self, task: TaskKey) {
        let sent = self.engine.send(task, b"done", &TaskLimits::default()).await.unwrap();
        assert_eq!(sent, TaskSent::Queued);
        loop {
            let row = self.engine.get(task).await.unwrap().unwrap();
            if row.is_final {
                assert_eq!(*row.snapshot, *b"done");
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn drains(self) {
        self.engine.drain();
        self.engine.idle().await;
    }
}

/// Waits until a query returns this number.
async fn until(server: &Server, query: &str, number: i64) {
    while server.number(query).await != number {
        sleep(Duration::from_millis(20)).await;
    }
}

/// dbos ends a run whose step it cannot record, and leaves the workflow to a recovery that comes when its executor is launched: for
/// an instance that lives, never. The same is true of one that it has taken from its queue and could not read.
#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_that_its_instance_does_not_run_any_more_runs_again() {
    let server = Server::start("dbos-lost-run");
    let first = Instance::begin(&server).await;
    server
        .execute(
            "CREATE SEQUENCE records;
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF nextval('records') = 1 THEN RAISE EXCEPTION 'refused'; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER refuse BEFORE INSERT ON antiphon_tasks.operation_outputs
                FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .await;
    let task = first.start(1).await;
    timeout(LIMIT, first.ends(task)).await.unwrap();
    assert!(server.number("SELECT last_value FROM records").await > 1);
    first.drains().await;
}

/// The work of the upkeep for others may wait for the database for long.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_sends_heartbeats_while_its_upkeep_waits() {
    let server = Server::start("dbos-heartbeat");
    let first = Instance::begin(&server).await;
    first.start(1).await;
    until(&server, WAITING, 1).await;
    // The tasks of a dead instance cannot be taken over now.
    let (client, connection) =
        tokio_postgres::connect(&server.url("postgres"), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute("BEGIN; LOCK TABLE antiphon_tasks.workflow_status").await.unwrap();
    server
        .execute("INSERT INTO antiphon_tasks.antiphon_executors_1 VALUES ('dead', now() - interval '1 hour')")
        .await;
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    let seen =
        "SELECT (extract(epoch FROM max(seen_at)) * 1000)::bigint FROM antiphon_tasks.antiphon_executors_1";
    let beats = async {
        // The take-over, and the queue of dbos.
        while server.number(waits).await < 2 {
            sleep(Duration::from_millis(20)).await;
        }
        let mut last = server.number(seen).await;
        for _ in 0..3 {
            while server.number(seen).await == last {
                sleep(Duration::from_millis(20)).await;
            }
            last = server.number(seen).await;
        }
    };
    timeout(LIMIT, beats).await.unwrap();
    client.batch_execute("ROLLBACK").await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
    first.drains().await;
}

/// dbos parks a workflow that was taken over a hundred times; a task may wait for months.
#[tokio::test(flavor = "multi_thread")]
async fn a_parked_workflow_is_resumed() {
    let server = Server::start("dbos-parked");
    let first = Instance::begin(&server).await;
    let task = first.start(1).await;
    until(&server, WAITING, 1).await;
    server.execute("UPDATE antiphon_tasks.workflow_status SET recovery_attempts = 200").await;
    let second = Instance::begin(&server).await;
    first.drains().await;
    timeout(LIMIT, second.ends(task)).await.unwrap();
    let attempts = "SELECT recovery_attempts FROM antiphon_tasks.workflow_status";
    assert!(server.number(attempts).await < 200, "it was parked, and counts from the beginning");
    second.drains().await;
}

/// While PostgreSQL is away, requests fail. Afterwards everything goes on: waiting tasks, new ones, and reports of changes.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_go_on_after_a_restart_of_the_database() {
    let server = Server::start("dbos-restart");
    let first = Instance::begin(&server).await;
    let waits = first.start(1).await;
    until(&server, WAITING, 1).await;
    server.stop();
    assert!(first.engine.get(waits).await.is_err());
    server.run(&[]);
    timeout(LIMIT, first.ends(waits)).await.unwrap();
    let next = first.start(2).await;
    timeout(LIMIT, first.ends(next)).await.unwrap();
    first.drains().await;
}
