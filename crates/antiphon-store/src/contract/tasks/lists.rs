//! The list of tasks for the operator: the oldest first, with the fields of the row.

use super::subject::{
    Event, FIRST_SNAPSHOT, HALF, LEASE, Life, MANY, Outcome, TTL, TaskSubject, expect, messages, release,
};
use crate::{
    check::MAX_VALUE,
    error::StoreErrorKind,
    task::{NewTask, TaskCreated, TaskKey, TaskLimits, TaskNext, TaskRow, TaskSent, TaskState, TaskSummary},
};
use std::time::Duration;

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

const FULL: Outcome<TaskCreated> = Err(StoreErrorKind::Full);
const FIRST: Outcome<TaskCreated> = Ok(TaskCreated::First);

/// Checks the creation of tasks, and the limits of their number.
pub(super) async fn check_creates(subject: &TaskSubject) {
    a_new_row_has_the_snapshot_only(subject).await;
    a_row_that_exists_stays(subject).await;
    tasks_of_an_owner_are_limited(subject).await;
    tasks_are_limited(subject).await;
    a_snapshot_is_read_from_its_beginning(subject).await;
    long_values_are_invalid(subject).await;
}

async fn a_new_row_has_the_snapshot_only(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let row = subject.row(task).await;
    let expected = TaskRow {
        snapshot: FIRST_SNAPSHOT.into(),
        messages: Vec::new(),
        version: row.version,
        is_final: false,
        is_held: false,
    };
    assert_eq!(row, expected, "a new row");
    assert!(subject.is_due(task).await, "a new task is due at once");
}

/// The same task again, and another one with its key, change nothing: not while it waits, runs or is final, and not at a limit.
async fn a_row_that_exists_stays(subject: &TaskSubject) {
    let new = subject.new_task();
    assert_eq!(subject.create(&new, &TaskLimits::default()).await, FIRST);
    subject.queued(new.task, b"message").await;
    again(subject, &new, "ready").await;
    let (fence, _) = subject.granted(new.task, 1).await;
    again(subject, &new, "held").await;
    subject.updated(&fence, &release(b"second", 1, TaskNext::Waits(None))).await;
    again(subject, &new, "waiting").await;
    let (fence, _) = subject.granted(new.task, 1).await;
    subject.updated(&fence, &release(b"third", 1, TaskNext::Final(TTL))).await;
    again(subject, &new, "final").await;
}

async fn again(subject: &TaskSubject, new: &NewTask, state: &str) {
    let other =
        NewTask { task: new.task, snapshot: b"other".to_vec(), ttl: None, owner: subject.new_task().owner };
    let before = (subject.row(new.task).await, subject.summary(new.task).await);
    for new in [new, &other] {
        for limits in [TaskLimits::default(), TaskLimits::default().tasks(0).tasks_of_owner(0)] {
            let created = subject.create(new, &limits).await;
            assert_eq!(created, Ok(TaskCreated::Existing), "a {state} task is created again");
        }
    }
    let after = (subject.row(new.task).await, subject.summary(new.task).await);
    assert_eq!(after, before, "a {state} task was created again");
}

async fn tasks_of_an_owner_are_limited(subject: &TaskSubject) {
    let limits = TaskLimits::default().tasks_of_owner(2);
    let owner = subject.new_task().owner;
    let of_owner = || NewTask { owner, ..subject.new_task() };
    let (first, second, third) = (of_owner(), of_owner(), of_owner());
    assert_eq!(subject.create(&first, &limits).await, FIRST);
    assert_eq!(subject.create(&second, &limits).await, FIRST);
    refused(subject, &third, &limits).await;
    assert_eq!(subject.create(&subject.new_task(), &limits).await, FIRST, "another owner");

    let (fence, _) = subject.granted(first.task, 1).await;
    refused(subject, &third, &limits).await;
    subject.updated(&fence, &release(b"end", 0, TaskNext::Final(TTL * 2))).await;
    assert_eq!(subject.create(&third, &limits).await, FIRST, "a final task does not count");
    refused(subject, &of_owner(), &limits).await;

    subject.clock.advance(TTL);
    assert!(subject.load(first.task).await.is_some(), "a final task is kept");
    for task in [of_owner(), of_owner()] {
        assert_eq!(subject.create(&task, &limits).await, FIRST, "tasks that are gone do not count");
    }
    refused(subject, &of_owner(), &limits).await;
}

