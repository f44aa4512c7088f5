//! Messages: numbered in the order of their arrival, within the limits of the queue.

use super::subject::{Outcome, TTL, TaskSubject, messages, outcome_of, release};
use crate::error::StoreErrorKind;
use crate::task::{TaskKey, TaskLimits, TaskNext, TaskSent};

const FULL: Outcome<TaskSent> = Err(StoreErrorKind::Full);
const QUEUED: Outcome<TaskSent> = Ok(TaskSent::Queued);

/// Checks the queue of messages, and its limits.
pub(super) async fn check(subject: &TaskSubject) {
    messages_need_a_task(subject).await;
    a_final_task_drops_messages(subject).await;
    numbers_grow_and_are_never_used_twice(subject).await;
    a_message_above_taken_stays(subject).await;
    messages_are_limited(subject).await;
    bytes_of_messages_are_limited(subject).await;
}

async fn messages_need_a_task(subject: &TaskSubject) {
    let unknown = subject.new_task().task;
    assert_eq!(subject.send(unknown, b"message").await, Ok(TaskSent::NotFound), "an unknown task");
    assert_eq!(subject.load(unknown).await, None, "a message makes no row");
    let gone = subject.created(Some(TTL)).await;
    subject.clock.advance(TTL);
    assert_eq!(subject.send(gone, b"message").await, Ok(TaskSent::NotFound), "a task that is gone");
}

async fn a_final_task_drops_messages(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, _) = subject.granted(task, 1).await;
    subject.queued(task, b"too late").await;
    subject.updated(&fence, &release(b"end", 0, TaskNext::Final(TTL))).await;
    let before = subject.row(task).await;
    assert_eq!(messages(&before), [], "messages of a final task");
    assert!(before.is_final && !before.is_held, "{before:?}");
    for limits in [TaskLimits::default(), TaskLimits::default().messages(0).message_bytes(0)] {
        assert_eq!(send(subject, task, b"message", &limits).await, Ok(TaskSent::Final));
    }
    assert_eq!(subject.row(task).await, before, "a message to a final task");
}

async fn numbers_grow_and_are_never_used_twice(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    subject.queued(task, b"a").await;
    subject.queued(task, b"").await;
    assert_eq!(messages(&subject.row(task).await), [(1, &b"a"[..]), (2, b"")]);
    let (fence, row) = subject.granted(task, 1).await;
    assert_eq!(messages(&row), [(1, &b"a"[..]), (2, b"")], "the row of a claim");
    subject.updated(&fence, &release(b"all taken", 2, TaskNext::Runs)).await;
    assert_eq!(messages(&subject.row(task).await), []);
    subject.queued(task, b"c").await;
    subject.queued(task, b"a").await;
    assert_eq!(messages(&subject.row(task).await), [(3, &b"c"[..]), (4, b"a")], "after messages were taken");
}

/// An update removes the messages up to `taken`: none, some, all, and more than there are.
async fn a_message_above_taken_stays(subject: &TaskSubject) {
    for (taken, rest) in [(0, 1..4), (1, 2..4), (2, 3..4), (3, 4..4), (9, 4..4), (u64::MAX, 4..4)] {
        let task = subject.created(Some(TTL)).await;
        let (fence, _) = subject.granted(task, 1).await;
        for _ in 0..3 {
            subject.queued(task, b"message").await;
        }
        subject.updated(&fence, &release(b"taken", taken, TaskNext::Runs)).await;
        let row = subject.row(task).await;
        let numbers: Vec<u64> = row.messages.iter().map(|message| message.number).collect();
        assert_eq!(numbers, rest.collect::<Vec<_>>(), "{taken} taken of 3");
        subject.queued(task, b"message").await;
        let last = subject.row(task).await.messages.pop();
        assert_eq!(last.map(|message| message.number), Some(4), "{taken} taken of 3");
    }
}

async fn messages_are_limited(subject: &TaskSubject) {
    let limits = TaskLimits::default().messages(2);
    let task = subject.created(Some(TTL)).await;
    assert_eq!(send(subject, task, b"a", &limits).await, QUEUED);
    assert_eq!(send(subject, task, b"b", &limits).await, QUEUED);
    refused(subject, task, b"c", &limits).await;
    refused(subject, task, b"", &limits).await;
    let (fence, _) = subject.granted(task, 1).await;
    subject.updated(&fence, &release(b"one taken", 1, TaskNext::Runs)).await;
    assert_eq!(send(subject, task, b"c", &limits).await, QUEUED, "a message was taken");
    assert_eq!(
        messages(&subject.row(task).await),
        [(2, &b"b"[..]), (3, b"c")],
        "a refused one has no number"
    );
    refused(subject, task, b"d", &limits).await;
    // The queue of another task is another one.
    let other = subject.created(Some(TTL)).await;
    assert_eq!(send(subject, other, b"a", &limits).await, QUEUED);
}

async fn bytes_of_messages_are_limited(subject: &TaskSubject) {
    let limits = TaskLimits::default().message_bytes(10);
    let task = subject.created(Some(TTL)).await;
    refused(subject, task, &[0; 11], &limits).await;
    assert_eq!(send(subject, task, &[1; 6], &limits).await, QUEUED);
    refused(subject, task, &[2; 5], &limits).await;
    assert_eq!(send(subject, task, &[3; 4], &limits).await, QUEUED, "10 of 10 bytes");
    assert_eq!(send(subject, task, &[], &limits).await, QUEUED, "an empty message");
    refused(subject, task, &[4], &limits).await;
    let (fence, _) = subject.granted(task, 1).await;
    subject.updated(&fence, &release(b"one taken", 1, TaskNext::Runs)).await;
    assert_eq!(send(subject, task, &[5; 6], &limits).await, QUEUED, "bytes were taken");
    refused(subject, task, &[6], &limits).await;
}

async fn send(
    subject: &TaskSubject,
    task: TaskKey,
    message: &[u8],
    limits: &TaskLimits,
) -> Outcome<TaskSent> {
    outcome_of(subject.first.send(task, message, limits).await)
}

/// Sends a message at a limit: nothing of it is there afterwards.
async fn refused(subject: &TaskSubject, task: TaskKey, message: &[u8], limits: &TaskLimits) {
    let before = subject.row(task).await;
    let sent = send(subject, task, message, limits).await;
    assert_eq!(sent, FULL, "{} bytes at the limit of {limits:?}", message.len());
    assert_eq!(subject.row(task).await, before, "a refused message changed the row");
}
