//! The store in PostgreSQL, for all instances: each operation is one statement.

mod changes;
mod pool;
mod statements;
mod transaction;

pub use statements::PostgresOptions;
pub use transaction::PostgresTransaction;

use crate::{
    changes::ChangeFeed,
    check,
    claim::{BlobDigest, CallKey, Claim, ClaimRequest, Conflict, Fence, Owner, Unknown},
    clock::{StoreClock, micros},
    error::{StoreError, StoreErrorKind, Written},
    properties::StoreIdentity,
    step::{Appended, StepAttempt, StepEvent, StepRecord},
    store::{CallStore, StoreFuture, StoreReach, Swept},
};
use changes::PostgresChanges;
use pool::{Pool, Rows};
use statements::{Names, Statements};
use std::{sync::Arc, time::Duration};
use tokio_postgres::{Row, types::ToSql};

/// A store in PostgreSQL 13 or later, for all instances.
///
/// Each operation is one statement, and so one transaction. The clock is the database's. The tables and functions have a schema of
/// their own, or a prefix; a role without special rights creates them. A write is as durable as `synchronous_commit` of the
/// database says.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pool: Pool,
    statements: Arc<Statements>,
    /// The schema and the prefix of the tables.
    names: Arc<str>,
    test_clock: Option<StoreClock>,
    identity: StoreIdentity,
}

impl PostgresStore {
    /// Connects to a database, and creates the tables if they are missing. `url` is a connection string as libpq has it, for
    /// example `postgresql://user:password@host/database?sslmode=require`. With `sslmode=require` the certificate of the database
    /// is verified. The default, `prefer`, falls back to a connection without TLS.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Invalid`] for a wrong URL or option, a wrong password, or missing rights; [`StoreErrorKind::Version`]
    /// if the tables have another version; other kinds if the database is not reachable.
    pub async fn connect(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let names = Names::new(&options)?;
        let pool = Pool::connect(url, &names, &options).await?;
        let statements = Arc::new(Statements::new(&names, options.timeout));
        let names = names.migrations().into();
        let (test_clock, identity) = (options.test_clock, StoreIdentity::new());
        Ok(Self { pool, statements, names, test_clock, identity })
    }

    /// Returns the time of a test, or null for the time of the database.
    fn now(&self) -> Option<i64> {
        self.test_clock.as_ref().map(|clock| clock.now().get())
    }

    /// Runs a function that returns true if the fence is the row's.
    async fn write(
        &self,
        name: &'static str,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<(), StoreError> {
        let rows = self.pool.query(name, Written::Unknown, statement, values).await?;
        if column(name, &rows, 0)? { Ok(()) } else { Err(StoreError::fence_lost(name)) }
    }

    async fn claim_now(&self, request: &ClaimRequest) -> Result<Claim, StoreError> {
        check::claim(request)?;
        let after_leg = request.after.map(|after| i64::from(after.leg));
        let after_fingerprint = request.after.as_ref().map(|after| &after.fingerprint.as_bytes()[..]);
        let values: [&(dyn ToSql + Sync); 10] = [
            &self.now(),
            &&request.call.as_bytes()[..],
            &i64::from(request.leg),
            &&request.fingerprint.as_bytes()[..],
            &&request.runner.as_bytes()[..],
            &request.take_over,
            &after_leg,
            &after_fingerprint,
            &micros(request.lease),
            &micros(request.keep),
        ];
        let rows = self.pool.query("claim", Written::Unknown, &self.statements.claim, &values).await?;
        let row = rows.rows.first().ok_or_else(|| wrong("claim", "the function returned no row"))?;
        claim(request.call, row)
    }

    async fn append_now(&self, fence: &Fence, record: &StepRecord) -> Result<Appended, StoreError> {
        check::record(record)?;
        let values: [&(dyn ToSql + Sync); 6] = [
            &self.now(),
            &fence.call_bytes(),
            &fence.number(),
            &record.step(),
            &i64::from(record.event().to_number()),
            &record.value(),
        ];
        let rows = self.pool.query("append", Written::Unknown, &self.statements.append, &values).await?;
        match (column::<Option<bool>>("append", &rows, 0)?, column::<Option<Vec<u8>>>("append", &rows, 1)?) {
            (None, _) => Err(StoreError::fence_lost("append")),
            // This runner's own record, of the attempt whose connection broke.
            (Some(false), Some(existing)) if rows.repeated && existing == record.value() => {
                Ok(Appended::First)
            }
            (Some(false), Some(existing)) => Ok(Appended::Existing(existing)),
            (Some(_), _) => Ok(Appended::First),
        }
    }

    async fn load_now(&self, call: CallKey) -> Result<Vec<StepRecord>, StoreError> {
        let values: [&(dyn ToSql + Sync); 2] = [&self.now(), &&call.as_bytes()[..]];
        let rows = self.pool.query("load", Written::No, &self.statements.load, &values).await?;
        let record = |row: &Row| {
            let event = StepEvent::from_number(number(row.try_get(1)?));
            Ok(StepRecord::from_parts(row.try_get::<_, String>(0)?, event, row.try_get::<_, Vec<u8>>(2)?))
        };
        let records: Result<_, tokio_postgres::Error> = rows.rows.iter().map(record).collect();
        records.map_err(|error| StoreError::read(StoreErrorKind::Corrupt, "load", error))
    }

