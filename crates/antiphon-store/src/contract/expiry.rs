//! Rows expire when neither lease nor keeping time is left, and not before.

use crate::contract::{KEEP, LEASE, Subject, request};
use crate::{
    claim::{Claim, Conflict, Fence},
    error::StoreError,
    step::StepRecord,
    store::CallStore,
};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// More rows than the checks make.
const MANY: usize = 10_000;

/// A row, its life so far, and the time that is left of it.
type Row = (&'static str, &'static [Event], Duration);

/// An event in the life of a row.
#[derive(Clone, Copy, Debug)]
enum Event {
    Wait(Duration),
    Append,
    Commit,
    Release,
    Renew(Duration),
    /// The same leg by another runner: lease, and time for which the row is kept.
    TakeOver(Duration, Duration),
    /// The next leg: lease, and time for which the row is kept.
    NextLeg(Duration, Duration),
}

const TABLE: &[Row] = &[
    ("a dead runner", &[], KEEP),
    ("an outcome", &[Event::Commit], KEEP),
    ("a released leg", &[Event::Release], KEEP),
    ("steps", &[Event::Append, Event::Append], KEEP),
    (
        "a lease beyond the keeping time",
        &[Event::Renew(Duration::from_secs(1_200))],
        Duration::from_secs(1_200),
    ),
    ("an outcome ends the lease", &[Event::Renew(Duration::from_secs(1_200)), Event::Commit], KEEP),
    (
        "a later leg keeps longer",
        &[Event::Commit, Event::NextLeg(LEASE, Duration::from_secs(900))],
        Duration::from_secs(900),
    ),
    ("a later leg never shortens", &[Event::Commit, Event::NextLeg(LEASE, SECOND)], KEEP),
    (
        "a takeover never shortens",
        &[Event::Wait(LEASE), Event::TakeOver(SECOND, SECOND)],
        Duration::from_secs(570),
    ),
    ("a takeover keeps longer", &[Event::Wait(LEASE), Event::TakeOver(SECOND, KEEP)], KEEP),
];

/// Checks when rows expire, and that a sweep removes those rows only.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_expiry(subject: &Subject) {
    for row in TABLE {
        check(subject, row, false).await;
        check(subject, row, true).await;
    }
    a_sweep_removes_at_most_its_limit(subject).await;
}

async fn check(subject: &Subject, (name, events, rest): &Row, swept: bool) {
    let store = &*subject.first;
    let mut last = subject.new_request();
    let call = last.call;
    let mut fence = subject.granted(&last).await;
    for event in *events {
        let written = match *event {
            Event::Wait(time) => {
                subject.clock.advance(time);
                Ok(())
            }
            Event::TakeOver(lease, keep) => {
                last = request(call, last.leg, 1, 2).take_over(true).lease(lease).keep(keep);
                fence = subject.granted(&last).await;
                Ok(())
            }
            Event::NextLeg(lease, keep) => {
                last = request(call, last.leg + 1, 1, 2).lease(lease).keep(keep);
                fence = subject.granted(&last).await;
                Ok(())
            }
            Event::Append | Event::Commit | Event::Release | Event::Renew(_) => {
                write(store, &fence, *event).await
            }
        };
        written.unwrap_or_else(|error| panic!("{name}: {event:?}: {error:?}"));
    }
    subject.clock.advance(*rest - Duration::from_micros(1));
    sweep(store, swept).await;
    // Every row that counts refuses an earlier leg.
    let claim = subject.claimed(&request(call, 0, 1, 9)).await;
    assert_eq!(claim, Claim::Conflict(Conflict::EarlierLeg), "{name}: the row expired early");
    subject.clock.advance(Duration::from_micros(1));
    sweep(store, swept).await;
    assert_eq!(store.load(call).await.unwrap_or_default(), [], "{name}: steps after the end");
    let fresh = subject.claimed(&request(call, 1, 3, 3)).await;
    let Claim::Fresh(new) = fresh else { panic!("{name}: after the end: {fresh:?}") };
    assert!(new.number() > fence.number(), "{name}: a fence was given twice");
    assert_eq!(store.load(call).await.unwrap_or_default(), [], "{name}: steps of the expired row");
}

async fn write(store: &dyn CallStore, fence: &Fence, event: Event) -> Result<(), StoreError> {
    match event {
        Event::Append => store.append(fence, &StepRecord::ended("pay", *b"paid")).await.map(drop),
        Event::Commit => store.commit(fence, b"outcome").await,
        Event::Renew(lease) => store.renew(fence, lease).await,
        _ => store.release(fence).await,
    }
}

