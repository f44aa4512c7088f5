//! The reach of a store.

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
