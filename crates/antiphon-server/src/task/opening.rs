//! The opening of large contents, a few at a time: a poll of some hundred bytes may open megabytes.

use crate::{
    errors::refusal::Refusal,
    identity::caller::Caller,
    quota::request_budget::{RequestBudget, RequestBytes, UNCOUNTED},
};
use std::{future::pending, panic::resume_unwind, sync::Arc};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

/// The length of a content, in bytes, from which other requests would wait too long for the worker that opens it.
pub(super) const LONG: usize = 64 * 1024;

/// The right to open the content of a task, and to write it into a reply.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    _bytes: RequestBytes,
    _place: Option<OwnedSemaphorePermit>,
}

impl Opening {
    /// Waits for the right to open so many bytes, which count in the budget of the caller's requests meanwhile. A short content waits
    /// for nothing. `largest` is the most that counts: a caller without other requests may open any content.
    pub(super) async fn of(
        places: &Arc<Semaphore>,
        budget: &RequestBudget,
        caller: &Caller<'_>,
        bytes: usize,
        largest: usize,
    ) -> Result<Self, Refusal> {
        if bytes <= UNCOUNTED {
            return Ok(Self::default());
        }
        let (mut reserved, bytes) = (RequestBytes::default(), bytes.min(largest));
        budget.reserve(&mut reserved, bytes, bytes, caller).map_err(|_exhausted| Refusal::Busy)?;
        // The semaphore is never closed.
        let place = Arc::clone(places).acquire_owned().await.ok();
        Ok(Self { _bytes: reserved, _place: place })
    }
}

/// Runs work on so many bytes of content: on a long one beside the workers of the runtime.
pub(super) async fn beside<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes < LONG || Handle::try_current().is_err() {
        return work();
    }
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(fault) => match fault.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends.
            Err(_) => pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        identity::{account::Accounts, caller::Identity},
        options::limits::Limits,
    };
    use futures_util::FutureExt as _;
    use std::pin::pin;

    /// The only worker goes on with other requests while a long content is opened.
    #[tokio::test]
    async fn a_long_content_is_opened_beside_the_workers() {
        for (bytes, is_beside) in [(0, false), (LONG - 1, false), (LONG, true), (8 << 20, true)] {
            let worker = std::thread::current().id();
            let opened_by = beside(bytes, || std::thread::current().id()).await;
            assert_eq!(opened_by != worker, is_beside, "{bytes}");
        }
    }

    #[test]
    fn large_contents_are_opened_a_few_at_a_time() {
        let limits = Limits::default().request_bytes(100_000);
        let budget = RequestBudget::new(&limits, Identity::default(), Accounts::default());
        let (places, caller) = (Arc::new(Semaphore::new(1)), Caller::default());
        let open = |bytes| Opening::of(&places, &budget, &caller, bytes, limits.largest_opening());
        let first = open(40_000).now_or_never().expect("a place is free").expect("there is space");
        let mut second = pin!(open(40_000));
        assert!(second.as_mut().now_or_never().is_none(), "one at a time");
        assert!(
            matches!(open(40_000).now_or_never(), Some(Err(Refusal::Busy))),
            "the bytes of those that wait count"
        );
        assert!(matches!(open(UNCOUNTED).now_or_never(), Some(Ok(_))), "a short one waits for nothing");
        drop(first);
        assert!(matches!(second.as_mut().now_or_never(), Some(Ok(_))));
        assert_eq!(budget.in_use(), 0);
        assert!(matches!(open(10_000_000).now_or_never(), Some(Ok(_))), "any content, if there is no other");
    }
}
