//! The rows of the store, counted beside it.

use crate::{
    clock::ClockSteps,
    error::Result,
    store::{Address, moment, postgres},
};
use antiphon::store::{CallStore, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, StoreClock};
use rusqlite::{Connection, OpenFlags};
use std::{
    fmt,
    path::Path,
    time::{Duration, SystemTime},
};
use tokio_postgres::{NoTls, types::ToSql};

/// The number of rows. Redis has one key for each row; all of its keys count as calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) calls: u64,
    pub(crate) blobs: u64,
    pub(crate) tasks: u64,
}

impl Count {
    /// Returns the larger number of each kind.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            calls: self.calls.max(other.calls),
            blobs: self.blobs.max(other.blobs),
            tasks: self.tasks.max(other.tasks),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows of calls, {} of tasks and {} blobs", self.calls, self.tasks, self.blobs)
    }
}

/// Returns the number of rows.
pub(crate) async fn count(store: &Address) -> Result<Count> {
    match store {
        Address::Memory => Ok(Count::default()),
        Address::Sqlite(file) => {
            let file = file.clone();
            tokio::task::spawn_blocking(move || in_file(&file)).await?
        }
        Address::Postgres(url) => in_postgres(url).await,
        Address::Dbos(folder) => {
            let url = postgres(folder);
            let tasks = endless_tasks(&url, Duration::ZERO).await?;
            Ok(Count { tasks, ..in_postgres(&url).await? })
        }
        Address::Redis(url) => {
            let mut connection = redis::Client::open(&**url)?.get_multiplexed_async_connection().await?;
            let calls = redis::cmd("DBSIZE").query_async(&mut connection).await?;
            Ok(Count { calls, ..Count::default() })
        }
    }
}

/// Returns the number of rows that are left `later` than now, when the store has been swept. Nobody else uses the store any
/// more.
pub(crate) async fn left(store: &Address, clocks: &ClockSteps, later: Duration) -> Result<Count> {
    match store {
        Address::Memory => return Ok(Count::default()),
        Address::Redis(url) => {
            return Ok(Count { calls: endless_keys(url, later).await?, ..Count::default() });
        }
        Address::Sqlite(file) => {
            let clocks = clocks.clone();
            let clock = StoreClock::from_fn(move || moment(clocks.host() + later));
            sweep(SqliteStore::open(file, SqliteOptions::default().clock(clock)).await?).await?;
        }
        Address::Postgres(url) => {
            let clock = StoreClock::from_fn(move || moment(SystemTime::now() + later));
            sweep(PostgresStore::connect(url, PostgresOptions::default().test_clock(clock)).await?).await?;
        }
        Address::Dbos(folder) => {
            let url = postgres(folder);
            let calls = Box::pin(left(&Address::Postgres(url.clone()), clocks, later)).await?;
            return Ok(Count { tasks: endless_tasks(&url, later).await?, ..calls });
        }
    }
    count(store).await
}

/// Returns the number of tasks and workflows of DBOS that are left `later` than now: tasks whose end is not before that, and
/// workflows without a task. Its engine removes the others while servers run.
async fn endless_tasks(url: &str, later: Duration) -> Result<u64> {
    let counts = numbers(url, TASKS, &[&later.as_secs_f64()]).await?;
    let [tasks, workflows] = *counts.as_slice() else { return Err("two numbers were asked for".into()) };
    Ok(tasks + workflows)
}

async fn sweep(store: impl CallStore) -> Result<()> {
    const LIMIT: usize = 1000;
    while store.sweep(LIMIT).await?.is_partial(LIMIT) {}
    if let Some(tasks) = store.tasks() {
        while tasks.sweep(LIMIT).await? == LIMIT {}
    }
    Ok(())
}

fn in_file(file: &Path) -> Result<Count> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let rows = |table: &str| -> Result<u64> {
        let count: i64 =
            connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    };
    Ok(Count {
        calls: rows("antiphon_calls")?,
        blobs: rows("antiphon_blobs")?,
        tasks: rows("antiphon_tasks")?,
    })
}

/// Locks the file against writes of all processes, until the connection is dropped.
pub(crate) fn lock_file(file: &Path) -> Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    Ok(connection)
}

/// The tasks that exist after this number of seconds, and the workflows of DBOS without a task.
const TASKS: &str = "
    SELECT (SELECT count(*) FROM antiphon_tasks.antiphon_tasks_1
            WHERE expires_at IS NULL OR expires_at > now() + make_interval(secs => $1)),
        (SELECT count(*) FROM antiphon_tasks.workflow_status
         WHERE NOT EXISTS (SELECT FROM antiphon_tasks.antiphon_tasks_1 WHERE encode(task, 'hex') = workflow_uuid))";

async fn in_postgres(url: &str) -> Result<Count> {
    let counts = "SELECT (SELECT count(*) FROM antiphon.calls), (SELECT count(*) FROM antiphon.blobs)";
    let counts = numbers(url, counts, &[]).await?;
    let [calls, blobs] = *counts.as_slice() else { return Err("two numbers were asked for".into()) };
    Ok(Count { calls, blobs, tasks: 0 })
}

/// Returns the numbers in the one row of a query.
async fn numbers(url: &str, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<u64>> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    let row = client.query_one(query, parameters).await?;
    connection.abort();
    let column = |index| row.try_get(index).map(|count: i64| count.unsigned_abs());
    Ok((0..row.len()).map(column).collect::<std::result::Result<_, _>>()?)
}

/// Returns the number of keys that Redis will not have removed by then: one minute after their end.
async fn endless_keys(url: &str, later: Duration) -> Result<u64> {
    let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await?;
    let most = i64::try_from((later + Duration::from_secs(60)).as_millis())?;
    let mut endless = 0;
    for key in keys {
        let rest: i64 = redis::cmd("PTTL").arg(key).query_async(&mut connection).await?;
        // -1 is a key without an end, -2 one that is gone.
        endless += u64::from(rest == -1 || rest > most);
    }
    Ok(endless)
}
