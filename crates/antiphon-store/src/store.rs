//! The trait of stores: one row per call, claimed under a lease with a fence, and transactions with the author's own writes.

pub use crate::{error::StoreFuture, properties::StoreReach};

use crate::{
    changes::ChangeFeed,
    claim::{BlobDigest, CallKey, Claim, ClaimRequest, Fence, Owner},
    properties::StoreIdentity,
    step::{Appended, StepRecord},
    task::TaskStore,
};
use std::{error::Error, fmt::Debug, sync::Arc, time::Duration};

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

    /// Returns the feed by which the instances that share this store report changes to each other, if it has one. Default: none.
    fn change_feed(&self) -> Option<Arc<dyn ChangeFeed>> {
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

// Transactions: the author's own writes and the record of a step are committed together, or not at all.
//
// ```text
//  begin ─▶ body ─▶ conclude ─┬─ commit: append the record under the fence ─┬─ first ────▶ commit
//                             │                                             ├─ existing ─▶ roll back
//                             │                                             └─ lost ─────▶ roll back
//                             └─ roll back
// ```
//
// The record is appended after the body: the row of the call is locked from then until the commit, so no other run can take
// the call over in between. While the body runs, the row is free, and the lease can be renewed.

/// A store in a database in which the program can write, too: in the same transaction as the record of a step.
pub trait TransactionStore: CallStore {
    /// The open transaction, as a body receives it.
    type Transaction<'t>;

    /// Returns true if a body that failed because of `error` may succeed when it runs again: the connection broke, the file was
    /// busy, or the database chose another transaction in a conflict. `error` is one error of a chain of causes.
    fn is_temporary(error: &(dyn Error + 'static)) -> bool;
}

/// A store that runs bodies of the type `F` in transactions. `R` is the type that a body returns: a value, or a future of it.
pub trait Transact<F, R>: TransactionStore {
    /// The value that the body gives in the end.
    type Output;

    /// Runs `body` in a transaction. Then `conclude` decides from its value if the transaction is committed, with the record of
    /// a step, or rolled back. If the future is dropped, or the body panics, the transaction is rolled back, unless it was being
    /// committed.
    ///
    /// # Errors
    ///
    /// [`StoreError`](crate::StoreError), also if the fence is lost. After [`Written::Unknown`](crate::Written::Unknown) the
    /// commit was not confirmed: [`renew`](CallStore::renew) waits for its end, then [`load`](CallStore::load) shows the record,
    /// if it was committed.
    fn transact<'a, X, C>(&'a self, fence: &'a Fence, body: F, conclude: C) -> StoreFuture<'a, Transacted<X>>
    where
        F: 'a,
        R: 'a,
        X: Send + 'static,
        C: FnOnce(Self::Output) -> Conclusion<X> + Send + 'static;
}

/// The decision about a transaction after its body.
///
/// The enum is exhaustive: a store carries out each decision.
#[derive(Debug)]
pub enum Conclusion<X> {
    /// The transaction is committed with this record.
    Commit(StepRecord, X),
    /// The transaction is rolled back.
    RollBack(X),
}

/// The end of a transaction.
///
/// The enum is exhaustive: a runner knows after each end if the step has had its effect.
#[derive(Debug)]
pub enum Transacted<X> {
    /// The writes and the record are committed.
    Committed(X),
    /// The transaction is rolled back, as [`Conclusion::RollBack`] demands.
    RolledBack(X),
    /// The transaction is rolled back, because an earlier record with the same step and event has this value.
    Existing(Vec<u8>),
    /// The database refused to commit the author's writes: the transaction is rolled back.
    Refused(Box<dyn Error + Send + Sync>),
}