async fn sweep(store: &dyn CallStore, swept: bool) {
    if swept {
        let result = store.sweep(MANY).await;
        result.unwrap_or_else(|error| panic!("sweep: {error:?}"));
    }
}

/// A sweep removes what expired, in parts, and nothing else.
async fn a_sweep_removes_at_most_its_limit(subject: &Subject) {
    let store = &*subject.first;
    sweep(store, true).await;
    let mut calls = Vec::new();
    for number in 0..7 {
        let request = subject.new_request().keep(if number < 5 { KEEP } else { KEEP * 2 });
        let fence = subject.granted(&request).await;
        let written = store.append(&fence, &StepRecord::started("pay", 1)).await.map(drop);
        written.and(store.commit(&fence, b"outcome").await).unwrap_or_else(|error| panic!("{error:?}"));
        calls.push(request);
    }
    subject.clock.advance(KEEP);
    for _ in 0..5 {
        let swept = store.sweep(2).await.unwrap_or_else(|error| panic!("sweep: {error:?}"));
        assert!(swept.calls <= 2 && swept.blobs <= 2, "{swept:?} with a limit of 2");
    }
    assert_eq!(
        store.sweep(2).await.unwrap_or_else(|error| panic!("sweep: {error:?}")).calls,
        0,
        "nothing is left"
    );
    for (number, request) in calls.iter().enumerate() {
        let claim = subject.claimed(&request.clone()).await;
        match claim {
            Claim::Fresh(_) => assert!(number < 5, "the sweep removed a row that is kept"),
            Claim::Done(_) => assert!(number >= 5, "the sweep left an expired row that counts"),
            other => panic!("after the sweep: {other:?}"),
        }
    }
}

// Jumps of the store's clock: nothing expires early, no fence is given twice.

const HOUR: Duration = Duration::from_secs(3_600);

/// Checks a clock that goes back, and one that jumps forward.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_clock_jumps(subject: &Subject) {
    back(subject).await;
    forward(subject).await;
}

/// A clock that goes back: leases and rows last longer, never shorter, and fences still rise.
async fn back(subject: &Subject) {
    let store = &*subject.first;
    let (running, done, released) = (subject.new_request(), subject.new_request(), subject.new_request());
    let held = subject.granted(&running).await;
    let fence = subject.granted(&done).await;
    store.commit(&fence, b"outcome").await.unwrap_or_else(|error| panic!("commit: {error:?}"));
    let fence = subject.granted(&released).await;
    store.release(&fence).await.unwrap_or_else(|error| panic!("release: {error:?}"));
    subject.clock.turn_back(HOUR);
    let other = request(running.call, 1, 1, 2).take_over(true);
    match subject.claimed(&other).await {
        Claim::InFlight { retry_after } => {
            assert!(
                retry_after >= LEASE && retry_after <= LEASE + HOUR,
                "the rest of the lease is {retry_after:?}"
            );
        }
        claim => panic!("a running leg after the clock went back: {claim:?}"),
    }
    assert_eq!(subject.claimed(&request(done.call, 1, 1, 2)).await, Claim::Done(b"outcome".to_vec()));
    match subject.claimed(&request(released.call, 1, 1, 2)).await {
        Claim::Fresh(next) => assert!(next.number() > fence.number(), "a fence was given twice"),
        claim => panic!("a released leg after the clock went back: {claim:?}"),
    }
    store.renew(&held, LEASE).await.unwrap_or_else(|error| panic!("renew: {error:?}"));
    store.commit(&held, b"late").await.unwrap_or_else(|error| panic!("commit: {error:?}"));
    store.sweep(10_000).await.unwrap_or_else(|error| panic!("sweep: {error:?}"));
    assert_eq!(subject.claimed(&other).await, Claim::Done(b"late".to_vec()));
    subject.clock.advance(HOUR);
    assert_eq!(subject.claimed(&other).await, Claim::Done(b"late".to_vec()), "after the clock was set right");
}

/// A clock that jumps forward: the runner counts as dead, and still finishes if nobody took the call over.
async fn forward(subject: &Subject) {
    let store = &*subject.first;
    let request_1 = subject.new_request().keep(KEEP + HOUR);
    let fence = subject.granted(&request_1).await;
    subject.clock.advance(HOUR);
    let other = request(request_1.call, 1, 1, 2);
    assert!(matches!(subject.claimed(&other).await, Claim::Unknown(_)), "a lease of 30 s after an hour");
    store.commit(&fence, b"outcome").await.unwrap_or_else(|error| panic!("commit: {error:?}"));
    assert_eq!(subject.claimed(&other).await, Claim::Done(b"outcome".to_vec()));
}
