//! Randomness for waits.

use std::hash::{BuildHasher as _, RandomState};

/// Returns enough randomness to distinguish two clients; the standard library seeds each state differently.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0)
}
