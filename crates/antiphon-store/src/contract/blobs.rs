//! Blobs: immutable, named by their digest, kept for the longest time that was asked for.

use std::time::Duration;

use super::subject::{KEEP, Subject};
use crate::blob::BlobDigest;
use crate::check::MAX_VALUE;
use crate::error::StoreErrorKind;
use crate::key::Owner;

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
