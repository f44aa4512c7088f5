//! An update replaces the snapshot, removes messages, and changes what follows, all at once. Each change has a version.

use super::subject::{LEASE, Outcome, TTL, TaskSubject, expect, keep, messages, outcome_of, release};
use crate::{
    error::StoreErrorKind,
    task::{TaskClaim, TaskKey, TaskLimits, TaskNext, TaskRow, TaskSent},
};

/// Checks updates and versions.
pub(super) async fn check(subject: &TaskSubject) {
    an_update_changes_everything_at_once(subject).await;
    a_lease_is_kept_or_given_back(subject).await;
    versions_grow_with_messages(subject).await;
    versions_stay_with_claims(subject).await;
    versions_grow_with_updates(subject).await;
}

async fn an_update_changes_everything_at_once(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    for body in [b"a", b"b", b"c"] {
        subject.queued(task, body).await;
    }
    let (fence, before) = subject.granted(task, 1).await;
    subject.updated(&fence, &keep(b"second", 2, TaskNext::Waits(None))).await;
    let row = subject.row(task).await;
    let expected = TaskRow {
        snapshot: b"second"[..].into(),
        messages: before.messages[2..].to_vec(),
        version: row.version,
        is_final: false,
        is_held: true,
    };
    assert_eq!(row, expected, "an update that keeps the lease");
    subject.updated(&fence, &keep(b"", 0, TaskNext::Waits(None))).await;
    let row = subject.row(task).await;
    assert_eq!((&*row.snapshot, messages(&row)), (&b""[..], vec![(3, &b"c"[..])]), "an empty snapshot");
    subject.updated(&fence, &keep(b"third", 3, TaskNext::Final(TTL))).await;
    let row = subject.row(task).await;
    let expected = TaskRow {
        snapshot: b"third"[..].into(),
        messages: Vec::new(),
        version: row.version,
        is_final: true,
        is_held: false,
    };
    assert_eq!(row, expected, "a final task has no lease");
}

async fn a_lease_is_kept_or_given_back(subject: &TaskSubject) {
    for next in [TaskNext::Runs, TaskNext::Waits(None), TaskNext::Waits(Some(LEASE))] {
        let task = subject.created(Some(TTL)).await;
        let (fence, _) = subject.granted(task, 1).await;
        subject.updated(&fence, &keep(b"second", 0, next)).await;
        assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE }, "{next:?}: kept");
        subject.updated(&fence, &release(b"third", 0, next)).await;
        assert!(!subject.row(task).await.is_held, "{next:?}: given back");
        assert!(matches!(subject.claim(task, 2).await, TaskClaim::Fresh(..)), "{next:?}: given back");
    }
}

/// The versions of a task.
struct Versions<'a> {
    subject: &'a TaskSubject,
    task: TaskKey,
    last: u64,
}

impl<'a> Versions<'a> {
    async fn of(subject: &'a TaskSubject) -> Self {
        let task = subject.created(Some(TTL)).await;
        let last = subject.row(task).await.version;
        assert!(last > 0, "the version of a new row");
        Self { subject, task, last }
    }

    async fn grew(&mut self, case: &str) {
        let version = self.subject.row(self.task).await.version;
        assert!(version > self.last, "{case}: version {version} after {}", self.last);
        self.last = version;
    }

    async fn stayed(&self, case: &str) {
        assert_eq!(self.subject.row(self.task).await.version, self.last, "{case}: the version");
    }
}

async fn versions_grow_with_messages(subject: &TaskSubject) {
    let mut versions = Versions::of(subject).await;
    subject.queued(versions.task, b"a").await;
    versions.grew("send").await;
    let refused = subject.first.send(versions.task, b"b", &TaskLimits::default().messages(1)).await;
    assert_eq!(outcome_of(refused), Err(StoreErrorKind::Full));
    versions.stayed("a refused message").await;
    let (fence, _) = subject.granted(versions.task, 1).await;
    subject.queued(versions.task, b"c").await;
    versions.grew("a message to a held task").await;
    subject.updated(&fence, &release(b"end", 0, TaskNext::Final(TTL))).await;
    versions.grew("the end").await;
    assert_eq!(subject.send(versions.task, b"d").await, Ok(TaskSent::Final));
    versions.stayed("a message to a final task").await;
}

async fn versions_stay_with_claims(subject: &TaskSubject) {
    let versions = Versions::of(subject).await;
    let (old, row) = subject.granted(versions.task, 1).await;
    versions.stayed("claim").await;
    assert_eq!(row.version, versions.last, "the row of a claim");
    subject.granted(versions.task, 1).await;
    versions.stayed("a repeated claim").await;
    assert!(matches!(subject.claim(versions.task, 2).await, TaskClaim::Held { .. }));
    versions.stayed("a refused claim").await;
    expect("renew", subject.first.renew(&old, LEASE).await);
    versions.stayed("renew").await;
    subject.clock.advance(LEASE);
    versions.stayed("the end of a lease").await;
    assert!(matches!(subject.claim(versions.task, 2).await, TaskClaim::Fresh(..)));
    versions.stayed("a takeover").await;
    let lost = subject.update(&old, &keep(b"lost", 1, TaskNext::Runs)).await;
    assert_eq!(lost, Err(StoreErrorKind::FenceLost));
    versions.stayed("a lost fence").await;
}

async fn versions_grow_with_updates(subject: &TaskSubject) {
    let mut versions = Versions::of(subject).await;
    subject.queued(versions.task, b"a").await;
    versions.grew("send").await;
    let (fence, _) = subject.granted(versions.task, 1).await;
    for (case, update) in [
        ("update", keep(b"second", 0, TaskNext::Runs)),
        ("the same update", keep(b"second", 0, TaskNext::Runs)),
        ("a message is taken", keep(b"second", 1, TaskNext::Waits(None))),
        ("the lease is given back", release(b"second", 1, TaskNext::Waits(None))),
    ] {
        subject.updated(&fence, &update).await;
        versions.grew(case).await;
    }
}

// Messages: numbered in the order of their arrival, within the limits of the queue.

const FULL: Outcome<TaskSent> = Err(StoreErrorKind::Full);
const QUEUED: Outcome<TaskSent> = Ok(TaskSent::Queued);

/// Checks the queue of messages, and its limits.
pub(super) async fn check_sends(subject: &TaskSubject) {
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
