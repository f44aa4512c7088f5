//! The identity and the reach of a store: the identity compares a store with another value that may be the same store.

use std::sync::atomic::{AtomicU64, Ordering};

/// The identity of one opened store within this process. The clones of a store have the same one.
///
/// A store behind a wrapper of your own keeps its identity if the wrapper returns it from
/// [`CallStore::identity`](crate::CallStore::identity).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreIdentity(u64);

impl StoreIdentity {
    /// Returns an identity that no other store of this process has.
    #[must_use]
    #[allow(
        clippy::new_without_default,
        reason = "two values of a default are equal; two of these never are"
    )]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The set of processes that see the rows of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StoreReach {
    /// Only this process. If several instances share sealing keys, each would run the same leg.
    Process,
    /// The processes of one host.
    Host,
    /// All instances.
    Fleet,
}
