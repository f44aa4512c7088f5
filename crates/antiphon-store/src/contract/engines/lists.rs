//! The lists of tasks: of all, for the operator, and of one owner, in pages.

use super::subject::{EngineSubject, Instance};
use crate::error::StoreError;
use crate::key::Owner;
use crate::task::{NewTask, TaskKey, TaskState};

pub(super) async fn check(subject: &EngineSubject) {
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
