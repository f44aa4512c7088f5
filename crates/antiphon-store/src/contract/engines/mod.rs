//! The contract of an engine of tasks: a task is started once, runs leg after leg, waits, pauses, and ends. Messages reach the
//! program once, in their order, and requests see those that it has not taken.

mod subject;

use crate::{
    claim::Owner,
    error::{StoreError, StoreErrorKind},
    properties::StoreReach,
    task::{NewTask, TaskCreated, TaskKey, TaskLimits, TaskRow, TaskSent, TaskState, program::TaskEngine},
};
use std::sync::Arc;
use subject::{EngineSubject, Instance, Script};

/// Runs every check of an engine of tasks, on two instances that have the same tasks. Neither of them has begun; the first one has
/// no tasks to give back afterwards, and the second one has a task that pauses.
///
/// The checks wait for changes that the engine reports, and for pauses of 50 milliseconds. They need a runtime of tokio that
/// drives the engine, and a limit of their time is the caller's. An instance that dies is not among them: that is for tests of the
/// engine's own.
///
/// # Panics
///
/// If the engine breaks a rule. The text names the case.
pub async fn check_task_engine(first: Arc<dyn TaskEngine>, second: Arc<dyn TaskEngine>) {
    let subject = EngineSubject::new(first, second);
    check_life(&subject).await;
    check_messages(&subject).await;
    check_lists(&subject).await;
    check_handover(&subject).await;
}

