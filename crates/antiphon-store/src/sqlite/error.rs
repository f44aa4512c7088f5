//! Errors of SQLite, as errors of a store.

use rusqlite::ErrorCode;

use crate::error::{StoreError, StoreErrorKind, Written};

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
