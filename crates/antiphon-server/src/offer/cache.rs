//! For how long a client may keep a result, and for whom.

use antiphon_wire::{CacheScope, Ttl};
use std::time::Duration;

/// What clients are told about keeping a result. The default: not at all, `ttlMs` 0 and `private`.
///
/// It is a hint: what is listed may change before the time is over.
///
/// > Servers MUST be aware that responses with a `"public"` `cacheScope` may be shared between callers even if the
/// > Result is coming from an authenticated endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheHint {
    pub(crate) ttl: Ttl,
    pub(crate) scope: CacheScope,
}

impl CacheHint {
    /// Anybody may be given the kept result: it is the same for everyone. Whole milliseconds count.
    pub fn public(ttl: Duration) -> Self {
        Self { ttl: in_millis(ttl), scope: CacheScope::Public }
    }

    /// Only the caller who asked may be given the kept result. Whole milliseconds count.
    pub fn private(ttl: Duration) -> Self {
        Self { ttl: in_millis(ttl), scope: CacheScope::Private }
    }
}

/// > Servers **MUST** provide a `ttlMs` value that is `>= 0`.
///
/// Not more than any client can read as a whole number: 2^53 - 1, some 285,000 years.
fn in_millis(time: Duration) -> Ttl {
    const MOST: u64 = (1 << 53) - 1;
    Ttl(u64::try_from(time.as_millis()).unwrap_or(MOST).min(MOST))
}
