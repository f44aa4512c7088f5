//! The tables of tasks, beside those of dbos and in the same schema: what requests see, and the messages that wait.
//!
//! dbos records what happened; these tables show it. They also bound the number of tasks and messages, which dbos does not.

mod requests;
mod statements;

pub(crate) use requests::{Creation, Shows, Turn};

use crate::{
    options::DbosOptions,
    runs::{from_hex, hex},
};
use antiphon_store::{StoreError, StoreErrorKind, TaskKey, Written};
use sqlx::{
    AssertSqlSafe, PgPool, Postgres,
    postgres::{PgArguments, PgConnectOptions, PgPoolOptions},
    query::Query,
};
use std::time::Duration;

/// The time limit of one statement, and of the wait for a connection.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The tables of tasks.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    pool: PgPool,
    schema: String,
    /// The channel on which changes are reported: `c` and the key for a changed row, `m` and the key for a message.
    pub(crate) channel: String,
}

impl Tables {
    /// Connects, and creates the tables that are missing. dbos has created the schema.
    pub(crate) async fn connect(url: &str, options: &DbosOptions) -> Result<Self, StoreError> {
        let connect: PgConnectOptions = url.parse().map_err(|error| of_read("connect", error))?;
        let connect = connect
            .application_name("antiphon-dbos")
            .options([("statement_timeout", TIMEOUT.as_millis().to_string())]);
        let pool = PgPoolOptions::new()
            .max_connections(options.connections)
            .acquire_timeout(TIMEOUT)
            .connect_with(connect)
            .await
            .map_err(|error| of_read("connect", error))?;
        let channel = format!("antiphon_tasks_1_{}", options.schema);
        let tables = Self { pool, schema: options.schema.clone(), channel };
        tables.migrate().await.map_err(|error| of_write("connect", error))?;
        Ok(tables)
    }

    async fn migrate(&self) -> Result<(), sqlx::Error> {
        let mut transaction = self.pool.begin().await?;
        self.query(statements::LOCK).bind(&self.schema).execute(&mut *transaction).await?;
        for statement in statements::CREATE_TABLES.split_terminator(';') {
            self.query(statement).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Returns a new name for an instance.
    pub(crate) async fn new_executor(&self) -> Result<String, StoreError> {
        sqlx::query_scalar("SELECT gen_random_uuid()::text")
            .fetch_one(&self.pool)
            .await
            .map_err(|error| of_read("connect", error))
    }

    /// Returns a statement. The name of the schema is checked in the options; all other values are parameters.
    fn query<'q>(&self, statement: &str) -> Query<'q, Postgres, PgArguments> {
        sqlx::query(AssertSqlSafe(statement.replace("{s}", &self.schema)))
    }
}

/// Returns the id of a task's workflow.
pub(crate) fn workflow_id(task: TaskKey) -> String {
    hex(task.as_bytes())
}

/// Returns the task of a workflow.
pub(crate) fn task_of(id: &str) -> Option<TaskKey> {
    from_hex(id)?.try_into().ok().map(TaskKey::from_bytes)
}

/// Reads the key of a task from a column.
fn key_of(bytes: Vec<u8>) -> Result<TaskKey, sqlx::Error> {
    bytes.try_into().map(TaskKey::from_bytes).map_err(|_| sqlx::Error::Decode("the key of a task".into()))
}

/// Returns a number for a column of the database.
fn column(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Returns the error of an operation that only reads.
pub(crate) fn of_read(operation: &'static str, error: sqlx::Error) -> StoreError {
    StoreError::read(kind(&error), operation, error)
}

/// Returns the error of an operation that writes.
pub(crate) fn of_write(operation: &'static str, error: sqlx::Error) -> StoreError {
    let written = match &error {
        // The statement was rolled back, or was not sent.
        sqlx::Error::Database(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => Written::No,
        _ => Written::Unknown,
    };
    StoreError::new(kind(&error), written, operation, error)
}

/// Returns the error of a limit that is reached.
pub(crate) fn full(operation: &'static str, what: &str, limit: usize) -> StoreError {
    StoreError::read(StoreErrorKind::Full, operation, format!("{what}: the maximum is {limit}"))
}

fn kind(error: &sqlx::Error) -> StoreErrorKind {
    match error {
        sqlx::Error::Configuration(_) => StoreErrorKind::Invalid,
        sqlx::Error::Io(_) | sqlx::Error::PoolClosed | sqlx::Error::Tls(_) => StoreErrorKind::Unreachable,
        sqlx::Error::PoolTimedOut => StoreErrorKind::Timeout,
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreErrorKind::Corrupt,
        sqlx::Error::Database(fault) => match fault.code().as_deref().map(|code| code.split_at(2).0) {
            // Connections, resources, the operator, conflicts between transactions.
            Some("08" | "40" | "53" | "57") => StoreErrorKind::Unreachable,
            Some("28" | "3D" | "42") => StoreErrorKind::Invalid,
            _ => StoreErrorKind::Other,
        },
        _ => StoreErrorKind::Other,
    }
}
