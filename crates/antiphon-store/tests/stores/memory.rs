//! The memory store: the contract, and its limits.

use std::sync::Arc;
use std::time::Duration;

use antiphon_store::contract::{Subject, check_all, check_changes, check_random_orders};
use antiphon_store::{
    CallKey, CallStore, ChangeChannel, Claim, ClaimRequest, Fence, Fingerprint, ManualStoreClock,
    MemoryLimits, MemoryStore, Micros, Owner, Predecessor, RunnerId, StepRecord, StoreClock, StoreErrorKind,
    StoreReach, Written,
};

const START: Micros = Micros::new(1_800_000_000_000_000);
const KEEP: Duration = Duration::from_secs(600);
const LEASE: Duration = Duration::from_secs(30);

fn store(limits: MemoryLimits) -> (Arc<MemoryStore>, ManualStoreClock) {
    let (clock, hand) = StoreClock::manual(START);
    (Arc::new(MemoryStore::new().limits(limits).clock(clock)), hand)
}

fn request(call: u8, owner: u8) -> ClaimRequest {
    let (answers, runner) = (Fingerprint::from_bytes([1; 16]), RunnerId::from_bytes([1; 16]));
    ClaimRequest::new(CallKey::from_bytes([call; 16]), 1, answers, runner, Owner::from_bytes([owner; 16]))
        .lease(LEASE)
        .keep(KEEP)
}

async fn granted(store: &MemoryStore, request: &ClaimRequest) -> Fence {
    match store.claim(request).await {
        Ok(Claim::Fresh(fence)) => fence,
        other => panic!("{other:?}"),
    }
}

fn assert_full<T: std::fmt::Debug>(case: &str, result: Result<T, antiphon_store::StoreError>) {
    let error = result.expect_err(case);
    assert_eq!((error.kind(), error.written()), (StoreErrorKind::Full, Written::No), "{case}");
    assert!(error.is_temporary(), "{case}");
    let text = error.to_string();
    assert!(text.ends_with(": the store is full; nothing was written"), "{case}: {text}");
}

/// A store of someone else's decides by these values.
#[test]
fn a_store_reads_each_part_of_a_claim() {
    let predecessor = Predecessor::new(1, Fingerprint::from_bytes([3; 16]));
    let claim = request(7, 8).after(Some(predecessor)).take_over(true);
    assert_eq!((claim.call(), claim.leg()), (CallKey::from_bytes([7; 16]), 1));
    assert_eq!(claim.fingerprint(), Fingerprint::from_bytes([1; 16]));
    assert_eq!((claim.runner(), claim.owner()), (RunnerId::from_bytes([1; 16]), Owner::from_bytes([8; 16])));
    assert_eq!((claim.lease_time(), claim.keep_time()), (LEASE, KEEP));
    assert_eq!((claim.predecessor(), claim.takes_over()), (Some(predecessor), true));
}

#[tokio::test]
async fn the_contract() {
    let (store, hand) = store(MemoryLimits::default());
    check_all(&Subject::new(store.clone(), store.clone(), hand.clone())).await;
    check_random_orders(&Subject::new(store.clone(), store.clone(), hand.clone()), 1_000..2_000, 80).await;
    assert_eq!(store.reach(), StoreReach::Process);
    // Nothing is left when all time is over.
    hand.advance(Duration::from_secs(100_000));
    while store.sweep(100).await.unwrap().is_partial(100) {}
    assert_eq!((store.rows(), store.bytes(), store.owners()), (0, 0, 0));
}

#[tokio::test]
async fn rows_are_limited_in_all_and_for_each_owner() {
    let (store, hand) = store(MemoryLimits::default().rows(4).rows_per_owner(2));
    for (call, owner) in [(1, 1), (2, 1), (3, 2)] {
        granted(&store, &request(call, owner)).await;
    }
    assert_full("the owner's third call", store.claim(&request(4, 1)).await);
    granted(&store, &request(4, 3)).await;
    assert_full("the fifth call of all", store.claim(&request(5, 4)).await);
    assert_full("a blob is a row", store.put(b"blob", KEEP, Owner::from_bytes([4; 16])).await);
    // No row that counts was removed.
    for call in 1..=4 {
        assert_eq!(store.load(CallKey::from_bytes([call; 16])).await.unwrap(), []);
        let other = ClaimRequest::new(
            CallKey::from_bytes([call; 16]),
            1,
            Fingerprint::from_bytes([1; 16]),
            RunnerId::from_bytes([2; 16]),
            Owner::from_bytes([9; 16]),
        );
        assert_eq!(store.claim(&other).await.unwrap(), Claim::InFlight { retry_after: LEASE });
    }
    // What expired makes room, without a sweep.
    hand.advance(KEEP);
    granted(&store, &request(5, 1)).await;
    granted(&store, &request(6, 1)).await;
    assert_eq!((store.rows(), store.owners()), (2, 1));
}

