//! The options of a SQLite store, and the connection to the file: its settings, and the version of its tables.

use super::{rows, task_rows};
use crate::{
    clock::StoreClock,
    error::{StoreError, StoreErrorKind, Written},
};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior};
use std::{fs::OpenOptions, path::Path, time::Duration};

/// The version of the tables that this program reads and writes.
const VERSION: i64 = 2;

/// The table of the latest messages of the feed. The last one always stays, so that numbers grow.
const CREATE_CHANGES: &str = "
    CREATE TABLE IF NOT EXISTS antiphon_changes (
        number INTEGER PRIMARY KEY,
        channel BLOB NOT NULL,
        message TEXT NOT NULL
    ) STRICT";

/// Opens the file, and creates it and its tables if they are missing.
pub(super) fn open(path: &Path, timeout: Duration) -> Result<Connection, StoreError> {
    create_private(path).map_err(|error| StoreError::read(StoreErrorKind::Unreachable, "open", error))?;
    let mut connection = Connection::open(path).map_err(fail)?;
    connection.busy_timeout(timeout).map_err(fail)?;
    // A commit returns when the write-ahead log is on the disk.
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(fail)?;
    if mode != "wal" {
        let text = "SQLite cannot keep a write-ahead log beside this file: use a file on a local disk";
        return Err(StoreError::read(StoreErrorKind::Invalid, "open", text));
    }
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;").map_err(fail)?;
    connection.set_prepared_statement_cache_capacity(64);
    migrate(&mut connection)?;
    Ok(connection)
}

/// Opens a file that exists, to read it.
pub(super) fn open_read_only(path: &Path, timeout: Duration) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(timeout).map_err(fail)?;
    let exists = connection.query_row(rows::TABLES_EXIST, [], |_| Ok(())).optional().map_err(fail)?;
    if exists.is_none() {
        return Err(StoreError::read(StoreErrorKind::Invalid, "open", "the file has no tables of antiphon"));
    }
    check_version(connection.query_row(rows::VERSION, [], |row| row.get(0)).map_err(fail)?)?;
    Ok(connection)
}

/// Creates a missing file that only its owner may read.
fn create_private(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Creates the tables, adds those of later versions, and checks the version. Two processes may do that at once.
fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    let exists = transaction.query_row(rows::TABLES_EXIST, [], |_| Ok(())).optional().map_err(fail)?;
    if exists.is_none() {
        transaction.execute_batch(rows::CREATE_TABLES).map_err(fail)?;
    }
    let version = || transaction.query_row(rows::VERSION, [], |row| row.get::<_, i64>(0)).map_err(fail);
    if version()? == 1 {
        transaction.execute_batch(task_rows::CREATE_TABLES).map_err(fail)?;
    }
    check_version(version()?)?;
    // Without a version of its own: programs that do not know the table leave it alone.
    transaction.execute_batch(CREATE_CHANGES).map_err(fail)?;
    transaction.commit().map_err(fail)
}

fn check_version(version: i64) -> Result<(), StoreError> {
    if version == VERSION {
        return Ok(());
    }
    let text = format!("the tables have version {version}, this program needs version {VERSION}");
    Err(StoreError::read(StoreErrorKind::Version, "open", text))
}

fn fail(error: rusqlite::Error) -> StoreError {
    if kind(&error) == StoreErrorKind::Other {
        return StoreError::read(StoreErrorKind::Invalid, "open", error);
    }
    rolled_back("open", error)
}

/// Returns the kind of an error of SQLite.
pub(super) fn kind(error: &rusqlite::Error) -> StoreErrorKind {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::OperationInterrupted) => {
            StoreErrorKind::Timeout
        }
        Some(ErrorCode::DiskFull | ErrorCode::OutOfMemory) => StoreErrorKind::Full,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreErrorKind::Corrupt,
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure,
        ) => StoreErrorKind::Unreachable,
        Some(_) => StoreErrorKind::Other,
        // A column has another type than this version writes.
        None => StoreErrorKind::Corrupt,
    }
}

/// Returns the error of an operation whose transaction is rolled back.
pub(super) fn rolled_back(operation: &'static str, error: rusqlite::Error) -> StoreError {
    StoreError::new(kind(&error), Written::No, operation, error)
}

/// The options of a [`SqliteStore`](super::SqliteStore).
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    pub(super) timeout: Duration,
    pub(super) queue: usize,
    pub(super) clock: StoreClock,
    pub(super) read_only: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(5), queue: 1_024, clock: StoreClock::system(), read_only: false }
    }
}

impl SqliteOptions {
    /// Sets the maximum time of one operation, the wait for other processes included; 5 seconds by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum number of operations that wait for the file; 1,024 by default. Further ones are refused as
    /// [`Unreachable`](crate::StoreErrorKind::Unreachable).
    #[must_use]
    pub fn queue(mut self, operations: usize) -> Self {
        self.queue = operations.max(1);
        self
    }

    /// Sets whether the file is only read: it must exist and have the tables of this release, and every write fails. For programs
    /// that look at the store of a server. Default: `false`.
    #[must_use]
    pub fn read_only(mut self, on: bool) -> Self {
        self.read_only = on;
        self
    }

    /// Sets the clock of the rows; the system's clock by default. All processes of the file must have the same clock.
    #[must_use]
    pub fn clock(mut self, clock: StoreClock) -> Self {
        self.clock = clock;
        self
    }
}
