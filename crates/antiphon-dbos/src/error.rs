//! Errors of the database, as errors of a store.

use antiphon_store::{StoreError, StoreErrorKind, Written};

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
