//! The store under test: two handles to the same rows, and the hand of their clock.

use crate::{
    blob::BlobDigest,
    check::MAX_VALUE,
    claim::{CallKey, Claim, ClaimRequest, Fence, Fingerprint, Owner, RunnerId},
    clock::ManualStoreClock,
    error::StoreErrorKind,
    store::CallStore,
};
use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The lease of the checks.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// The time for which the checks keep a row.
pub(super) const KEEP: Duration = Duration::from_secs(600);

/// A store under test.
#[derive(Debug)]
pub struct Subject {
    pub(super) first: Arc<dyn CallStore>,
    pub(super) second: Arc<dyn CallStore>,
    pub(super) clock: ManualStoreClock,
    /// Distinguishes the calls of this subject from those of earlier ones in the same rows.
    nonce: u64,
    calls: AtomicU64,
}

impl Subject {
    /// Returns a subject of two handles to the same rows, and the hand of the clock that both use. Two handles are two
    /// instances of a server: two connections, two pools.
    #[must_use]
    pub fn new(first: Arc<dyn CallStore>, second: Arc<dyn CallStore>, clock: ManualStoreClock) -> Self {
        Self {
            first,
            second,
            clock,
            nonce: RandomState::new().build_hasher().finish(),
            calls: AtomicU64::new(0),
        }
    }

    /// Returns the number of a call that has no row.
    fn next_call(&self) -> CallKey {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        let digest = BlobDigest::of(&[self.nonce.to_be_bytes(), number.to_be_bytes()].concat());
        let (half, _) = digest.as_bytes().split_at(16);
        CallKey::from_bytes(half.try_into().unwrap_or([0; 16]))
    }

    /// Returns the claim of leg 1 of a new call by runner 1.
    pub(super) fn new_request(&self) -> ClaimRequest {
        request(self.next_call(), 1, 1, 1)
    }

    /// Claims through the first handle; the claim must be granted.
    pub(super) async fn granted(&self, request: &ClaimRequest) -> Fence {
        match self.first.claim(request).await {
            Ok(Claim::Fresh(fence)) => fence,
            other => panic!("{request:?} was not granted: {other:?}"),
        }
    }

    /// Claims through the second handle.
    pub(super) async fn claimed(&self, request: &ClaimRequest) -> Claim {
        self.second.claim(request).await.unwrap_or_else(|error| panic!("{request:?} failed: {error:?}"))
    }
}

/// Returns the claim of a leg with answers and a runner that have numbers.
pub(super) fn request(call: CallKey, leg: u32, answers: u8, runner: u8) -> ClaimRequest {
    let owner = Owner::from_bytes([7; 16]);
    ClaimRequest::new(call, leg, self::answers(answers), RunnerId::from_bytes([runner; 16]), owner)
        .lease(LEASE)
        .keep(KEEP)
}

/// Returns the fingerprint of answers that have a number.
pub(super) fn answers(number: u8) -> Fingerprint {
    Fingerprint::from_bytes([number; 16])
}

/// The result of an operation without what differs between stores: numbers of fences, texts of errors.
pub(super) fn outcome_of<T>(result: Result<T, crate::error::StoreError>) -> Result<T, StoreErrorKind> {
    result.map_err(|error| error.kind())
}

// Blobs: immutable, named by their digest, kept for the longest time that was asked for.

const OWNER: Owner = Owner::from_bytes([7; 16]);

/// Checks that blobs come back unchanged, are kept long enough, and expire.
///
/// # Panics
///
/// If the store breaks a rule. The text names the case.
pub async fn check_blobs(subject: &Subject) {
    let (first, second) = (&*subject.first, &*subject.second);
    let unique = subject.new_request().call;
    let all_bytes: Vec<u8> = (0..=255).collect();
    let bodies =
        [unique.as_bytes().to_vec(), [unique.as_bytes(), &all_bytes[..]].concat(), vec![b'x'; 300_000]];
    for body in &bodies {
        let digest = first.put(body, KEEP, OWNER).await.unwrap_or_else(|error| panic!("put: {error:?}"));
        assert_eq!(digest, BlobDigest::of(body));
        let again = second.put(body, Duration::from_secs(1), OWNER).await;
        assert_eq!(again.unwrap_or_else(|error| panic!("put again: {error:?}")), digest);
        subject.clock.advance(KEEP - Duration::from_micros(1));
        second.sweep(10_000).await.unwrap_or_else(|error| panic!("sweep: {error:?}"));
        assert_eq!(get(subject, digest).await.as_ref(), Some(body), "a blob within its time");
        // A second time for which it is kept begins.
        second.put(body, KEEP, OWNER).await.unwrap_or_else(|error| panic!("put once more: {error:?}"));
        subject.clock.advance(KEEP - Duration::from_micros(1));
        assert_eq!(get(subject, digest).await.as_ref(), Some(body), "a blob within its second time");
        subject.clock.advance(Duration::from_micros(1));
        assert_eq!(get(subject, digest).await, None, "a blob after its time");
        second.sweep(10_000).await.unwrap_or_else(|error| panic!("sweep: {error:?}"));
        assert_eq!(get(subject, digest).await, None, "a blob after the sweep");
        // A blob may come back.
        first.put(body, KEEP, OWNER).await.unwrap_or_else(|error| panic!("put after its end: {error:?}"));
        assert_eq!(get(subject, digest).await.as_ref(), Some(body), "a blob that came back");
    }
    assert_eq!(get(subject, BlobDigest::of(b"never stored")).await, None);
    let too_large = first.put(&vec![0; MAX_VALUE + 1], KEEP, OWNER).await;
    assert_eq!(too_large.map_err(|error| error.kind()), Err(StoreErrorKind::Invalid));
}

async fn get(subject: &Subject, digest: BlobDigest) -> Option<Vec<u8>> {
    let first = subject.first.get(digest).await.unwrap_or_else(|error| panic!("get: {error:?}"));
    let second = subject.second.get(digest).await.unwrap_or_else(|error| panic!("get: {error:?}"));
    assert_eq!(first, second, "two handles");
    first
}
