//! The rows of calls within one transaction, and their statements: each operation runs the state machine of the crate.

use crate::{
    claim::{BlobDigest, CallKey, Fingerprint, RunnerId},
    clock::{Micros, StoreClock},
    row::{Change, Mark, Operation, Phase, Reply, Row, transition},
    step::{StepEvent, StepRecord},
    store::Swept,
};
use rusqlite::{Connection, OptionalExtension as _, Result, params};
use std::{cell::Cell, time::Duration};

/// The rows, at one moment. A transaction is open.
pub(super) struct Rows<'c> {
    connection: &'c Connection,
    now: Micros,
    wrote: Cell<bool>,
}

impl<'c> Rows<'c> {
    /// Returns the rows at the time of the clock, and never before the latest write of any process.
    pub(super) fn begin(connection: &'c Connection, clock: &StoreClock) -> Result<Self> {
        let seen: i64 = connection.prepare_cached(SEEN)?.query_row([], |row| row.get(0))?;
        Ok(Self { connection, now: clock.now().max(Micros::new(seen)), wrote: Cell::new(false) })
    }

    /// Writes the time of the transaction, if it changed a row.
    pub(super) fn end(&self) -> Result<()> {
        if self.wrote.get() {
            self.write(SET_SEEN, params![self.now.get()])?;
        }
        Ok(())
    }

    /// Runs one operation on the row of a call.
    pub(super) fn run(&self, call: CallKey, operation: Operation<'_>) -> Result<Reply> {
        let row = self.find(call, matches!(operation, Operation::Claim(_) | Operation::Append(..)))?;
        let (change, reply) = transition(row.as_ref(), operation, self.now);
        match (change, operation) {
            (Change::Create(row), _) => {
                self.write(DELETE_CALL, params![call.as_bytes()])?;
                self.write_row(call, &row)?;
            }
            (Change::Update(row), _) => self.write_row(call, &row)?,
            (Change::Append(mark), Operation::Append(_, record)) => {
                let event = mark.event.to_number();
                let columns = params![call.as_bytes(), mark.leg, mark.step, event, record.value()];
                self.write(WRITE_STEP, columns)?;
            }
            (Change::Append(_) | Change::Nothing, _) => {}
        }
        Ok(reply)
    }

    /// Returns the value of a step's record.
    pub(super) fn value(&self, call: CallKey, record: &StepRecord) -> Result<Vec<u8>> {
        let columns = params![call.as_bytes(), record.step(), record.event().to_number()];
        self.connection.prepare_cached(FIND_VALUE)?.query_row(columns, |row| row.get(0))
    }

    /// Returns the records of a call's steps.
    pub(super) fn load(&self, call: CallKey) -> Result<Vec<StepRecord>> {
        let mut statement = self.connection.prepare_cached(LOAD_STEPS)?;
        let records = statement.query_map(params![call.as_bytes(), self.now.get()], |row| {
            let event = StepEvent::from_number(row.get(1)?);
            Ok(StepRecord::from_parts(row.get::<_, String>(0)?, event, row.get::<_, Vec<u8>>(2)?))
        })?;
        records.collect()
    }

    /// Stores a blob, or extends its time.
    pub(super) fn put(&self, digest: BlobDigest, blob: &[u8], keep: Duration) -> Result<()> {
        let keep_until = self.now.after(keep).get();
        self.write(WRITE_BLOB, params![digest.as_bytes(), blob, keep_until])
    }

    /// Returns a blob whose time is not over.
    pub(super) fn get(&self, digest: BlobDigest) -> Result<Option<Vec<u8>>> {
        let columns = params![digest.as_bytes(), self.now.get()];
        self.connection.prepare_cached(FIND_BLOB)?.query_row(columns, |row| row.get(0)).optional()
    }

