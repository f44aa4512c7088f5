//! An update replaces the snapshot, removes messages, and changes what follows, all at once. Each change has a version.

use super::subject::{LEASE, TTL, TaskSubject, expect, keep, messages, outcome_of, release, runner};
use crate::error::StoreErrorKind;
use crate::task::{TaskClaim, TaskKey, TaskLimits, TaskNext, TaskRow};

/// Checks updates and versions.
pub(super) async fn check(subject: &TaskSubject) {
    an_update_changes_everything_at_once(subject).await;
    a_lease_is_kept_or_given_back(subject).await;
    versions_grow_with_each_change(subject).await;
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
        snapshot: b"second".to_vec(),
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
        snapshot: b"third".to_vec(),
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

async fn versions_grow_with_each_change(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let mut last = version(subject, task).await;
    assert!(last > 0, "the version of a new row");
    let mut grown = async |case: &str, grows: bool| {
        let version = version(subject, task).await;
        if grows {
            assert!(version > last, "{case}: version {version} after {last}");
        } else {
            assert_eq!(version, last, "{case}");
        }
        last = version;
    };
    subject.queued(task, b"a").await;
    grown("send", true).await;
    let refused = subject.first.send(task, b"b", &TaskLimits::default().messages(1)).await;
    assert_eq!(outcome_of(refused), Err(StoreErrorKind::Full));
    grown("a refused message", false).await;

    let (old, row) = subject.granted(task, 1).await;
    grown("claim", false).await;
    assert_eq!(row.version, version(subject, task).await, "the row of a claim");
    subject.granted(task, 1).await;
    grown("a repeated claim", false).await;
    assert!(matches!(subject.claim(task, 2).await, TaskClaim::Held { .. }));
    grown("a refused claim", false).await;
    expect("renew", subject.first.renew(&old, LEASE).await);
    grown("renew", false).await;
    subject.clock.advance(LEASE);
    grown("the end of a lease", false).await;
    let claim = subject.first.claim(task, runner(2), LEASE).await;
    let TaskClaim::Fresh(fence, _) = expect("claim", claim) else { panic!("the lease is over") };
    grown("a takeover", false).await;
    assert_eq!(subject.update(&old, &keep(b"lost", 1, TaskNext::Runs)).await, Err(StoreErrorKind::FenceLost));
    grown("a lost fence", false).await;

    for (case, update) in [
        ("update", keep(b"second", 0, TaskNext::Runs)),
        ("the same update", keep(b"second", 0, TaskNext::Runs)),
        ("messages are taken", keep(b"second", 1, TaskNext::Waits(None))),
    ] {
        subject.updated(&fence, &update).await;
        grown(case, true).await;
    }
    subject.queued(task, b"c").await;
    grown("a message to a held task", true).await;
    subject.updated(&fence, &release(b"end", 0, TaskNext::Final(TTL))).await;
    grown("the end", true).await;
    subject.send(task, b"d").await.unwrap_or_else(|error| panic!("send: {error:?}"));
    grown("a message to a final task", false).await;
}

async fn version(subject: &TaskSubject, task: TaskKey) -> u64 {
    subject.row(task).await.version
}
