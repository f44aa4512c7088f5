//! The place of a request of HTTP/2 among those of all connections.

use crate::{
    identity::account::Account,
    quota::{Quota, QuotaLimits, QuotaPermit},
    serve::http::rejection::Rejection,
};
use antiphon_wire::lock::Lock;
use http::StatusCode;
use std::sync::Arc;

/// The place of a request of HTTP/2 among those of all connections, until it is dropped.
///
/// Its caller is not known before the head was checked: until then, the place counts for nobody, so that the places which are kept
/// for callers with a principal can be reached.
#[derive(Debug)]
pub(crate) struct StreamPlace {
    permit: Lock<QuotaPermit>,
    limits: QuotaLimits,
}

impl StreamPlace {
    /// Returns a place, unless all of them are taken.
    pub(crate) fn take(places: &Arc<Quota>, limits: QuotaLimits) -> Option<Self> {
        let permit = places.take(Account::Owner, &limits).ok()?;
        Some(Self { permit: Lock::new(permit), limits })
    }

    /// Counts the request as one of this account. Returns false if the account, or all anonymous callers, have as many as they may
    /// have.
    pub(crate) fn assign(&self, account: Account) -> bool {
        let mut permit = self.permit.lock();
        let assigned = permit.assign(account, &self.limits);
        if let Err(full) = &assigned {
            let (limit, all, theirs) = (full.limit, full.all, full.theirs);
            tracing::debug!(?limit, all, theirs, "too many requests of HTTP/2: one was refused");
        }
        assigned.is_ok()
    }

    /// Returns the rejection of a request that the account may not have.
    pub(crate) fn refused(unread: bool) -> Rejection {
        let text = "The server has too many requests over HTTP/2 now: try again in a second";
        Rejection { unread, retry_after: Some("1"), ..Rejection::new(StatusCode::SERVICE_UNAVAILABLE, text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: QuotaLimits = QuotaLimits { all: 8, anonymous: 6, each_principal: 2, each_address: 6 };

    /// Places whose callers are not known yet keep nobody from being recognized, unless all places are taken.
    #[test]
    fn a_place_counts_for_its_caller_once_it_is_known() {
        let places = Arc::<Quota>::default();
        let take = || StreamPlace::take(&places, LIMITS);
        let mut held: Vec<StreamPlace> = (0..8).map_while(|_| take()).collect();
        assert!(held.len() == 8 && take().is_none());
        let (nobody, anna, bert) = (Account::Anonymous, Account::Principal(1), Account::Principal(2));
        for (at, account, is_accepted) in [
            (0, anna, true),
            (1, nobody, true),
            (2, nobody, true),
            (3, nobody, true),
            (4, nobody, true),
            (5, nobody, true),
            (6, nobody, true),
            (7, nobody, false),
            (7, anna, true),
            (6, anna, false),
            (6, bert, true),
            (7, nobody, true),
        ] {
            assert_eq!(held[at].assign(account), is_accepted, "{at} {account:?}");
            assert_eq!(places.in_use(), 8);
        }
        held.truncate(3);
        assert_eq!(places.in_use(), 3);
        drop(held);
        assert_eq!(places.in_use(), 0);
    }
}
