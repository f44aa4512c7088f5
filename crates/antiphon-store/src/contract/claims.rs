//! The rules of a claim, as a table.

use crate::contract::{KEEP, LEASE, Subject, answers, outcome_of, request};
use crate::{
    claim::{Claim, Conflict, Fence, Predecessor, Unknown},
    error::StoreErrorKind,
    step::{Appended, StepAttempt, StepRecord},
    store::CallStore,
};

/// The leg of the row that a claim finds.
const LEG: u32 = 5;
/// The answers of that row.
const ANSWERS: u8 = 1;

/// The row that a claim finds: leg 5 with answers 1, of runner 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Nothing,
    Running,
    Dead,
    DeadInStep,
    DeadAfterStep,
    Done,
    Released,
    ReleasedAfterStep,
}

/// The expected result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Fresh,
    SameFence,
    InFlight,
    Done,
    Conflict(Conflict),
    Unknown { in_step: bool },
}

/// A claim: leg, answers, runner, `take_over`, and the leg and answers of its predecessor.
type Row = (Given, u32, u8, u8, bool, Option<(u32, u8)>, Expected);

const UNKNOWN: Expected = Expected::Unknown { in_step: false };
const EARLIER: Expected = Expected::Conflict(Conflict::EarlierLeg);
const ANSWERS_DIFFER: Expected = Expected::Conflict(Conflict::OtherAnswers);
const PREDECESSOR_DIFFERS: Expected = Expected::Conflict(Conflict::OtherPredecessor);

const TABLE: &[Row] = &[
    (Given::Nothing, 5, 1, 2, false, None, Expected::Fresh),
    (Given::Nothing, 5, 1, 2, true, None, Expected::Fresh),
    (Given::Nothing, 6, 1, 2, false, Some((5, 1)), Expected::Fresh),
    (Given::Running, 4, 1, 2, false, None, EARLIER),
    (Given::Running, 5, 1, 2, false, None, Expected::InFlight),
    (Given::Running, 5, 1, 2, true, None, Expected::InFlight),
    (Given::Running, 5, 1, 1, false, None, Expected::SameFence),
    (Given::Running, 5, 2, 1, false, None, ANSWERS_DIFFER),
    (Given::Running, 6, 1, 2, false, Some((5, 1)), Expected::InFlight),
    (Given::Running, 6, 1, 1, true, Some((5, 1)), Expected::InFlight),
    (Given::Dead, 4, 1, 2, true, None, EARLIER),
    (Given::Dead, 5, 1, 2, false, None, UNKNOWN),
    (Given::Dead, 5, 1, 2, true, None, Expected::Fresh),
    (Given::Dead, 5, 1, 1, false, None, Expected::SameFence),
    (Given::Dead, 5, 2, 2, false, None, ANSWERS_DIFFER),
    (Given::Dead, 5, 2, 2, true, None, ANSWERS_DIFFER),
    (Given::Dead, 6, 1, 2, false, Some((5, 1)), UNKNOWN),
    (Given::Dead, 6, 1, 2, true, Some((5, 1)), UNKNOWN),
    (Given::DeadInStep, 5, 1, 2, false, None, Expected::Unknown { in_step: true }),
    (Given::DeadInStep, 5, 1, 2, true, None, Expected::Fresh),
    (Given::DeadAfterStep, 5, 1, 2, false, None, UNKNOWN),
    (Given::Done, 4, 1, 1, false, None, EARLIER),
    (Given::Done, 5, 1, 1, false, None, Expected::Done),
    (Given::Done, 5, 1, 2, false, None, Expected::Done),
    (Given::Done, 5, 1, 2, true, None, Expected::Done),
    (Given::Done, 5, 2, 2, false, None, ANSWERS_DIFFER),
    (Given::Done, 5, 2, 2, true, None, ANSWERS_DIFFER),
    (Given::Done, 6, 1, 2, false, None, Expected::Fresh),
    (Given::Done, 6, 2, 2, false, Some((5, 1)), Expected::Fresh),
    (Given::Done, 7, 2, 2, false, Some((5, 1)), Expected::Fresh),
    (Given::Done, 6, 2, 2, false, Some((5, 2)), PREDECESSOR_DIFFERS),
    (Given::Done, 6, 2, 2, true, Some((4, 1)), PREDECESSOR_DIFFERS),
    (Given::Released, 4, 1, 1, false, None, EARLIER),
    (Given::Released, 5, 1, 1, false, None, Expected::Fresh),
    (Given::Released, 5, 1, 2, false, None, Expected::Fresh),
    (Given::Released, 5, 2, 2, false, None, Expected::Fresh),
    (Given::Released, 6, 1, 2, false, None, Expected::Fresh),
    (Given::Released, 6, 1, 2, false, Some((5, 1)), Expected::Fresh),
    (Given::Released, 6, 1, 2, false, Some((4, 1)), PREDECESSOR_DIFFERS),
    (Given::ReleasedAfterStep, 5, 1, 2, false, None, Expected::Fresh),
    (Given::ReleasedAfterStep, 5, 2, 2, false, None, ANSWERS_DIFFER),
    (Given::ReleasedAfterStep, 6, 2, 2, false, None, Expected::Fresh),
];