#[tokio::test]
async fn bytes_are_limited_but_not_between_an_effect_and_its_record() {
    let (store, _hand) = store(MemoryLimits::default().bytes(100_000).bytes_per_owner(10_000));
    let fence = granted(&store, &request(1, 1)).await;
    store.append(&fence, &StepRecord::started("pay", 1)).await.unwrap();
    // The effect has happened: its record and the outcome are stored, although the limit is reached.
    store.append(&fence, &StepRecord::ended("pay", vec![0; 12_000])).await.unwrap();
    assert_full("another step", store.append(&fence, &StepRecord::started("mail", 1)).await);
    assert_full("another call", store.claim(&request(2, 1)).await);
    assert_full("a blob", store.put(b"blob", KEEP, Owner::from_bytes([1; 16])).await);
    store.commit(&fence, &[0; 5_000]).await.unwrap();
    assert!(store.bytes() > 17_000, "{} bytes", store.bytes());
    let next = ClaimRequest::new(
        CallKey::from_bytes([1; 16]),
        2,
        Fingerprint::from_bytes([1; 16]),
        RunnerId::from_bytes([1; 16]),
        Owner::from_bytes([1; 16]),
    );
    assert_full("the next leg", store.claim(&next).await);
    assert_eq!(store.claim(&request(1, 1)).await.unwrap(), Claim::Done(vec![0; 5_000]));
    // Other owners have their own limit, until that of all is reached.
    for owner in 2..=9 {
        let blob = vec![owner; 9_000];
        store.put(&blob, KEEP, Owner::from_bytes([owner; 16])).await.unwrap();
    }
    assert_full("the limit of all", store.put(&[1; 9_000], KEEP, Owner::from_bytes([20; 16])).await);
}

#[tokio::test]
async fn wrong_values_are_refused_before_the_store_is_asked() {
    let (store, _hand) = store(MemoryLimits::default());
    let fence = granted(&store, &request(1, 1)).await;
    let kind = |result: Result<(), antiphon_store::StoreError>| result.map_err(|error| error.kind());
    let day = Duration::from_secs(24 * 60 * 60);
    for request in [
        request(2, 1).lease(Duration::ZERO),
        request(2, 1).lease(day + LEASE),
        request(2, 1).keep(Duration::ZERO),
        request(2, 1).keep(day * 401),
    ] {
        assert_eq!(kind(store.claim(&request).await.map(drop)), Err(StoreErrorKind::Invalid), "{request:?}");
    }
    for record in [
        StepRecord::started("", 1),
        StepRecord::started("a\0b", 1),
        StepRecord::started("x".repeat(257), 1),
        StepRecord::started("pay", 0),
        StepRecord::ended("pay", vec![0; antiphon_store::MAX_VALUE + 1]),
    ] {
        let name = record.step().to_owned();
        assert_eq!(
            kind(store.append(&fence, &record).await.map(drop)),
            Err(StoreErrorKind::Invalid),
            "{name:?}"
        );
    }
    assert_eq!(kind(store.renew(&fence, Duration::ZERO).await), Err(StoreErrorKind::Invalid));
    let long = vec![0; antiphon_store::MAX_VALUE + 1];
    assert_eq!(kind(store.commit(&fence, &long).await), Err(StoreErrorKind::Invalid));
}

#[tokio::test]
async fn the_feed_of_changes() {
    let store = store(MemoryLimits::default()).0;
    let (first, second) = (store.change_feed().unwrap(), store.change_feed().unwrap());
    check_changes(&first, &second).await;
    // A watch that is too far behind fails, and another one works.
    let channel = ChangeChannel::of("slow");
    let mut slow = first.watch(channel).await.unwrap();
    for _ in 0..1025 {
        second.publish(channel, "change").await.unwrap();
    }
    assert_eq!(slow.next().await.map_err(|error| error.kind()), Err(StoreErrorKind::Unreachable));
    let mut again = first.watch(channel).await.unwrap();
    second.publish(channel, "later").await.unwrap();
    assert_eq!(again.next().await.unwrap(), "later");
}
