//! Cache hints: how long a client may cache a result, and for whom.

use antiphon_wire::{CacheScope, Ttl};
use std::time::Duration;

/// The cache lifetime and scope of a result. Default: no caching, `ttlMs` 0 and `private`.
///
/// It is only a hint: a list may change before that time is over.
///
/// > Servers MUST be aware that responses with a `"public"` `cacheScope` may be shared between callers even if the
/// > Result is coming from an authenticated endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheHint {
    pub(crate) ttl: Ttl,
    pub(crate) scope: CacheScope,
}

impl CacheHint {
    /// Allows caching for everyone: the result is the same for all callers. Fractions of a millisecond are dropped.
    pub fn public(ttl: Duration) -> Self {
        Self { ttl: in_millis(ttl), scope: CacheScope::Public }
    }

    /// Allows caching for the caller only. Fractions of a millisecond are dropped.
    pub fn private(ttl: Duration) -> Self {
        Self { ttl: in_millis(ttl), scope: CacheScope::Private }
    }
}

/// > Servers **MUST** provide a `ttlMs` value that is `>= 0`.
///
/// The maximum is the largest integer that every client can read: 2^53 - 1, some 285,000 years.
fn in_millis(time: Duration) -> Ttl {
    const MOST: u64 = (1 << 53) - 1;
    Ttl(u64::try_from(time.as_millis()).unwrap_or(MOST).min(MOST))
}
