//! A claim is granted to one runner, and its fence ends when another runner takes over.

use std::time::Duration;

use super::subject::{FIRST_SNAPSHOT, LEASE, Outcome, TICK, TTL, TaskSubject};
use super::subject::{keep, messages, outcome_of, release, runner};
use crate::error::StoreErrorKind;
use crate::task::{TaskClaim, TaskFence, TaskKey, TaskNext};

const LOST: Outcome<()> = Err(StoreErrorKind::FenceLost);

/// Checks claims, leases and fences.
pub(super) async fn check(subject: &TaskSubject) {
    a_claim_needs_a_task(subject).await;
    a_claim_returns_the_row(subject).await;
    a_lease_holds_the_task(subject).await;
    a_pause_holds_the_task(subject).await;
    a_repeated_claim_gets_the_same_fence(subject).await;
    a_takeover_ends_the_old_fence(subject).await;
    a_lease_that_ended_may_be_renewed(subject).await;
    a_lease_that_was_given_back_is_lost(subject).await;
    wrong_leases_are_invalid(subject).await;
}

async fn a_claim_needs_a_task(subject: &TaskSubject) {
    let unknown = subject.new_task().task;
    assert_eq!(subject.claim(unknown, 1).await, TaskClaim::NotFound, "an unknown task");
    let gone = subject.created(Some(TTL)).await;
    subject.clock.advance(TTL);
    assert_eq!(subject.claim(gone, 1).await, TaskClaim::NotFound, "a task that is gone");
    let task = subject.created(Some(TTL)).await;
    let (fence, _) = subject.granted(task, 1).await;
    subject.updated(&fence, &release(b"end", 0, TaskNext::Final(TTL))).await;
    assert_eq!(subject.claim(task, 1).await, TaskClaim::Final, "by the runner that ended the task");
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Final, "by another runner");
    every_write_is_lost(subject, &fence, "after the end").await;
}

/// A task may be claimed although it is not due.
async fn a_claim_returns_the_row(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, row) = subject.granted(task, 1).await;
    assert_eq!((fence.task(), &*row.snapshot), (task, FIRST_SNAPSHOT));
    assert!(row.is_held && !row.is_final, "{row:?}");
    assert_eq!(subject.row(task).await, row, "the row of a claim is the present one");
    subject.updated(&fence, &release(b"second", 0, TaskNext::Waits(None))).await;
    let (fence, row) = subject.granted(task, 2).await;
    assert_eq!((&*row.snapshot, messages(&row)), (&b"second"[..], vec![]), "a task that waits");
    subject.updated(&fence, &release(b"third", 0, TaskNext::Runs)).await;
    assert!(!subject.row(task).await.is_held, "no lease");
}

async fn a_lease_holds_the_task(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, before) = subject.granted(task, 1).await;
    for waited in [Duration::ZERO, LEASE / 3, LEASE / 3, LEASE / 3 - TICK] {
        subject.clock.advance(waited);
        let claim = subject.claim(task, 2).await;
        assert!(matches!(claim, TaskClaim::Held { .. }), "after {waited:?} more: {claim:?}");
    }
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: TICK }, "the rest of the lease");
    assert_eq!(subject.row(task).await, before, "a refused claim");
    assert_eq!(outcome_of(subject.second.renew(&fence, LEASE * 2).await), Ok(()));
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE * 2 }, "renewed");
    assert_eq!(outcome_of(subject.first.renew(&fence, LEASE / 2).await), Ok(()));
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE / 2 }, "shortened");
    subject.updated(&fence, &keep(b"second", 0, TaskNext::Runs)).await;
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE / 2 }, "updated");
}

/// A task that pauses runs nowhere, also if a message comes.
async fn a_pause_holds_the_task(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, _) = subject.granted(task, 1).await;
    subject.updated(&fence, &keep(b"second", 0, TaskNext::Pauses(LEASE * 2))).await;
    assert_eq!(subject.granted(task, 1).await.0, fence, "a claim under the lease");
    subject.clock.advance(LEASE);
    for runner in [1, 2] {
        assert_eq!(subject.claim(task, runner).await, TaskClaim::Held { retry_after: LEASE }, "it pauses");
        subject.queued(task, b"message").await;
    }
    subject.clock.advance(LEASE - TICK);
    assert_eq!(
        subject.claim(task, 2).await,
        TaskClaim::Held { retry_after: TICK },
        "it pauses with messages"
    );
    subject.clock.advance(TICK);
    let (later, row) = subject.granted(task, 2).await;
    assert!(later.number() > fence.number(), "{later:?} after {fence:?}");
    assert_eq!(messages(&row), [(1, &b"message"[..]), (2, &b"message"[..])]);
}

