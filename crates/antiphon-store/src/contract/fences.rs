//! A runner with an old fence writes nothing.

use super::subject::{KEEP, LEASE, Subject, outcome_of, request};
use crate::claim::{Claim, Fence};
use crate::error::StoreErrorKind;
use crate::step::{Appended, StepRecord};
use crate::store::CallStore;

/// A way to lose a fence.
#[derive(Clone, Copy, Debug)]
enum Loss {
    TakenOver,
    Superseded,
    ReleasedAndClaimedAgain,
    Expired,
    ExpiredAndClaimedAgain,
    NeverGiven,
}

const LOSSES: &[Loss] = &[
    Loss::TakenOver,
    Loss::Superseded,
    Loss::ReleasedAndClaimedAgain,
    Loss::Expired,
    Loss::ExpiredAndClaimedAgain,
    Loss::NeverGiven,
];

/// Checks that every write under a lost fence fails and writes nothing, and that repeated writes are accepted.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_fences(subject: &Subject) {
    for loss in LOSSES {
        check_loss(subject, *loss).await;
    }
    writes_may_be_repeated(subject).await;
    the_first_record_wins(subject).await;
    a_lapsed_lease_is_not_a_lost_fence(subject).await;
}

async fn check_loss(subject: &Subject, loss: Loss) {
    let store = &*subject.first;
    let first = subject.new_request();
    let call = first.call;
    let old = subject.granted(&first).await;
    let new = match loss {
        Loss::TakenOver => {
            subject.clock.advance(LEASE);
            Some(subject.granted(&request(call, 1, 1, 2).take_over(true)).await)
        }
        Loss::Superseded => {
            expect(loss, store.commit(&old, b"one").await);
            Some(subject.granted(&request(call, 2, 1, 2)).await)
        }
        Loss::ReleasedAndClaimedAgain => {
            expect(loss, store.release(&old).await);
            Some(subject.granted(&request(call, 1, 1, 1)).await)
        }
        Loss::Expired => {
            subject.clock.advance(KEEP);
            None
        }
        Loss::ExpiredAndClaimedAgain => {
            subject.clock.advance(KEEP);
            Some(subject.granted(&request(call, 1, 1, 2)).await)
        }
        Loss::NeverGiven => Some(old.clone()),
    };
    let old = if matches!(loss, Loss::NeverGiven) { Fence::new(call, old.number() + 1) } else { old };
    for (write, kind) in writes(store, &old).await {
        assert_eq!(kind, Some(StoreErrorKind::FenceLost), "{loss:?}: {write} under the old fence");
    }
    assert_eq!(store.load(call).await.unwrap_or_default(), [], "{loss:?}: the old fence wrote a record");
    let Some(new) = new else { return };
    let (leg, other) = (if matches!(loss, Loss::Superseded) { 2 } else { 1 }, 9);
    let claim = subject.claimed(&request(call, leg, 1, other)).await;
    assert_eq!(claim, Claim::InFlight { retry_after: LEASE }, "{loss:?}: the old fence changed the row");
    for (write, kind) in writes(store, &new).await {
        let after_commit = matches!(write, "release");
        let expected = after_commit.then_some(StoreErrorKind::FenceLost);
        assert_eq!(kind, expected, "{loss:?}: {write} under the new fence");
    }
}

