//! The snapshots that a leg shows while it runs are not lost. If the task goes to another instance meanwhile, it shows nothing any more, and
//! its result does not count.

use crate::{LIMIT, connect, postgres_server::Server};
use antiphon_dbos::{DbosOptions, DbosTasks};
use antiphon_store::{
    LegControl, NewTask, Owner, TaskAction, TaskDecision, TaskEngine as _, TaskFuture, TaskKey, TaskLimits,
    TaskMessage, TaskProgram,
};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

const TASK: TaskKey = TaskKey::from_bytes([7; 16]);

/// Runs legs that show the name of their instance, and end with it when the test says so.
struct Named {
    name: &'static str,
    /// The number of legs that have begun, that may end, and that have ended.
    begun: watch::Sender<u32>,
    may_end: watch::Sender<bool>,
    ended: watch::Sender<u32>,
}

impl TaskProgram for Named {
    fn decide(&self, _: TaskKey, snapshot: &[u8], _: &[TaskMessage]) -> TaskDecision {
        let action = if snapshot.ends_with(b"ends") {
            TaskAction::Finish(Duration::from_secs(600))
        } else {
            TaskAction::Continue
        };
        TaskDecision::new(snapshot, action)
    }

    fn run<'a>(&'a self, _: TaskKey, _: &'a [u8], control: &'a LegControl) -> TaskFuture<'a, TaskDecision> {
        Box::pin(async move {
            control.show(format!("{} shows", self.name).into_bytes());
            self.begun.send_modify(|count| *count += 1);
            // The sender is here, so there is no error.
            let _ = self.may_end.subscribe().wait_for(|may_end| *may_end).await;
            control.show(format!("{} shows late", self.name).into_bytes());
            tokio::task::yield_now().await;
            self.ended.send_modify(|count| *count += 1);
            let snapshot = format!("{} ends", self.name).into_bytes();
            TaskDecision::new(snapshot, TaskAction::Continue)
        })
    }
}

struct Instance {
    engine: Arc<DbosTasks>,
    program: Arc<Named>,
}

impl Instance {
    async fn begin(server: &Server, name: &'static str) -> Self {
        let (begun, ended) = (watch::Sender::new(0), watch::Sender::new(0));
        let program = Arc::new(Named { name, begun, may_end: watch::Sender::new(false), ended });
        let engine = connect(server, DbosOptions::default()).await;
        let weak: std::sync::Weak<Named> = Arc::downgrade(&program);
        engine.begin(weak);
        Self { engine, program }
    }

    async fn start(&self) {
        let owner = Owner::from_bytes([1; 16]);
        let new = NewTask::new(TASK, owner, b"new");
        self.engine.start(&new, &TaskLimits::default()).await.unwrap();
    }

    async fn until_shown(&self, text: &str) {
        while *self.engine.get(TASK).await.unwrap().unwrap().snapshot != *text.as_bytes() {
            sleep(Duration::from_millis(10)).await;
        }
    }

    fn begun(&self) -> u32 {
        *self.program.begun.borrow()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leg_that_was_taken_over_changes_nothing() {
    timeout(LIMIT, take_over()).await.unwrap();
}

async fn take_over() {
    let server = Server::start("dbos-taken-over");
    let first = Instance::begin(&server, "first").await;
    first.start().await;
    first.until_shown("first shows").await;

    // The first instance counts as dead, until the second one has the task.
    let second = Instance::begin(&server, "second").await;
    while second.begun() == 0 {
        let before = first.begun();
        server
            .execute(
                "UPDATE antiphon_tasks.workflow_status SET status = 'ENQUEUED', queue_name = '_dbos_internal_queue'",
            )
            .await;
        while second.begun() == 0 && first.begun() == before {
            sleep(Duration::from_millis(10)).await;
        }
    }
    second.until_shown("second shows").await;

    first.program.may_end.send_replace(true);
    let _ = first.program.ended.subscribe().wait_for(|ended| *ended == first.begun()).await;
    first.engine.idle().await;
    second.until_shown("second shows").await;
    assert_eq!(server.number("SELECT max(turn) FROM antiphon_tasks.antiphon_tasks_1").await, 1);

    second.program.may_end.send_replace(true);
    second.until_shown("second ends").await;
    for instance in [first, second] {
        instance.engine.drain();
        instance.engine.idle().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_shown_when_the_database_answers_again() {
    timeout(LIMIT, show()).await.unwrap();
}

async fn show() {
    let server = Server::start("dbos-shown");
    let first = Instance::begin(&server, "first").await;
    server
        .execute(
            "CREATE SEQUENCE shows;
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.snapshot = 'first shows' AND nextval('shows') < 3 THEN RAISE EXCEPTION 'refused'; END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER refuse BEFORE UPDATE ON antiphon_tasks.antiphon_tasks_1
                FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .await;
    first.start().await;
    // The leg has not ended: a person may have to answer before it does.
    first.until_shown("first shows").await;
    first.program.may_end.send_replace(true);
    first.until_shown("first ends").await;
    first.engine.drain();
    first.engine.idle().await;
}
