//! Many runners at once, through both handles: one of them wins.

use super::subject::{KEEP, LEASE, Subject, outcome_of, request};
use crate::{
    claim::{Claim, Owner},
    error::StoreErrorKind,
    step::{Appended, StepRecord},
};
use futures_util::future::{join, join_all};

const RUNNERS: u8 = 24;

/// Checks that of many claims, takeovers and records at once, one is granted.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_races(subject: &Subject) {
    for _ in 0..4 {
        claims_at_once(subject).await;
        records_at_once(subject).await;
        an_outcome_and_a_takeover_at_once(subject).await;
        blobs_at_once(subject).await;
    }
}

/// Exactly one of many claims of one leg is granted, and then one of many takeovers.
async fn claims_at_once(subject: &Subject) {
    let call = subject.new_request().call;
    for take_over in [false, true] {
        let requests: Vec<_> = (0..RUNNERS)
            .map(|runner| request(call, 1, 1, runner + 50 * u8::from(take_over)).take_over(take_over))
            .collect();
        let claims = join_all(requests.iter().enumerate().map(|(number, request)| {
            let store = if number % 2 == 0 { &subject.first } else { &subject.second };
            store.claim(request)
        }))
        .await;
        let mut granted = 0;
        for claim in claims {
            match claim {
                Ok(Claim::Fresh(_)) => granted += 1,
                Ok(Claim::InFlight { retry_after }) => assert_eq!(retry_after, LEASE),
                other => panic!("claims at once, take_over {take_over}: {other:?}"),
            }
        }
        assert_eq!(granted, 1, "claims at once, take_over {take_over}");
        subject.clock.advance(LEASE);
    }
}

/// The first of many records with one name is stored, and the others get it.
async fn records_at_once(subject: &Subject) {
    let fence = subject.granted(&subject.new_request()).await;
    let records: Vec<_> = (0..RUNNERS).map(|number| StepRecord::ended("pay", [number])).collect();
    let results = join_all(records.iter().enumerate().map(|(number, record)| {
        let store = if number % 2 == 0 { &subject.first } else { &subject.second };
        store.append(&fence, record)
    }))
    .await;
    let stored = subject.first.load(fence.call()).await.unwrap_or_default();
    assert_eq!(stored.len(), 1, "{stored:?}");
    for (record, result) in records.iter().zip(results) {
        let expected = if *record == stored[0] {
            Appended::First
        } else {
            Appended::Existing(stored[0].value().to_vec())
        };
        assert_eq!(outcome_of(result), Ok(expected));
    }
}

/// Either the outcome is stored and returned, or the leg is taken over and the outcome is refused.
async fn an_outcome_and_a_takeover_at_once(subject: &Subject) {
    let first = subject.new_request();
    let fence = subject.granted(&first).await;
    subject.clock.advance(LEASE);
    let other = request(first.call, 1, 1, 2).take_over(true);
    let (committed, claim) =
        join(subject.first.commit(&fence, b"outcome"), subject.second.claim(&other)).await;
    match (outcome_of(committed), outcome_of(claim)) {
        (Ok(()), Ok(Claim::Done(outcome))) => assert_eq!(outcome, b"outcome"),
        (Err(StoreErrorKind::FenceLost), Ok(Claim::Fresh(_))) => {}
        other => panic!("an outcome and a takeover at once: {other:?}"),
    }
}

/// One blob, stored by many at once.
async fn blobs_at_once(subject: &Subject) {
    let body = subject.new_request().call.to_string();
    let owner = Owner::from_bytes([7; 16]);
    let stores = (0..RUNNERS).map(|number| if number % 2 == 0 { &subject.first } else { &subject.second });
    for result in join_all(stores.map(|store| store.put(body.as_bytes(), KEEP, owner))).await {
        let digest = result.unwrap_or_else(|error| panic!("blobs at once: {error:?}"));
        assert_eq!(outcome_of(subject.first.get(digest).await), Ok(Some(body.clone().into_bytes())));
    }
}
