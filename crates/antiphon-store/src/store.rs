//! The trait of stores: one row per call, claimed under a lease with a fence.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use crate::blob::BlobDigest;
use crate::claim::{Claim, ClaimRequest, Fence};
pub use crate::future::StoreFuture;
use crate::identity::StoreIdentity;
use crate::key::{CallKey, Owner};
pub use crate::reach::StoreReach;
use crate::step::{Appended, StepRecord};
use crate::task::TaskStore;

/// A store of calls: one row per call, its steps, and blobs.
///
/// The order of a runner is: [`claim`](CallStore::claim), run with [`renew`](CallStore::renew) and
/// [`append`](CallStore::append), [`commit`](CallStore::commit), and only then the reply. A runner that gets
/// [`FenceLost`](crate::StoreErrorKind::FenceLost) stops and sends nothing. If the store fails, the leg is refused.
///
/// All moments are on the store's clock; durations count from now. Every operation has a time limit, and may be repeated
/// after [`Written::Unknown`](crate::Written::Unknown). The caller seals outcomes, results of steps and blobs: a store sees
/// no plain text. `antiphon_store::contract` (feature `testing`) checks a store of your own.
pub trait CallStore: Debug + Send + Sync + 'static {
    /// Asks to run a leg. The rules are in [the crate's documentation](crate#rules-of-a-claim).
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError); then the leg does not run.
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim>;

    /// Extends the lease: it ends `lease` from now. A lease that ended is valid again if nobody took the call over.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError), also if the fence is lost.
    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()>;

    /// Stores a step's record, if the row has none with the same step and event.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError), also if the fence is lost.
    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended>;

    /// Stores the outcome of the leg. From now on, a claim of the same leg with the same answers returns it.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError), also if the fence is lost. Then no reply is sent.
    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()>;

    /// Gives the leg back without an outcome: it failed in a way that permits to run it again. If the leg has no record of a
    /// step, it may run again with other answers too.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError), also if the fence is lost.
    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()>;

    /// Returns the records of all steps of the call, in the order in which they were appended. None if the row expired.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>>;

    /// Stores a blob, or extends the time for which it is kept. The blob never changes: its name is its digest. `keep` counts
    /// from now; a later call never shortens that time.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, owner: Owner) -> StoreFuture<'a, BlobDigest>;

    /// Returns a blob whose digest was compared, or nothing if the store has none or its time is over.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError), also if the stored bytes have another digest.
    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>>;

    /// Removes at most `limit` expired rows and at most `limit` expired blobs. Call this function in the background, again
    /// and again. A row expires when neither its lease nor the time for which it is kept is left.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError).
    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept>;

    /// Returns the set of processes that see the rows of this store.
    fn reach(&self) -> StoreReach;

    /// Returns the identity of the store, if it can be compared: a wrapper returns that of the store inside. Without an identity,
    /// a step of the server cannot run in a transaction of this store.
    fn identity(&self) -> Option<StoreIdentity> {
        None
    }

    /// Returns the store of tasks beside the calls, if there is one. A server keeps its tasks there, unless it is given another
    /// store for them. Default: none.
    fn tasks(&self) -> Option<Arc<dyn TaskStore>> {
        None
    }
}

/// The number of rows that [`CallStore::sweep`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// The number of calls.
    pub calls: usize,
    /// The number of blobs.
    pub blobs: usize,
}

impl Swept {
    /// Returns these numbers.
    #[must_use]
    pub const fn new(calls: usize, blobs: usize) -> Self {
        Self { calls, blobs }
    }

    /// Returns true if the limit was reached, so that more rows may have expired.
    #[must_use]
    pub fn is_partial(&self, limit: usize) -> bool {
        self.calls >= limit || self.blobs >= limit
    }
}
