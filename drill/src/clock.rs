//! The host's clock, which all processes of the drill share.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time in microseconds since 1970.
pub(crate) fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
