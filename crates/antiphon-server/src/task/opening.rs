//! The opening of large contents, a few at a time: a poll of some hundred bytes may open megabytes.

use crate::{
    errors::refusal::Refusal,
    identity::caller::Caller,
    quota::request_budget::{RequestBudget, RequestBytes, UNCOUNTED},
};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        identity::{account::Accounts, caller::Identity},
        options::limits::Limits,
    };
    use futures_util::FutureExt as _;
    use std::pin::pin;

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