    /// Removes expired rows.
    pub(super) fn sweep(&self, limit: usize) -> Result<Swept> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sweep =
            |statement| self.connection.prepare_cached(statement)?.execute(params![self.now.get(), limit]);
        let swept = Swept { calls: sweep(SWEEP_CALLS)?, blobs: sweep(SWEEP_BLOBS)? };
        self.wrote.set(self.wrote.get() || swept != Swept::default());
        Ok(swept)
    }

    fn find(&self, call: CallKey, with_marks: bool) -> Result<Option<Row>> {
        let mut statement = self.connection.prepare_cached(FIND_CALL)?;
        let row = statement.query_row(params![call.as_bytes()], |row| {
            let phase = match row.get(4)? {
                0 => Phase::Running { lease_until: Micros::new(row.get(5)?) },
                1 => Phase::Done { outcome: row.get::<_, Vec<u8>>(6)?.into() },
                2 => Phase::Released,
                other => return Err(rusqlite::Error::IntegralValueOutOfRange(4, other)),
            };
            Ok(Row {
                leg: row.get(0)?,
                fingerprint: Fingerprint::from_bytes(row.get(1)?),
                runner: RunnerId::from_bytes(row.get(2)?),
                fence: row.get(3)?,
                phase,
                keep_until: Micros::new(row.get(7)?),
                marks: Vec::new(),
            })
        });
        let Some(mut row) = row.optional()? else { return Ok(None) };
        if with_marks {
            let mut statement = self.connection.prepare_cached(FIND_MARKS)?;
            let marks = statement.query_map(params![call.as_bytes()], |row| {
                Ok(Mark { leg: row.get(0)?, step: row.get(1)?, event: StepEvent::from_number(row.get(2)?) })
            })?;
            row.marks = marks.collect::<Result<_>>()?;
        }
        Ok(Some(row))
    }

    fn write_row(&self, call: CallKey, row: &Row) -> Result<()> {
        let (phase, lease_until, outcome): (i64, i64, &[u8]) = match &row.phase {
            Phase::Running { lease_until } => (0, lease_until.get(), &[]),
            Phase::Done { outcome } => (1, 0, outcome),
            Phase::Released => (2, 0, &[]),
        };
        let columns = params![
            call.as_bytes(),
            row.leg,
            row.fingerprint.as_bytes(),
            row.runner.as_bytes(),
            row.fence,
            phase,
            lease_until,
            outcome,
            row.keep_until.get(),
            row.expires_at().get(),
        ];
        self.write(WRITE_CALL, columns)
    }

    pub(super) fn connection(&self) -> &Connection {
        self.connection
    }

    /// Returns the time of the transaction.
    pub(super) fn now(&self) -> Micros {
        self.now
    }

    /// Notes that the transaction changed a row.
    pub(super) fn note_write(&self) {
        self.wrote.set(true);
    }

    pub(super) fn write(&self, statement: &str, columns: &[&dyn rusqlite::ToSql]) -> Result<()> {
        self.connection.prepare_cached(statement)?.execute(columns)?;
        self.wrote.set(true);
        Ok(())
    }
}

// The statements. Times are microseconds since 1970.

