//! The list of tasks for the operator: the oldest first, with the fields of the row.

use std::time::Duration;

use super::life::{Event, HALF, Life};
use super::subject::{FIRST_SNAPSHOT, LEASE, MANY, TTL, TaskSubject, expect, release};
use crate::task::{NewTask, TaskCreated, TaskKey, TaskLimits, TaskNext, TaskState, TaskSummary};

/// The size of a later snapshot in bytes.
const LATER: usize = b"snapshot".len();

const FINAL: TaskNext = TaskNext::Final(LEASE);

/// Returns the lives of tasks, and their summaries.
fn table(task: TaskKey) -> Vec<(&'static str, Option<Duration>, Vec<Event>, TaskSummary)> {
    let new = TaskSummary { snapshot_bytes: FIRST_SNAPSHOT.len(), ..TaskSummary::new(task, TaskState::Due) };
    vec![
        ("a new task", None, vec![], new.clone()),
        (
            "a message",
            Some(TTL),
            vec![Event::Wait(HALF), Event::Send, Event::Wait(LEASE)],
            TaskSummary {
                age: HALF + LEASE,
                unchanged_for: LEASE,
                rest: Some(TTL - HALF - LEASE),
                messages: 1,
                received: 1,
                ..new.clone()
            },
        ),
        (
            "a held task",
            None,
            vec![
                Event::Wait(HALF),
                Event::Claim,
                Event::Send,
                Event::Send,
                Event::Renew(TTL),
                Event::Wait(LEASE),
            ],
            TaskSummary {
                age: HALF + LEASE,
                unchanged_for: LEASE,
                messages: 2,
                received: 2,
                claims: 1,
                state: TaskState::Held,
                ..new.clone()
            },
        ),
        (
            "no change by claims and leases",
            Some(TTL),
            vec![
                Event::Claim,
                Event::Wait(LEASE),
                Event::Claim,
                Event::Claim,
                Event::Renew(LEASE),
                Event::Wait(HALF),
            ],
            TaskSummary {
                age: LEASE + HALF,
                unchanged_for: LEASE + HALF,
                rest: Some(TTL - LEASE - HALF),
                claims: 2,
                state: TaskState::Held,
                ..new.clone()
            },
        ),
        (
            "a task that waits",
            None,
            vec![
                Event::Claim,
                Event::Wait(HALF),
                Event::Release(0, TaskNext::Waits(Some(TTL))),
                Event::Wait(LEASE),
            ],
            TaskSummary {
                age: HALF + LEASE,
                unchanged_for: LEASE,
                claims: 1,
                snapshot_bytes: LATER,
                state: TaskState::Waits,
                ..new.clone()
            },
        ),
        (
            "a final task",
            None,
            vec![Event::Send, Event::Claim, Event::Wait(HALF), Event::Release(0, FINAL), Event::Wait(HALF)],
            TaskSummary {
                age: HALF * 2,
                unchanged_for: HALF,
                rest: Some(LEASE - HALF),
                received: 1,
                claims: 1,
                snapshot_bytes: LATER,
                state: TaskState::Final,
                ..new
            },
        ),
    ]
}

/// Checks the list of tasks.
pub(super) async fn check(subject: &TaskSubject) {
    for (number, (name, ttl, events, _)) in table(subject.new_task().task).into_iter().enumerate() {
        let task = Life::of(subject, ttl, &events, name).await.task();
        let (_, _, _, expected) = table(task).swap_remove(number);
        assert_eq!(subject.summary(task).await, Some(expected), "{name}");
        subject.end(task).await;
    }
    the_oldest_is_first(subject).await;
    an_owner_has_pages(subject).await;
}

/// The tasks of an owner come in pages, in the order of their keys: waiting ones, final ones, and no others.
async fn an_owner_has_pages(subject: &TaskSubject) {
    let owner = subject.new_task().owner;
    let mut tasks = Vec::new();
    for number in 0..5 {
        let new = NewTask { owner, ttl: (number != 3).then_some(TTL), ..subject.new_task() };
        assert_eq!(subject.create(&new, &TaskLimits::default()).await, Ok(TaskCreated::First));
        tasks.push(new.task);
    }
    subject.created(Some(TTL)).await;
    let (fence, _) = subject.granted(tasks[3], 1).await;
    subject.updated(&fence, &release(b"end", 0, TaskNext::Final(TTL * 2))).await;
    let late = tasks[3];
    tasks.sort_unstable();
    let page = async |after, limit| {
        let list = expect("list", subject.first.list_of_owner(owner, after, limit).await);
        assert_eq!(list, expect("list", subject.second.list_of_owner(owner, after, limit).await));
        list
    };
    assert_eq!(page(None, usize::MAX).await, tasks);
    assert_eq!(page(None, 0).await, []);
    for (at, task) in tasks.iter().enumerate() {
        assert_eq!(page(Some(*task), 2).await, tasks[at + 1..].iter().copied().take(2).collect::<Vec<_>>());
    }
    let edge = |byte| Some(TaskKey::from_bytes([byte; 16]));
    assert_eq!(page(edge(0), 9).await, tasks);
    assert_eq!(page(edge(0xff), 9).await, []);
    let nobody = subject.new_task().owner;
    assert_eq!(expect("list", subject.first.list_of_owner(nobody, None, 9).await), []);
    subject.clock.advance(TTL);
    assert_eq!(page(None, 9).await, [late], "tasks that are gone are in no list");
}

async fn the_oldest_is_first(subject: &TaskSubject) {
    let mut tasks = Vec::new();
    for _ in 0..5 {
        tasks.push(subject.created(Some(TTL)).await);
        subject.clock.advance(Duration::from_micros(1));
    }
    // A change makes no task younger.
    subject.queued(tasks[0], b"message").await;
    let all = expect("list", subject.first.list(MANY).await);
    let own: Vec<_> = all.iter().map(|summary| summary.task).filter(|task| tasks.contains(task)).collect();
    assert_eq!(own, tasks, "the order of the list");
    assert!(all.is_sorted_by(|one, next| one.age >= next.age), "the ages in the list: {all:?}");
    for limit in [0, 1, all.len() - 1, all.len(), all.len() + 1, usize::MAX] {
        let list = expect("list", subject.second.list(limit).await);
        assert_eq!(list, all[..limit.min(all.len())], "at most {limit}");
    }
}
