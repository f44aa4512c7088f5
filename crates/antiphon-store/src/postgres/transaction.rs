//! Transactions with writes of the program, each on a connection of its own.

use crate::postgres::{
    PostgresStore,
    pool::{Pool, discard, is_connection, of_statement},
};
use crate::{
    check,
    claim::Fence,
    error::{StoreError, StoreErrorKind, Written},
    step::StepRecord,
    store::{Conclusion, StoreFuture, Transact, Transacted, TransactionStore},
};
use deadpool_postgres::Object;
use std::{error::Error, fmt, future::Future, ops::Deref, sync::Arc};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::{Client, Row, error::SqlState, types::ToSql};

const NAME: &str = "transaction";

/// An open transaction of the store. It is committed or rolled back when the body that received it has ended.
///
/// It dereferences to [`tokio_postgres::Client`], whose methods run statements in the transaction; `&*tx` is the client, for
/// functions that take one. The body must not commit or roll back itself. For a part that may fail alone, use `SAVEPOINT`.
///
/// The whole transaction has the store's [`timeout`](crate::PostgresOptions::timeout).
pub struct PostgresTransaction(Arc<Open>);

impl Deref for PostgresTransaction {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.0.client()
    }
}

impl fmt::Debug for PostgresTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresTransaction").finish_non_exhaustive()
    }
}

impl TransactionStore for PostgresStore {
    type Transaction<'t> = PostgresTransaction;

    fn is_temporary(error: &(dyn Error + 'static)) -> bool {
        error.downcast_ref().is_some_and(|error: &tokio_postgres::Error| {
            is_connection(error)
                || error.code().is_some_and(|code| {
                    // A conflict with another transaction, a missing resource, a lock, the disk; a time limit, a standby.
                    matches!(&code.code()[..2], "40" | "53" | "55" | "58")
                        || matches!(code.code(), "57014" | "25006")
                })
        })
    }
}

impl<F, R> Transact<F, R> for PostgresStore
where
    F: FnOnce(PostgresTransaction) -> R + Send,
    R: Future + Send,
    R::Output: Send,
{
    type Output = R::Output;

    fn transact<'a, X, C>(&'a self, fence: &'a Fence, body: F, conclude: C) -> StoreFuture<'a, Transacted<X>>
    where
        F: 'a,
        R: 'a,
        X: Send + 'static,
        C: FnOnce(R::Output) -> Conclusion<X> + Send + 'static,
    {
        Box::pin(async move {
            let deadline = Instant::now() + self.pool.timeout();
            let open = Arc::new(Open::begin(&self.pool, &self.statements.begin, deadline).await?);
            let output = timeout_at(deadline, body(PostgresTransaction(Arc::clone(&open)))).await;
            let output =
                output.map_err(|elapsed| StoreError::read(StoreErrorKind::Timeout, NAME, elapsed))?;
            let Some(open) = Arc::into_inner(open) else {
                let text = "the body of a transaction kept it: a body uses its transaction, and drops it";
                return Err(StoreError::read(StoreErrorKind::Invalid, NAME, text));
            };
            match conclude(output) {
                Conclusion::RollBack(value) => {
                    open.roll_back(deadline).await;
                    Ok(Transacted::RolledBack(value))
                }
                Conclusion::Commit(record, value) => {
                    check::record(&record)?;
                    self.commit_with(open, fence, &record, value, deadline).await
                }
            }
        })
    }
}

impl PostgresStore {
    /// Appends the record and commits. The row of the call is locked in between.
    async fn commit_with<X>(
        &self,
        open: Open,
        fence: &Fence,
        record: &StepRecord,
        value: X,
        deadline: Instant,
    ) -> Result<Transacted<X>, StoreError> {
        let values: [&(dyn ToSql + Sync); 6] = [
            &self.now(),
            &fence.call_bytes(),
            &fence.number(),
            &record.step(),
            &i64::from(record.event().to_number()),
            &record.value(),
        ];
        let row = match open.query_one(&self.statements.append_in_transaction, &values, deadline).await {
            Ok(row) => row,
            // A statement of the body failed, and the body went on.
            Err(Failed::Statement(error)) if error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION) => {
                open.roll_back(deadline).await;
                return Ok(Transacted::Refused(Box::new(error)));
            }
            Err(failed) => return Err(failed.into_error(Written::No)),
        };
        let columns = read(&row).map_err(|error| StoreError::read(StoreErrorKind::Corrupt, NAME, error))?;
        match columns {
            (false, ..) => {
                let text = "the transaction was ended by its body: the body must not commit or roll back";
                Err(StoreError::new(StoreErrorKind::Invalid, Written::Unknown, NAME, text))
            }
            (true, None, _) => {
                open.roll_back(deadline).await;
                Err(StoreError::fence_lost(NAME))
            }
            (true, Some(false), existing) => {
                open.roll_back(deadline).await;
                Ok(Transacted::Existing(existing.unwrap_or_default()))
            }
            (true, Some(true), _) => match open.execute("COMMIT", deadline).await {
                Ok(()) => {
                    open.give_back();
                    Ok(Transacted::Committed(value))
                }
                // A constraint that is checked at the end, or an exception of a trigger.
                Err(Failed::Statement(error)) if is_refusal(&error) => {
                    open.give_back();
                    Ok(Transacted::Refused(Box::new(error)))
                }
                Err(failed) => Err(failed.into_error(Written::Unknown)),
            },
        }
    }
}

