//! The rows within one transaction: each operation on a call runs the state machine of the crate.

use std::cell::Cell;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Result, params};

use super::statements;
use crate::blob::BlobDigest;
use crate::clock::{Micros, StoreClock};
use crate::key::{CallKey, Fingerprint, RunnerId};
use crate::row::{Change, Mark, Operation, Phase, Reply, Row, transition};
use crate::step::{StepEvent, StepRecord};
use crate::store::Swept;

/// The rows, at one moment. A transaction is open.
pub(super) struct Rows<'c> {
    connection: &'c Connection,
    now: Micros,
    wrote: Cell<bool>,
}

impl<'c> Rows<'c> {
    /// Returns the rows at the time of the clock, and never before the latest write of any process.
    pub(super) fn begin(connection: &'c Connection, clock: &StoreClock) -> Result<Self> {
        let seen: i64 = connection.prepare_cached(statements::SEEN)?.query_row([], |row| row.get(0))?;
        Ok(Self { connection, now: clock.now().max(Micros::new(seen)), wrote: Cell::new(false) })
    }

    /// Writes the time of the transaction, if it changed a row.
    pub(super) fn end(&self) -> Result<()> {
        if self.wrote.get() {
            self.write(statements::SET_SEEN, params![self.now.get()])?;
        }
        Ok(())
    }

    /// Runs one operation on the row of a call.
    pub(super) fn run(&self, call: CallKey, operation: Operation<'_>) -> Result<Reply> {
        let row = self.find(call, matches!(operation, Operation::Claim(_) | Operation::Append(..)))?;
        let (change, reply) = transition(row.as_ref(), operation, self.now);
        match (change, operation) {
            (Change::Create(row), _) => {
                self.write(statements::DELETE_CALL, params![call.as_bytes()])?;
                self.write_row(call, &row)?;
            }
            (Change::Update(row), _) => self.write_row(call, &row)?,
            (Change::Append(mark), Operation::Append(_, record)) => {
                let event = mark.event.to_number();
                let columns = params![call.as_bytes(), mark.leg, mark.step, event, record.value()];
                self.write(statements::WRITE_STEP, columns)?;
            }
            (Change::Append(_) | Change::Nothing, _) => {}
        }
        Ok(reply)
    }

    /// Returns the value of a step's record.
    pub(super) fn value(&self, call: CallKey, record: &StepRecord) -> Result<Vec<u8>> {
        let columns = params![call.as_bytes(), record.step(), record.event().to_number()];
        self.connection.prepare_cached(statements::FIND_VALUE)?.query_row(columns, |row| row.get(0))
    }

    /// Returns the records of a call's steps.
    pub(super) fn load(&self, call: CallKey) -> Result<Vec<StepRecord>> {
        let mut statement = self.connection.prepare_cached(statements::LOAD_STEPS)?;
        let records = statement.query_map(params![call.as_bytes(), self.now.get()], |row| {
            let event = StepEvent::from_number(row.get(1)?);
            Ok(StepRecord::from_parts(row.get::<_, String>(0)?, event, row.get::<_, Vec<u8>>(2)?))
        })?;
        records.collect()
    }

    /// Stores a blob, or extends its time.
    pub(super) fn put(&self, digest: BlobDigest, blob: &[u8], keep: Duration) -> Result<()> {
        let keep_until = self.now.after(keep).get();
        self.write(statements::WRITE_BLOB, params![digest.as_bytes(), blob, keep_until])
    }

    /// Returns a blob whose time is not over.
    pub(super) fn get(&self, digest: BlobDigest) -> Result<Option<Vec<u8>>> {
        let columns = params![digest.as_bytes(), self.now.get()];
        self.connection.prepare_cached(statements::FIND_BLOB)?.query_row(columns, |row| row.get(0)).optional()
    }

    /// Removes expired rows.
    pub(super) fn sweep(&self, limit: usize) -> Result<Swept> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sweep =
            |statement| self.connection.prepare_cached(statement)?.execute(params![self.now.get(), limit]);
        let swept = Swept { calls: sweep(statements::SWEEP_CALLS)?, blobs: sweep(statements::SWEEP_BLOBS)? };
        self.wrote.set(self.wrote.get() || swept != Swept::default());
        Ok(swept)
    }

    fn find(&self, call: CallKey, with_marks: bool) -> Result<Option<Row>> {
        let mut statement = self.connection.prepare_cached(statements::FIND_CALL)?;
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
            let mut statement = self.connection.prepare_cached(statements::FIND_MARKS)?;
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
        self.write(statements::WRITE_CALL, columns)
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
