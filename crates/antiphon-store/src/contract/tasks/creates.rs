//! A task is created once, and within the limits.

use super::subject::{FIRST_SNAPSHOT, TTL, TaskSubject, expect, messages, release};
use super::subject::{MANY, Outcome};
use crate::check::MAX_VALUE;
use crate::error::StoreErrorKind;
use crate::task::{NewTask, TaskCreated, TaskLimits, TaskNext, TaskRow, TaskSent, TaskState};

const FULL: Outcome<TaskCreated> = Err(StoreErrorKind::Full);
const FIRST: Outcome<TaskCreated> = Ok(TaskCreated::First);

/// Checks the creation of tasks, and the limits of their number.
pub(super) async fn check(subject: &TaskSubject) {
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