/// The result of the record: true if the transaction is the one that was begun, then the columns of `append`.
type Columns = (bool, Option<bool>, Option<Vec<u8>>);

fn read(row: &Row) -> Result<Columns, tokio_postgres::Error> {
    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
}

/// Returns true if the database refused the writes themselves, so that they would be refused again.
fn is_refusal(error: &tokio_postgres::Error) -> bool {
    error.code().is_some() && !<PostgresStore as TransactionStore>::is_temporary(error)
}

/// A connection with an open transaction. Dropping it closes the connection, by which the database rolls back.
struct Open(Option<Object>);

/// The failure of a statement.
enum Failed {
    Statement(tokio_postgres::Error),
    Timeout,
}

impl Failed {
    fn into_error(self, if_lost: Written) -> StoreError {
        match self {
            Self::Statement(error) => of_statement(NAME, if_lost, error),
            Self::Timeout => {
                StoreError::new(StoreErrorKind::Timeout, if_lost, NAME, "the time of the transaction is over")
            }
        }
    }
}

impl Open {
    /// Begins a transaction, on another connection if the first one broke.
    async fn begin(pool: &Pool, begin: &str, deadline: Instant) -> Result<Self, StoreError> {
        let mut is_repeated = false;
        loop {
            let open = Self(Some(pool.get(NAME, deadline).await?));
            match open.execute(begin, deadline).await {
                Ok(()) => return Ok(open),
                Err(Failed::Statement(error)) if is_connection(&error) && !is_repeated => is_repeated = true,
                Err(failed) => return Err(failed.into_error(Written::No)),
            }
        }
    }

    fn client(&self) -> &Client {
        // Only `give_back` and `drop` take the connection, and both end this value.
        self.0.as_ref().expect("an open transaction has its connection")
    }

    async fn execute(&self, statement: &str, deadline: Instant) -> Result<(), Failed> {
        match timeout_at(deadline, self.client().batch_execute(statement)).await {
            Ok(result) => result.map_err(Failed::Statement),
            Err(_elapsed) => Err(Failed::Timeout),
        }
    }

    async fn query_one(
        &self,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
        deadline: Instant,
    ) -> Result<Row, Failed> {
        let query = async {
            let statement = match &self.0 {
                Some(connection) => connection.prepare_cached(statement).await?,
                None => self.client().prepare(statement).await?,
            };
            self.client().query_one(&statement, values).await
        };
        match timeout_at(deadline, query).await {
            Ok(result) => result.map_err(Failed::Statement),
            Err(_elapsed) => Err(Failed::Timeout),
        }
    }

    /// Rolls back. If that fails, the connection is closed, which rolls back too.
    async fn roll_back(self, deadline: Instant) {
        if self.execute("ROLLBACK", deadline).await.is_ok() {
            self.give_back();
        }
    }

    /// Returns the connection to the pool, after the end of the transaction.
    fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            discard(connection);
        }
    }
}