/// The tables of version 1, which has no tasks. `phase` is 0 while a leg runs, 1 when it has an outcome, 2 when it was released. `event` of a step is
/// the number of an attempt that started, or 0 for its end. `seen` is the latest time of any write.
pub(super) const CREATE_TABLES: &str = "
    CREATE TABLE antiphon_calls (
        call BLOB NOT NULL PRIMARY KEY,
        leg INTEGER NOT NULL,
        fingerprint BLOB NOT NULL,
        runner BLOB NOT NULL,
        fence INTEGER NOT NULL,
        phase INTEGER NOT NULL,
        lease_until INTEGER NOT NULL,
        outcome BLOB NOT NULL,
        keep_until INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX antiphon_calls_expiry ON antiphon_calls (expires_at);
    CREATE TABLE antiphon_steps (
        call BLOB NOT NULL REFERENCES antiphon_calls (call) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        leg INTEGER NOT NULL,
        step TEXT NOT NULL,
        event INTEGER NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (call, step, event)
    ) STRICT;
    CREATE TABLE antiphon_blobs (
        digest BLOB NOT NULL PRIMARY KEY,
        value BLOB NOT NULL,
        keep_until INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX antiphon_blobs_expiry ON antiphon_blobs (keep_until);
    CREATE TABLE antiphon_store (
        id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
        version INTEGER NOT NULL,
        seen INTEGER NOT NULL
    ) STRICT;
    INSERT INTO antiphon_store (id, version, seen) VALUES (1, 1, 0);
";

/// Returns a row if the tables exist.
pub(super) const TABLES_EXIST: &str =
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'antiphon_store'";

/// Returns the version of the tables.
pub(super) const VERSION: &str = "SELECT version FROM antiphon_store WHERE id = 1";

/// Returns the latest time of any write.
const SEEN: &str = "SELECT seen FROM antiphon_store WHERE id = 1";

/// Sets the latest time of any write.
const SET_SEEN: &str = "UPDATE antiphon_store SET seen = ?1 WHERE id = 1 AND seen < ?1";

/// Returns the row of a call.
const FIND_CALL: &str = "
    SELECT leg, fingerprint, runner, fence, phase, lease_until, outcome, keep_until
    FROM antiphon_calls WHERE call = ?1";

/// Removes the row of a call and its steps.
const DELETE_CALL: &str = "DELETE FROM antiphon_calls WHERE call = ?1";

/// Creates the row of a call, or replaces its columns. Its steps stay.
const WRITE_CALL: &str = "
    INSERT INTO antiphon_calls
        (call, leg, fingerprint, runner, fence, phase, lease_until, outcome, keep_until, expires_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
    ON CONFLICT (call) DO UPDATE SET
        leg = excluded.leg, fingerprint = excluded.fingerprint, runner = excluded.runner, fence = excluded.fence,
        phase = excluded.phase, lease_until = excluded.lease_until, outcome = excluded.outcome,
        keep_until = excluded.keep_until, expires_at = excluded.expires_at";

/// Returns the steps of a call without their values, in the order in which they were appended.
const FIND_MARKS: &str = "SELECT leg, step, event FROM antiphon_steps WHERE call = ?1 ORDER BY number";

/// Returns the steps of a call whose row has not expired.
const LOAD_STEPS: &str = "
    SELECT step, event, value FROM antiphon_steps
    WHERE call = ?1 AND EXISTS (SELECT 1 FROM antiphon_calls WHERE call = ?1 AND expires_at > ?2)
    ORDER BY number";

/// Returns the value of a step's record.
const FIND_VALUE: &str = "SELECT value FROM antiphon_steps WHERE call = ?1 AND step = ?2 AND event = ?3";

/// Appends a step's record.
const WRITE_STEP: &str = "
    INSERT INTO antiphon_steps (call, number, leg, step, event, value)
    VALUES (?1, (SELECT count(*) FROM antiphon_steps WHERE call = ?1), ?2, ?3, ?4, ?5)";

/// Stores a blob, or extends its time. The bytes of a blob never change.
const WRITE_BLOB: &str = "
    INSERT INTO antiphon_blobs (digest, value, keep_until) VALUES (?1, ?2, ?3)
    ON CONFLICT (digest) DO UPDATE SET keep_until = max(keep_until, excluded.keep_until)";

/// Returns a blob whose time is not over.
const FIND_BLOB: &str = "SELECT value FROM antiphon_blobs WHERE digest = ?1 AND keep_until > ?2";

/// Removes the calls that expired first, and their steps.
pub(super) const SWEEP_CALLS: &str = "
    DELETE FROM antiphon_calls WHERE call IN
        (SELECT call FROM antiphon_calls WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)";

/// Removes the blobs that expired first.
pub(super) const SWEEP_BLOBS: &str = "
    DELETE FROM antiphon_blobs WHERE digest IN
        (SELECT digest FROM antiphon_blobs WHERE keep_until <= ?1 ORDER BY keep_until LIMIT ?2)";
