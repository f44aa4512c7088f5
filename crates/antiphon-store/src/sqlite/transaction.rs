//! Transactions with writes of the program: the body runs on the thread of the file, alone.

use crate::sqlite::{
    SqliteStore,
    rows::Rows,
    schema::{kind, rolled_back},
    worker::{Reply, rollback},
};
use crate::{
    check,
    claim::Fence,
    clock::StoreClock,
    error::{StoreError, StoreErrorKind, Written},
    row::{self, Operation},
    step::StepRecord,
    store::{Conclusion, StoreFuture, Transact, Transacted, TransactionStore},
};
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use std::{
    any::Any,
    error::Error,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

const NAME: &str = "transaction";

impl TransactionStore for SqliteStore {
    /// The transaction itself. It is committed or rolled back after the body.
    type Transaction<'t> = &'t Transaction<'t>;

    fn is_temporary(error: &(dyn Error + 'static)) -> bool {
        let code = error.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
        matches!(
            code,
            Some(
                ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
                    | ErrorCode::OperationInterrupted
                    | ErrorCode::DiskFull
                    | ErrorCode::SystemIoFailure
            )
        )
    }
}

/// The end of a transaction, or the panic of its body.
type Ended<X> = Result<Transacted<X>, Box<dyn Any + Send>>;

impl<F, O> Transact<F, O> for SqliteStore
where
    F: for<'t> FnOnce(&'t Transaction<'t>) -> O + Send + 'static,
    O: Send,
{
    type Output = O;

    fn transact<'a, X, C>(&'a self, fence: &'a Fence, body: F, conclude: C) -> StoreFuture<'a, Transacted<X>>
    where
        F: 'a,
        O: 'a,
        X: Send + 'static,
        C: FnOnce(O) -> Conclusion<X> + Send + 'static,
    {
        let fence = fence.clone();
        let work = move |connection: &mut Connection, clock: &StoreClock, reply: Reply<Ended<X>>| {
            // Its caller went away while it waited.
            if !reply.is_awaited() {
                return;
            }
            let ended = transact(
                connection,
                clock,
                &fence,
                || reply.is_awaited(),
                |transaction| catch_unwind(AssertUnwindSafe(|| conclude(body(transaction)))),
            );
            rollback(connection);
            reply.send(ended);
        };
        Box::pin(async move {
            match self.worker.run_alone(NAME, work).await? {
                Ok(transacted) => Ok(transacted),
                Err(panic) => resume_unwind(panic),
            }
        })
    }
}

/// Runs a body to the end of its transaction. A transaction that is still open after an error is rolled back by the caller.
fn transact<X>(
    connection: &mut Connection,
    clock: &StoreClock,
    fence: &Fence,
    is_awaited: impl FnOnce() -> bool,
    body: impl FnOnce(&Transaction<'_>) -> Result<Conclusion<X>, Box<dyn Any + Send>>,
) -> Result<Ended<X>, StoreError> {
    let fail = |error| rolled_back(NAME, error);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    let conclusion = body(&transaction);
    if transaction.is_autocommit() {
        return ended_by_body();
    }
    let (record, value) = match conclusion {
        Ok(Conclusion::Commit(record, value)) => (record, value),
        Ok(Conclusion::RollBack(value)) => {
            transaction.rollback().map_err(fail)?;
            return Ok(Ok(Transacted::RolledBack(value)));
        }
        Err(panic) => return Ok(Err(panic)),
    };
    check::record(&record)?;
    if let Some(existing) = append(&transaction, clock, fence, &record)? {
        return Ok(Ok(Transacted::Existing(existing)));
    }
    if !is_awaited() {
        return Err(StoreError::read(
            StoreErrorKind::Timeout,
            NAME,
            "nobody waits for the transaction any more",
        ));
    }
    match transaction.commit() {
        Ok(()) => Ok(Ok(Transacted::Committed(value))),
        // A constraint that is checked at the end.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Ok(Ok(Transacted::Refused(Box::new(error))))
        }
        Err(error) => Err(StoreError::new(kind(&error), Written::Unknown, NAME, error)),
    }
}

/// Appends the record of the step, or returns the value of an earlier one.
fn append(
    transaction: &Transaction<'_>,
    clock: &StoreClock,
    fence: &Fence,
    record: &StepRecord,
) -> Result<Option<Vec<u8>>, StoreError> {
    let fail = |error| rolled_back(NAME, error);
    let rows = Rows::begin(transaction, clock).map_err(fail)?;
    match rows.run(fence.call(), Operation::Append(fence, record)).map_err(fail)? {
        row::Reply::FenceLost => Err(StoreError::fence_lost(NAME)),
        row::Reply::Existing => rows.value(fence.call(), record).map(Some).map_err(fail),
        row::Reply::Claim(_) | row::Reply::Written => rows.end().map(|()| None).map_err(fail),
    }
}

fn ended_by_body<T>() -> Result<T, StoreError> {
    let text = "the transaction was ended by its body, or by an error of the disk: the body must not commit or roll back";
    Err(StoreError::new(StoreErrorKind::Invalid, Written::Unknown, NAME, text))
}
