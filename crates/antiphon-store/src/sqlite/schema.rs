//! The connection to the file: its settings, and the version of its tables.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, TransactionBehavior};

use super::error::{kind, rolled_back};
use super::{statements, task_statements};
use crate::error::{StoreError, StoreErrorKind};

/// The version of the tables that this program reads and writes.
const VERSION: i64 = 2;

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
    let exists = connection.query_row(statements::TABLES_EXIST, [], |_| Ok(())).optional().map_err(fail)?;
    if exists.is_none() {
        return Err(StoreError::read(StoreErrorKind::Invalid, "open", "the file has no tables of antiphon"));
    }
    check_version(connection.query_row(statements::VERSION, [], |row| row.get(0)).map_err(fail)?)?;
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
    let exists = transaction.query_row(statements::TABLES_EXIST, [], |_| Ok(())).optional().map_err(fail)?;
    if exists.is_none() {
        transaction.execute_batch(statements::CREATE_TABLES).map_err(fail)?;
    }
    let version = || transaction.query_row(statements::VERSION, [], |row| row.get::<_, i64>(0)).map_err(fail);
    if version()? == 1 {
        transaction.execute_batch(task_statements::CREATE_TABLES).map_err(fail)?;
    }
    check_version(version()?)?;
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
