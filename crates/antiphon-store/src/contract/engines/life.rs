//! A task is started once, runs leg after leg, waits, pauses, and ends.

use super::{script::Script, subject::EngineSubject};
use crate::{
    error::StoreErrorKind,
    task::{NewTask, TaskCreated, TaskLimits},
};

pub(super) async fn check(subject: &EngineSubject) {
    a_task_waits_for_the_beginning(subject).await;
    a_task_is_started_once(subject).await;
    scripts_run_to_their_end(subject).await;
    tasks_are_limited(subject).await;
}

/// A task is durable before any instance runs tasks.
async fn a_task_waits_for_the_beginning(subject: &EngineSubject) {
    let task = subject.started("leg").await;
    let row = subject.second.row(task).await;
    assert!(!row.is_final && row.messages.is_empty(), "{row:?}");
    assert_eq!(Script::read(&row.snapshot), Script::new("leg"));
    subject.first.begin();
    assert_eq!(subject.first.ended(task).await, "leg:1");
    assert!(subject.first.has_reported(task));
}

async fn a_task_is_started_once(subject: &EngineSubject) {
    let new = subject.new_task("leg wait");
    let task = subject.first.start(&new).await;
    let other = NewTask { task, ..subject.new_task("leg leg leg") };
    for again in [&new, &other] {
        for instance in [&subject.first, &subject.second] {
            let created = instance.engine.start(again, &TaskLimits::default().tasks(0)).await;
            assert!(matches!(created, Ok(TaskCreated::Existing)), "the same task again: {created:?}");
        }
    }
    subject.first.until_log(task, "leg:1").await;
    subject.first.send(task, "x").await;
    assert_eq!(subject.first.ended(task).await, "leg:1 x");
    let created = subject.first.engine.start(&new, &TaskLimits::default()).await;
    assert!(matches!(created, Ok(TaskCreated::Existing)), "a task that is over: {created:?}");
    assert_eq!(subject.first.program.legs(task), 1, "the legs of a task that was started again");
}

async fn scripts_run_to_their_end(subject: &EngineSubject) {
    let table: &[(&str, &str, usize)] = &[
        ("", "", 0),
        ("leg leg leg", "leg:1 leg:1 leg:1", 3),
        ("fail leg", "leg:1 leg:1", 3),
        ("pause leg", "paused leg:1", 1),
        ("brief", "late", 0),
        ("brief leg pause brief", "late leg:1 paused late", 1),
    ];
    let mut tasks = Vec::new();
    for (steps, _, _) in table {
        tasks.push(subject.started(steps).await);
    }
    for (task, (steps, log, legs)) in tasks.into_iter().zip(table) {
        assert_eq!(subject.first.ended(task).await, *log, "{steps}");
        assert_eq!(subject.first.program.legs(task), *legs, "the legs of {steps}");
    }
}

async fn tasks_are_limited(subject: &EngineSubject) {
    let of_owner = |owner, steps| NewTask { owner, ..subject.new_task(steps) };
    let first = subject.new_task("wait");
    subject.first.start(&first).await;
    let second = of_owner(first.owner, "leg");
    for limits in [TaskLimits::default().tasks_of_owner(1), TaskLimits::default().tasks(0)] {
        let created = subject.first.engine.start(&second, &limits).await;
        let kind = created.as_ref().map_err(|error| error.kind());
        assert_eq!(kind, Err(StoreErrorKind::Full), "{limits:?}");
        let row = subject.first.engine.get(second.task).await;
        assert!(matches!(row, Ok(None)), "a task over the limit: {row:?}");
    }
    subject.first.send(first.task, "x").await;
    subject.first.ended(first.task).await;
    let created = subject.first.engine.start(&second, &TaskLimits::default().tasks_of_owner(1)).await;
    assert!(matches!(created, Ok(TaskCreated::First)), "a final task does not count: {created:?}");
    assert_eq!(subject.first.ended(second.task).await, "leg:1");
}

/// Drains the first instance.
pub(super) async fn check_handover(subject: &EngineSubject) {
    let (first, second) = (&subject.first, &subject.second);
    let runs = subject.started("hold leg wait").await;
    let waits = subject.started("leg wait").await;
    first.until_log(runs, "shown").await;
    first.until_log(waits, "leg:1").await;
    first.until(waits, |row| !row.is_held).await;
    second.begin();
    first.engine.drain();
    first.engine.idle().await;
    second.until_log(runs, "hold:1 leg:2").await;
    // Through the drained instance.
    first.send(runs, "a").await;
    first.send(waits, "b").await;
    assert_eq!(second.ended(runs).await, "hold:1 leg:2 a");
    assert_eq!(second.ended(waits).await, "leg:1 b");
    let late = subject.started("leg").await;
    assert_eq!(second.ended(late).await, "leg:2");
    assert_eq!(first.program.legs(late) + first.program.legs(waits), 1, "a drained instance begins no leg");
    assert_eq!(first.row(late).await, second.row(late).await);
}