/// Checks each rule of a claim.
///
/// # Panics
///
/// If the store breaks a rule. The text names the row of the table.
pub async fn check_claims(subject: &Subject) {
    for row in TABLE {
        check(subject, *row).await;
    }
    steps_of_an_earlier_leg_bind_no_answers(subject).await;
}

async fn check(subject: &Subject, row: Row) {
    let (given, leg, with, runner, take_over, after, expected) = row;
    let call = subject.new_request().call;
    let first = request(call, LEG, ANSWERS, 1);
    let before = if given == Given::Nothing { None } else { Some(subject.granted(&first).await) };
    if let Some(fence) = &before {
        prepare(subject, given, fence).await;
    }
    let after = after.map(|(leg, with)| Predecessor { leg, fingerprint: answers(with) });
    let claim = subject.claimed(&request(call, leg, with, runner).take_over(take_over).after(after)).await;
    match (&claim, expected) {
        (Claim::Fresh(fence), Expected::Fresh) => {
            assert_eq!(fence.call(), call, "{row:?}");
            let lower = before.is_none_or(|before| before.number() < fence.number());
            assert!(lower, "{row:?}: the number of the fence did not rise");
            // The granted leg can be committed, and then is what the row says.
            subject.first.commit(fence, b"other").await.unwrap_or_else(|error| panic!("{row:?}: {error:?}"));
            let again = subject.claimed(&request(call, leg, with, 9)).await;
            assert_eq!(again, Claim::Done(b"other".to_vec()), "{row:?}");
        }
        (Claim::Fresh(fence), Expected::SameFence) => assert_eq!(Some(fence), before.as_ref(), "{row:?}"),
        (Claim::InFlight { retry_after }, Expected::InFlight) => assert_eq!(*retry_after, LEASE, "{row:?}"),
        (Claim::Done(outcome), Expected::Done) => assert_eq!(outcome, b"outcome", "{row:?}"),
        (Claim::Conflict(reason), Expected::Conflict(expected)) => assert_eq!(*reason, expected, "{row:?}"),
        (Claim::Unknown(unknown), Expected::Unknown { in_step }) => {
            let step = in_step.then(|| StepAttempt { step: "pay".to_owned(), attempt: 2 });
            assert_eq!(unknown, &Unknown { leg: LEG, step }, "{row:?}");
        }
        _ => panic!("{row:?}: the claim is {claim:?}"),
    }
}

/// Brings the granted claim into the given state.
async fn prepare(subject: &Subject, given: Given, fence: &Fence) {
    let store = &*subject.first;
    let steps: &[StepRecord] = &match given {
        Given::DeadInStep => vec![
            StepRecord::started("pay", 1),
            StepRecord::started("pay", 2),
            StepRecord::started("mail", 1),
            StepRecord::ended("mail", *b"sent"),
        ],
        Given::DeadAfterStep | Given::ReleasedAfterStep => {
            vec![StepRecord::started("pay", 1), StepRecord::ended("pay", *b"paid")]
        }
        _ => Vec::new(),
    };
    for step in steps {
        store.append(fence, step).await.unwrap_or_else(|error| panic!("{given:?}: {step:?}: {error:?}"));
    }
    let written = match given {
        Given::Done => store.commit(fence, b"outcome").await,
        Given::Released | Given::ReleasedAfterStep => store.release(fence).await,
        Given::Nothing | Given::Running | Given::Dead | Given::DeadInStep | Given::DeadAfterStep => Ok(()),
    };
    written.unwrap_or_else(|error| panic!("{given:?}: {error:?}"));
    if matches!(given, Given::Dead | Given::DeadInStep | Given::DeadAfterStep) {
        subject.clock.advance(LEASE);
    }
}

/// A released leg may come with other answers, if only earlier legs have steps.
async fn steps_of_an_earlier_leg_bind_no_answers(subject: &Subject) {
    let store = &*subject.first;
    let one = subject.new_request();
    let fence = subject.granted(&one).await;
    let written = store.append(&fence, &StepRecord::ended("pay", *b"paid")).await.map(drop);
    written.and(store.commit(&fence, b"one").await).unwrap_or_else(|error| panic!("leg 1: {error:?}"));
    let two = request(one.call, 2, 2, 1).after(Some(one.as_predecessor()));
    let fence = subject.granted(&two).await;
    store.release(&fence).await.unwrap_or_else(|error| panic!("release of leg 2: {error:?}"));
    let other = request(one.call, 2, 3, 2).after(Some(one.as_predecessor()));
    assert!(matches!(subject.claimed(&other).await, Claim::Fresh(_)), "other answers to a released leg");
    let loaded = store.load(one.call).await.unwrap_or_else(|error| panic!("load: {error:?}"));
    assert_eq!(loaded, [StepRecord::ended("pay", *b"paid")], "steps outlive their leg");
}

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
