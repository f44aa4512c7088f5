//! Errors of PostgreSQL, as errors of a store.

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::error::{StoreError, StoreErrorKind, Written};

/// Returns the error of a statement. `if_lost` is the effect of a statement without a reply.
pub(super) fn of_statement(
    operation: &'static str,
    if_lost: Written,
    error: tokio_postgres::Error,
) -> StoreError {
    let (kind, written) = match error.code() {
        Some(code) => of_code(code, if_lost),
        None if is_connection(&error) => (StoreErrorKind::Unreachable, if_lost),
        // A value that does not fit its column, before it was sent or after it was read.
        None => (StoreErrorKind::Corrupt, if_lost),
    };
    StoreError::new(kind, written, operation, error)
}

/// Returns true if the connection broke, so that another connection may work.
pub(super) fn is_connection(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => is_shutdown(code),
        None => {
            error.is_closed()
                || std::error::Error::source(error).is_some_and(|cause| cause.is::<std::io::Error>())
        }
    }
}

/// Returns the error of a connection that could not be opened: nothing was sent.
pub(super) fn of_pool(operation: &'static str, error: PoolError) -> StoreError {
    let kind = match &error {
        PoolError::Timeout(_) => StoreErrorKind::Timeout,
        PoolError::Backend(cause) => match cause.code() {
            // A wrong password, a missing role or database.
            Some(code) if code.code().starts_with("28") || *code == SqlState::INVALID_CATALOG_NAME => {
                StoreErrorKind::Invalid
            }
            _ => StoreErrorKind::Unreachable,
        },
        _ => StoreErrorKind::Unreachable,
    };
    StoreError::read(kind, operation, error)
}

/// Returns the kind of a statement that the database refused: its transaction is rolled back.
fn of_code(code: &SqlState, if_lost: Written) -> (StoreErrorKind, Written) {
    if is_shutdown(code) {
        // The session ended. The statement may have been committed just before.
        return (StoreErrorKind::Unreachable, if_lost);
    }
    let kind = match code.code() {
        "57014" => StoreErrorKind::Timeout,
        // The database is a standby now.
        "25006" => StoreErrorKind::Unreachable,
        "42501" => StoreErrorKind::Invalid,
        text => match &text[..2] {
            "53" => StoreErrorKind::Full,
            "40" | "55" => StoreErrorKind::Unreachable,
            // A table or a function is missing, or has other columns.
            "42" => StoreErrorKind::Version,
            "XX" => StoreErrorKind::Corrupt,
            _ => StoreErrorKind::Other,
        },
    };
    (kind, Written::No)
}

fn is_shutdown(code: &SqlState) -> bool {
    matches!(code.code().as_bytes(), [b'0', b'8', ..] | [b'5', b'7', b'P', ..])
}
