//! Messages reach the program once, in their order, and requests see those that it has not taken.

use super::{
    script::Script,
    subject::{EngineSubject, Instance},
};
use crate::{
    claim::Owner,
    error::{StoreError, StoreErrorKind},
    identity::StoreReach,
    task::{NewTask, TaskKey, TaskLimits, TaskRow, TaskSent, TaskState},
};

pub(super) async fn check(subject: &EngineSubject) {
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

pub(super) async fn check_lists(subject: &EngineSubject) {
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