async fn tasks_are_limited(subject: &TaskSubject) {
    let list = expect("list", subject.first.list(MANY).await);
    let open = list.iter().filter(|summary| summary.state != TaskState::Final).count();
    let limits = TaskLimits::default().tasks(open + 2);
    let (first, second, third) = (subject.new_task(), subject.new_task(), subject.new_task());
    assert_eq!(subject.create(&first, &limits).await, FIRST);
    assert_eq!(subject.create(&second, &limits).await, FIRST);
    refused(subject, &third, &limits).await;
    let (fence, _) = subject.granted(first.task, 1).await;
    subject.updated(&fence, &release(b"end", 0, TaskNext::Final(TTL))).await;
    assert_eq!(subject.create(&third, &limits).await, FIRST, "a final task does not count");
    refused(subject, &subject.new_task(), &limits).await;
    // Whatever other checks left is gone too.
    subject.clock.advance(TTL);
    assert_eq!(subject.create(&subject.new_task(), &limits).await, FIRST, "tasks that are gone do not count");
}

/// Creates a task at a limit: nothing of it is there afterwards.
async fn refused(subject: &TaskSubject, task: &NewTask, limits: &TaskLimits) {
    assert_eq!(subject.create(task, limits).await, FULL, "at the limit of {limits:?}");
    assert_eq!(subject.load(task.task).await, None, "a refused task has a row");
    assert_eq!(subject.summary(task.task).await, None, "a refused task is listed");
    assert!(!subject.is_due(task.task).await, "a refused task is due");
    assert_eq!(subject.send(task.task, b"message").await, Ok(TaskSent::NotFound), "a refused task");
}

/// A request about a task reads the beginning of its snapshot: the rest of the row is as ever.
async fn a_snapshot_is_read_from_its_beginning(subject: &TaskSubject) {
    for length in [0, 1, 5_000, 100_000] {
        let snapshot: Vec<u8> =
            (0..length).map(|at: u32| at.to_le_bytes()[usize::from(at % 2 == 1)]).collect();
        let new = NewTask { snapshot: snapshot.clone(), ..subject.new_task() };
        assert_eq!(subject.create(&new, &TaskLimits::default()).await, FIRST);
        assert_eq!(subject.send(new.task, b"message").await, Ok(TaskSent::Queued));
        let whole = subject.row(new.task).await;
        for bytes in [0, 1, 4_096, 99_999, 100_000, usize::MAX] {
            let head = expect("load_head", subject.first.load_head(new.task, bytes).await).expect("a row");
            assert!(head.snapshot.len() >= bytes.min(snapshot.len()), "{bytes} bytes of {length}");
            assert!(snapshot.starts_with(&head.snapshot), "{bytes} bytes of {length}");
            let head = TaskRow { snapshot: whole.snapshot.clone(), ..head };
            assert_eq!(head, whole, "the rest of a row, with {bytes} bytes of {length}");
        }
    }
    let none = subject.first.load_head(subject.new_task().task, 1).await;
    assert_eq!(expect("load_head", none), None, "a task that nobody created");
}

async fn long_values_are_invalid(subject: &TaskSubject) {
    let long = vec![0; MAX_VALUE + 1];
    let new = NewTask { snapshot: long.clone(), ..subject.new_task() };
    let created = subject.create(&new, &TaskLimits::default()).await;
    assert_eq!(created, Err(StoreErrorKind::Invalid), "a snapshot over MAX_VALUE");
    assert_eq!(subject.load(new.task).await, None, "a snapshot over MAX_VALUE");

    let task = subject.created(Some(TTL)).await;
    let (fence, before) = subject.granted(task, 1).await;
    let sent = subject.send(task, &long).await;
    assert_eq!(sent, Err(StoreErrorKind::Invalid), "a message over MAX_VALUE");
    let update = release(&long, 0, TaskNext::Runs);
    assert_eq!(
        subject.update(&fence, &update).await,
        Err(StoreErrorKind::Invalid),
        "an update over MAX_VALUE"
    );
    assert_eq!(subject.row(task).await, before, "values over MAX_VALUE");
    assert_eq!(messages(&before), []);

    let longest = vec![0; MAX_VALUE];
    subject.updated(&fence, &release(&longest, 0, TaskNext::Final(TTL))).await;
    assert_eq!(subject.row(task).await.snapshot.len(), MAX_VALUE, "a snapshot of MAX_VALUE");
}