async fn a_repeated_claim_gets_the_same_fence(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, _) = subject.granted(task, 1).await;
    subject.updated(&fence, &keep(b"second", 0, TaskNext::Runs)).await;
    subject.queued(task, b"message").await;
    subject.clock.advance(LEASE - TICK);
    let TaskClaim::Fresh(again, row) = subject.claim(task, 1).await else { panic!("a repeated claim") };
    assert_eq!(again, fence, "a repeated claim");
    assert_eq!((&*row.snapshot, messages(&row)), (&b"second"[..], vec![(1, &b"message"[..])]));
    // The repeated claim extends the lease.
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE });
    subject.clock.advance(LEASE);
    let (later, _) = subject.granted(task, 1).await;
    assert!(later.number() > fence.number(), "the lease of the first claim had ended");
    every_write_is_lost(subject, &fence, "after a later claim of the same runner").await;
}

async fn a_takeover_ends_the_old_fence(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    subject.queued(task, b"message").await;
    let (old, _) = subject.granted(task, 1).await;
    subject.clock.advance(LEASE);
    assert!(!subject.row(task).await.is_held, "the lease is over");
    let TaskClaim::Fresh(new, row) = subject.claim(task, 2).await else { panic!("the lease is over") };
    assert!(new.number() > old.number(), "{new:?} after {old:?}");
    assert_eq!(messages(&row), [(1, &b"message"[..])], "a takeover gets the messages");
    every_write_is_lost(subject, &old, "after a takeover").await;
    // The old runner is another runner now.
    assert!(matches!(subject.claim(task, 1).await, TaskClaim::Held { .. }));
    let never_given = TaskFence::new(task, new.number() + 1);
    every_write_is_lost(subject, &never_given, "a fence that was never given").await;
    subject.updated(&new, &release(b"second", 1, TaskNext::Runs)).await;
    every_write_is_lost(subject, &old, "after the second run").await;
    let (third, _) = subject.granted(task, 1).await;
    assert!(third.number() > new.number(), "{third:?} after {new:?}");
}

async fn a_lease_that_ended_may_be_renewed(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, _) = subject.granted(task, 1).await;
    subject.clock.advance(LEASE * 2);
    assert_eq!(outcome_of(subject.first.renew(&fence, LEASE).await), Ok(()), "nobody took over");
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE });
    subject.clock.advance(LEASE * 2);
    subject.updated(&fence, &keep(b"second", 0, TaskNext::Runs)).await;
    assert_eq!(&*subject.row(task).await.snapshot, b"second", "nobody took over");
    assert!(matches!(subject.claim(task, 2).await, TaskClaim::Fresh(..)), "an update extends no lease");
}

async fn a_lease_that_was_given_back_is_lost(subject: &TaskSubject) {
    for next in [TaskNext::Runs, TaskNext::Waits(None), TaskNext::Waits(Some(LEASE))] {
        let task = subject.created(Some(TTL)).await;
        let (fence, _) = subject.granted(task, 1).await;
        subject.updated(&fence, &release(b"second", 0, next)).await;
        every_write_is_lost(subject, &fence, "after the lease was given back").await;
        let (later, _) = subject.granted(task, 1).await;
        assert!(later.number() > fence.number(), "{later:?} after {fence:?}");
        every_write_is_lost(subject, &fence, "after a later claim of the same runner").await;
    }
}

/// Every write under the fence is refused, and changes nothing.
pub(super) async fn every_write_is_lost(subject: &TaskSubject, fence: &TaskFence, case: &str) {
    let state = async |task: TaskKey| (subject.load(task).await, subject.summary(task).await);
    let before = state(fence.task()).await;
    for store in [&subject.first, &subject.second] {
        for time in [LEASE, LEASE * 4] {
            assert_eq!(outcome_of(store.renew(fence, time).await), LOST, "{case}: renew");
        }
        for next in [TaskNext::Runs, TaskNext::Waits(None), TaskNext::Final(TTL * 2)] {
            for update in [keep(b"lost", 9, next), release(b"lost", 0, next)] {
                let updated = outcome_of(store.update(fence, &update).await);
                assert_eq!(updated, LOST, "{case}: {update:?}");
            }
        }
    }
    assert_eq!(state(fence.task()).await, before, "{case}: a lost fence changed the row");
}

async fn wrong_leases_are_invalid(subject: &TaskSubject) {
    let task = subject.created(Some(TTL)).await;
    let (fence, _) = subject.granted(task, 1).await;
    let day = Duration::from_secs(24 * 60 * 60);
    for lease in [Duration::ZERO, day + LEASE] {
        let claim = outcome_of(subject.first.claim(task, runner(1), lease).await);
        assert_eq!(claim, Err(StoreErrorKind::Invalid), "a lease of {lease:?}");
        let renewed = outcome_of(subject.first.renew(&fence, lease).await);
        assert_eq!(renewed, Err(StoreErrorKind::Invalid), "a lease of {lease:?}");
    }
    assert_eq!(subject.claim(task, 2).await, TaskClaim::Held { retry_after: LEASE }, "a wrong lease");
}
