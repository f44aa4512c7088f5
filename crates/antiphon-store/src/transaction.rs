//! Transactions: the author's own writes and the record of a step are committed together, or not at all.
//!
//! ```text
//!  begin ─▶ body ─▶ conclude ─┬─ commit: append the record under the fence ─┬─ first ────▶ commit
//!                             │                                             ├─ existing ─▶ roll back
//!                             │                                             └─ lost ─────▶ roll back
//!                             └─ roll back
//! ```
//!
//! The record is appended after the body: the row of the call is locked from then until the commit, so no other run can take
//! the call over in between. While the body runs, the row is free, and the lease can be renewed.

use std::error::Error;

use crate::claim::Fence;
use crate::step::StepRecord;
use crate::store::{CallStore, StoreFuture};

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