async fn check_life(subject: &EngineSubject) {
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
async fn check_handover(subject: &EngineSubject) {
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

async fn check_messages(subject: &EngineSubject) {
    messages_keep_their_order(subject).await;
    a_message_stays_until_it_is_taken(subject).await;
    a_later_message_stays(subject).await;
    a_final_task_has_no_messages(subject).await;
    a_message_ends_the_leg_soon(subject).await;
    a_message_comes_before_the_time_is_over(subject).await;
    a_message_shortens_no_pause(subject).await;
    messages_are_limited(subject).await;
    messages_of_no_task_are_refused(subject).await;
}

/// They are sent through both instances, and while the task waits, runs, and pauses.
async fn messages_keep_their_order(subject: &EngineSubject) {
    let task = subject.started("wait pause wait leg wait wait").await;
    let (instances, mut sent) = ([&subject.first, &subject.second], Vec::new());
    for (number, body) in ["a", "b", "c", "d"].into_iter().enumerate() {
        instances[number % 2].send(task, body).await;
        sent.push(body);
    }
    assert_eq!(subject.first.ended(task).await, "a paused b leg:1 c d");
}

async fn a_message_stays_until_it_is_taken(subject: &EngineSubject) {
    let task = subject.started("gate wait gate wait").await;
    for body in ["a", "b"] {
        subject.first.send(task, body).await;
    }
    let bodies = async |instance: &Instance| {
        let messages = instance.row(task).await.messages;
        assert!(messages.is_sorted_by(|one, next| one.number < next.number), "{messages:?}");
        messages.into_iter().map(|message| message.body).collect::<Vec<_>>()
    };
    for instance in [&subject.first, &subject.second] {
        assert_eq!(bodies(instance).await, [b"a", b"b"], "while a leg runs");
    }
    subject.first.program.open(task);
    assert_eq!(subject.first.ended(task).await, "gate:1 a gate:1 b");
}

/// A decision may take one of two messages.
async fn a_later_message_stays(subject: &EngineSubject) {
    let task = subject.started("wait gate wait").await;
    subject.first.send(task, "a").await;
    subject.first.until_log(task, "a").await;
    subject.first.send(task, "b").await;
    let row = subject.second.row(task).await;
    assert_eq!(row.messages.len(), 1, "{row:?}");
    subject.first.program.open(task);
    assert_eq!(subject.first.ended(task).await, "a gate:1 b");
}

/// A task that ends drops what it has not taken.
async fn a_final_task_has_no_messages(subject: &EngineSubject) {
    let task = subject.started("gate").await;
    subject.first.send(task, "a").await;
    subject.first.program.open(task);
    assert_eq!(subject.first.ended(task).await, "gate:1");
    let sent = subject.second.engine.send(task, b"late", &TaskLimits::default()).await;
    assert!(matches!(sent, Ok(TaskSent::Final)), "{sent:?}");
    assert_eq!(subject.first.row(task).await.messages, []);
}

async fn a_message_ends_the_leg_soon(subject: &EngineSubject) {
    // An engine of one machine may learn late of messages that another process took.
    let is_fleet = subject.first.engine.reach() == StoreReach::Fleet;
    for sender in [&subject.first, &subject.second].into_iter().take(1 + usize::from(is_fleet)) {
        let task = subject.started("hold wait").await;
        subject.first.until_log(task, "shown").await;
        sender.send(task, "a").await;
        assert_eq!(subject.first.ended(task).await, "hold:1 a", "a shown snapshot is replaced by the leg's");
    }
}

async fn a_message_comes_before_the_time_is_over(subject: &EngineSubject) {
    let task = subject.started("gate brief leg").await;
    subject.first.send(task, "a").await;
    subject.first.program.open(task);
    assert_eq!(subject.first.ended(task).await, "gate:1 a leg:1");
}

/// Not by the instance that ran the task, and by no other one.
async fn a_message_shortens_no_pause(subject: &EngineSubject) {
    let task = subject.started("rest wait").await;
    let rests = |row: &TaskRow| Script::read(&row.snapshot).step() == "rested" && !row.is_held;
    subject.first.until(task, rests).await;
    for sender in [&subject.first, &subject.second] {
        sender.send(task, "a").await;
        // Meanwhile, the engine runs another task.
        let other = subject.started("wait leg wait").await;
        sender.send(other, "a").await;
        subject.first.until_log(other, "a leg:1").await;
        sender.send(other, "b").await;
        assert_eq!(subject.first.ended(other).await, "a leg:1 b");
    }
    let row = subject.first.row(task).await;
    assert!(rests(&row) && row.messages.len() == 2, "a pause with messages: {row:?}");
}

async fn messages_are_limited(subject: &EngineSubject) {
    let task = subject.started("gate wait wait").await;
    let full = async |task: TaskKey, limits: TaskLimits| {
        let sent = subject.first.engine.send(task, b"xxxx", &limits).await;
        assert_eq!(sent.map_err(|error| error.kind()), Err(StoreErrorKind::Full), "{limits:?}");
    };
    subject.first.send(task, "a").await;
    subject.first.send(task, "b").await;
    full(task, TaskLimits::default().messages(2)).await;
    full(task, TaskLimits::default().message_bytes(5)).await;
    subject.first.program.open(task);
    assert_eq!(subject.first.ended(task).await, "gate:1 a b");
}

async fn messages_of_no_task_are_refused(subject: &EngineSubject) {
    let unknown = subject.new_task("").task;
    let sent = subject.first.engine.send(unknown, b"a", &TaskLimits::default()).await;
    assert!(matches!(sent, Ok(TaskSent::NotFound)), "{sent:?}");
    assert!(matches!(subject.first.engine.get(unknown).await, Ok(None)));
}

// The lists of tasks: of all, for the operator, and of one owner, in pages.

async fn check_lists(subject: &EngineSubject) {
    the_operator_sees_each_task(subject).await;
    an_owner_has_pages(subject).await;
}

fn expect<T>(list: Result<Vec<T>, StoreError>) -> Vec<T> {
    list.unwrap_or_else(|error| panic!("list: {error:?}"))
}

async fn the_operator_sees_each_task(subject: &EngineSubject) {
    let (runs, waits, ends) =
        (subject.started("gate").await, subject.started("leg wait").await, subject.started("leg").await);
    subject.first.send(runs, "a").await;
    subject.first.until(runs, |row| row.is_held).await;
    subject.first.until_log(waits, "leg:1").await;
    subject.first.until(waits, |row| !row.is_held).await;
    subject.first.ended(ends).await;
    for instance in [&subject.first, &subject.second] {
        let list = expect(instance.engine.list(10_000).await);
        assert!(list.is_sorted_by(|one, next| one.age >= next.age), "the oldest is first: {list:?}");
        for (task, state, messages) in
            [(runs, TaskState::Held, 1), (waits, TaskState::Waits, 0), (ends, TaskState::Final, 0)]
        {
            let summary = list.iter().find(|summary| summary.task == task);
            let summary = summary.unwrap_or_else(|| panic!("{task} is not in the list"));
            assert_eq!((summary.state, summary.messages), (state, messages), "{summary:?}");
            assert!(summary.rest.is_some() && summary.snapshot_bytes > 0, "{summary:?}");
        }
        assert_eq!(expect(instance.engine.list(1).await).len(), 1);
    }
    subject.first.program.open(runs);
    subject.first.ended(runs).await;
    subject.first.send(waits, "a").await;
    subject.first.ended(waits).await;
}

async fn an_owner_has_pages(subject: &EngineSubject) {
    let owner = subject.new_task("").owner;
    let mut tasks = Vec::new();
    for steps in ["leg", "", "leg"] {
        let task = subject.first.start(&NewTask { owner, ..subject.new_task(steps) }).await;
        subject.first.ended(task).await;
        tasks.push(task);
    }
    tasks.sort_unstable();
    let page = async |instance: &Instance, owner: Owner, after: Option<TaskKey>, limit| {
        expect(instance.engine.list_of_owner(owner, after, limit).await)
    };
    for instance in [&subject.first, &subject.second] {
        assert_eq!(page(instance, owner, None, 9).await, tasks);
        assert_eq!(page(instance, owner, None, 2).await, tasks[..2]);
        assert_eq!(page(instance, owner, Some(tasks[1]), 2).await, tasks[2..]);
        assert_eq!(page(instance, owner, Some(tasks[2]), 2).await, []);
        assert_eq!(page(instance, subject.new_task("").owner, None, 9).await, []);
    }
}
