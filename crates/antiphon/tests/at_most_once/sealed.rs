//! Values in a store: sealed, each for its own row.

use super::*;
use antiphon::store::{
    StoreFuture,
    calls::{
        Appended, BlobDigest, CallKey, Claim, ClaimRequest, Fence, Owner, StepRecord, StoreReach, Swept,
    },
};
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// A store that shows every written value, and may return one outcome for all claims.
#[derive(Debug)]
struct Glass {
    inner: Arc<dyn CallStore>,
    written: Mutex<Vec<Vec<u8>>>,
    outcome: Mutex<Option<Vec<u8>>>,
}

impl Glass {
    fn new() -> Arc<Self> {
        Arc::new(Self { inner: store().0, written: Mutex::default(), outcome: Mutex::default() })
    }

    fn note(&self, value: &[u8]) {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).push(value.to_vec());
    }
}

impl CallStore for Glass {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        let forged = self.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match forged {
            Some(outcome) => Box::pin(async move { Ok(Claim::Done(outcome)) }),
            None => self.inner.claim(request),
        }
    }

    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        self.inner.renew(fence, lease)
    }

    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        self.note(record.value());
        self.inner.append(fence, record)
    }

    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        self.note(outcome);
        self.inner.commit(fence, outcome)
    }

    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        self.inner.release(fence)
    }

    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        self.inner.load(call)
    }

    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest> {
        self.note(blob);
        self.inner.put(blob, keep, owner)
    }

    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        self.inner.get(digest)
    }

    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        self.inner.sweep(limit)
    }

    fn reach(&self) -> StoreReach {
        self.inner.reach()
    }
}

#[tokio::test]
async fn a_store_has_no_plain_text() {
    let glass = Glass::new();
    let store: Arc<dyn CallStore> = Arc::clone(&glass) as _;
    let server = write_ahead(shop(&Effects::default()), &store);
    let call = at_first_question(&server).await;
    assert_eq!(result_text(&deliver(&call, &server, pick("a-very-secret-mug")).await), "a-very-secret-mug");
    let written = glass.written.lock().unwrap().clone();
    // Two replies of claimed legs, and the start and the end of two steps.
    assert_eq!(written.len(), 6);
    for value in written {
        let text = String::from_utf8_lossy(&value);
        for plain in ["secret", "mug", "content", "Which"] {
            assert!(!text.contains(plain), "{text}");
        }
    }
}

#[tokio::test]
async fn a_value_of_another_row_does_not_open() {
    let glass = Glass::new();
    let store: Arc<dyn CallStore> = Arc::clone(&glass) as _;
    let effects = Effects::default();
    let server = single_use(shop(&effects), &store);
    let one = at_first_question(&server).await;
    let two = at_first_question(&server).await;
    let reply = deliver(&one, &server, pick("mug")).await;
    assert_eq!(result_text(&reply), "mug");
    let outcome = glass.written.lock().unwrap().last().cloned().unwrap();
    // Whoever can write to the store puts this reply into the rows of other calls, and of other answers.
    *glass.outcome.lock().unwrap() = Some(outcome);
    assert_eq!(deliver(&one, &server, pick("mug")).await, reply, "its own row");
    for (call, answers) in [(&two, pick("mug")), (&one, pick("cup"))] {
        assert_eq!(reason(&deliver(call, &server, answers).await), "used");
    }
    assert_eq!(effects.runs("ship"), 1);
}