    async fn sweep_now(&self, limit: usize) -> Result<Swept, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let values: [&(dyn ToSql + Sync); 2] = [&self.now(), &limit];
        let mut removed = [0_usize; 2];
        for (count, statement) in
            removed.iter_mut().zip([&self.statements.sweep_calls, &self.statements.sweep_blobs])
        {
            let rows = self.pool.query("sweep", Written::Unknown, statement, &values).await?;
            *count = usize::try_from(column::<i64>("sweep", &rows, 0)?).unwrap_or(0);
        }
        let [calls, blobs] = removed;
        Ok(Swept { calls, blobs })
    }
}

/// Returns a column of the only row.
fn column<'a, T: tokio_postgres::types::FromSql<'a>>(
    name: &'static str,
    rows: &'a Rows,
    index: usize,
) -> Result<T, StoreError> {
    let row = rows.rows.first().ok_or_else(|| wrong(name, "the function returned no row"))?;
    row.try_get(index).map_err(|error| wrong(name, error))
}

fn wrong(name: &'static str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, Written::Unknown, name, error)
}

impl CallStore for PostgresStore {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        Box::pin(self.claim_now(request))
    }

    fn renew<'a>(&'a self, fence: &'a Fence, lease: Duration) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            check::lease("renew", lease)?;
            let values: [&(dyn ToSql + Sync); 4] =
                [&self.now(), &fence.call_bytes(), &fence.number(), &micros(lease)];
            self.write("renew", &self.statements.renew, &values).await
        })
    }

    fn append<'a>(&'a self, fence: &'a Fence, record: &'a StepRecord) -> StoreFuture<'a, Appended> {
        Box::pin(self.append_now(fence, record))
    }

    fn commit<'a>(&'a self, fence: &'a Fence, outcome: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            check::value("commit", outcome)?;
            let values: [&(dyn ToSql + Sync); 4] =
                [&self.now(), &fence.call_bytes(), &fence.number(), &outcome];
            self.write("commit", &self.statements.commit, &values).await
        })
    }

    fn release<'a>(&'a self, fence: &'a Fence) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let values: [&(dyn ToSql + Sync); 3] = [&self.now(), &fence.call_bytes(), &fence.number()];
            self.write("release", &self.statements.release, &values).await
        })
    }

    fn load(&self, call: CallKey) -> StoreFuture<'_, Vec<StepRecord>> {
        Box::pin(self.load_now(call))
    }

    fn put<'a>(&'a self, blob: &'a [u8], keep: Duration, _owner: Owner) -> StoreFuture<'a, BlobDigest> {
        Box::pin(async move {
            check::value("put", blob)?;
            check::keep("put", keep)?;
            let digest = BlobDigest::of(blob);
            let values: [&(dyn ToSql + Sync); 4] =
                [&self.now(), &&digest.as_bytes()[..], &blob, &micros(keep)];
            self.pool.query("put", Written::Unknown, &self.statements.put, &values).await?;
            Ok(digest)
        })
    }

    fn get(&self, digest: BlobDigest) -> StoreFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move {
            let values: [&(dyn ToSql + Sync); 2] = [&self.now(), &&digest.as_bytes()[..]];
            let rows = self.pool.query("get", Written::No, &self.statements.get, &values).await?;
            if rows.rows.is_empty() {
                return Ok(None);
            }
            digest.verify(column("get", &rows, 0)?).map(Some)
        })
    }

    fn sweep(&self, limit: usize) -> StoreFuture<'_, Swept> {
        Box::pin(self.sweep_now(limit))
    }

    fn reach(&self) -> StoreReach {
        StoreReach::Fleet
    }

    /// Reaches all instances, by `NOTIFY`. A watch has a connection of its own.
    fn change_feed(&self) -> Option<Arc<dyn ChangeFeed>> {
        Some(Arc::new(PostgresChanges { pool: self.pool.clone(), names: Arc::clone(&self.names) }))
    }

    fn identity(&self) -> Option<StoreIdentity> {
        Some(self.identity)
    }
}

/// Returns the claim of a row.
fn claim(call: CallKey, row: &Row) -> Result<Claim, StoreError> {
    read(call, row)
        .map_err(|error| StoreError::new(StoreErrorKind::Corrupt, Written::Unknown, "claim", error))?
        .ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Corrupt,
                Written::Unknown,
                "claim",
                "the function returned an unknown result",
            )
        })
}

fn read(call: CallKey, row: &Row) -> Result<Option<Claim>, tokio_postgres::Error> {
    Ok(Some(match row.try_get::<_, i16>("result")? {
        0 => Claim::Fresh(Fence::new(call, row.try_get("fence")?)),
        1 => {
            let micros: i64 = row.try_get("rest")?;
            Claim::InFlight { retry_after: Duration::from_micros(u64::try_from(micros).unwrap_or(0)) }
        }
        2 => Claim::Done(row.try_get("outcome")?),
        3 => Claim::Conflict(Conflict::EarlierLeg),
        4 => Claim::Conflict(Conflict::OtherAnswers),
        5 => Claim::Conflict(Conflict::OtherPredecessor),
        6 => {
            let (step, attempt) =
                (row.try_get::<_, Option<String>>("step")?, row.try_get::<_, Option<i64>>("attempt")?);
            let step =
                step.zip(attempt).map(|(step, attempt)| StepAttempt { step, attempt: number(attempt) });
            Claim::Unknown(Unknown { leg: number(row.try_get("unknown_leg")?), step })
        }
        _ => return Ok(None),
    }))
}

/// Returns a number of a `bigint` column, which this program wrote as a `u32`.
fn number(column: i64) -> u32 {
    u32::try_from(column).unwrap_or(u32::MAX)
}
