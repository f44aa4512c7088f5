//! An update replaces the snapshot, removes messages, and changes what follows, all at once. Each change has a version.

use super::subject::{LEASE, TTL, TaskSubject, expect, keep, messages, outcome_of, release};
use crate::error::StoreErrorKind;
use crate::task::{TaskClaim, TaskKey, TaskLimits, TaskNext, TaskRow, TaskSent};

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
