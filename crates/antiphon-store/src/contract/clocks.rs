//! Jumps of the store's clock: nothing expires early, no fence is given twice.

use std::time::Duration;

use super::subject::{KEEP, LEASE, Subject, request};
use crate::claim::Claim;

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