/// Writes everything under a fence, the outcome before the release; returns the error of each.
async fn writes(store: &dyn CallStore, fence: &Fence) -> [(&'static str, Option<StoreErrorKind>); 4] {
    let renew = store.renew(fence, LEASE).await.err();
    let append = store.append(fence, &StepRecord::started("pay", 1)).await.err();
    let commit = store.commit(fence, b"outcome").await.err();
    let release = store.release(fence).await.err();
    [("renew", renew), ("append", append), ("commit", commit), ("release", release)]
        .map(|(name, error)| (name, error.map(|error| error.kind())))
}

/// Every write may be repeated after its confirmation was lost.
async fn writes_may_be_repeated(subject: &Subject) {
    let (first, second) = (&*subject.first, &*subject.second);
    let request = subject.new_request();
    let fence = subject.granted(&request).await;
    assert_eq!(subject.claimed(&request).await, Claim::Fresh(fence.clone()), "a repeated claim");
    for store in [first, second] {
        expect("renew", store.renew(&fence, LEASE).await);
    }
    let record = StepRecord::ended("pay", *b"paid");
    assert_eq!(outcome_of(first.append(&fence, &record).await), Ok(Appended::First));
    assert_eq!(outcome_of(second.append(&fence, &record).await), Ok(Appended::Existing(b"paid".to_vec())));
    for store in [first, second] {
        expect("commit", store.commit(&fence, b"outcome").await);
    }
    let other = second.commit(&fence, b"other").await;
    assert_eq!(outcome_of(other), Err(StoreErrorKind::FenceLost), "a second outcome");
    expect("a renewal that arrives after the outcome", first.renew(&fence, LEASE).await);
    let late = first.append(&fence, &StepRecord::started("late", 1)).await;
    assert_eq!(outcome_of(late), Err(StoreErrorKind::FenceLost), "a record after the outcome");

    let request = subject.new_request();
    let fence = subject.granted(&request).await;
    for store in [first, second] {
        expect("release", store.release(&fence).await);
    }
    let writes = writes(first, &fence).await;
    for (write, kind) in &writes[..3] {
        assert_eq!(*kind, Some(StoreErrorKind::FenceLost), "{write} after the release");
    }
}

/// The first of two records with the same step and event is stored.
async fn the_first_record_wins(subject: &Subject) {
    let store = &*subject.first;
    let fence = subject.granted(&subject.new_request()).await;
    let records = [
        (StepRecord::started("pay", 1).with_value(*b"a"), Appended::First),
        (StepRecord::started("pay", 1).with_value(*b"b"), Appended::Existing(b"a".to_vec())),
        (StepRecord::started("pay", 2), Appended::First),
        (StepRecord::ended("pay", [0, 255, 10]), Appended::First),
        (StepRecord::ended("pay", *b"other"), Appended::Existing(vec![0, 255, 10])),
        (StepRecord::started("späte Zahlung #2/x", u32::MAX), Appended::First),
        (StepRecord::ended("Pay", Vec::new()), Appended::First),
        (StepRecord::ended("Pay", Vec::new()), Appended::Existing(Vec::new())),
    ];
    for (record, expected) in &records {
        assert_eq!(outcome_of(store.append(&fence, record).await).as_ref(), Ok(expected), "{record:?}");
    }
    let stored: Vec<_> =
        records.iter().filter(|(_, result)| *result == Appended::First).map(|(record, _)| record).collect();
    let loaded = outcome_of(subject.second.load(fence.call()).await);
    assert_eq!(loaded.iter().flatten().collect::<Vec<_>>(), stored, "in the order of their writes");
}

/// A runner whose lease ended goes on, if nobody took the call over.
async fn a_lapsed_lease_is_not_a_lost_fence(subject: &Subject) {
    let store = &*subject.first;
    let request_1 = subject.new_request();
    let fence = subject.granted(&request_1).await;
    subject.clock.advance(LEASE);
    let other = request(request_1.call, 1, 1, 2);
    assert!(matches!(subject.claimed(&other).await, Claim::Unknown(_)));
    expect("append after the lease", store.append(&fence, &StepRecord::started("pay", 1)).await.map(drop));
    expect("renew after the lease", store.renew(&fence, LEASE * 2).await);
    assert_eq!(subject.claimed(&other).await, Claim::InFlight { retry_after: LEASE * 2 });
    subject.clock.advance(LEASE * 2);
    expect("commit after the lease", store.commit(&fence, b"late").await);
    assert_eq!(subject.claimed(&other).await, Claim::Done(b"late".to_vec()));
}

fn expect(case: impl std::fmt::Debug, result: Result<(), crate::error::StoreError>) {
    result.unwrap_or_else(|error| panic!("{case:?}: {error:?}"));
}
