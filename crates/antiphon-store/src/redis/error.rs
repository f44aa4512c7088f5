//! Errors of Redis, as errors of a store.

use ::redis::{ErrorKind, RedisError};

use crate::error::{StoreError, StoreErrorKind, Written};

/// Returns the error of a script. `if_lost` is the effect of a script without a reply.
pub(super) fn of_script(operation: &'static str, if_lost: Written, error: RedisError) -> StoreError {
    let (kind, written) = match error.code() {
        Some(code) => (of_code(code), Written::No),
        None if error.is_timeout() => (StoreErrorKind::Timeout, if_lost),
        None if is_connection(&error) => (StoreErrorKind::Unreachable, if_lost),
        None => match error.kind() {
            ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => {
                (StoreErrorKind::Invalid, Written::No)
            }
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => (StoreErrorKind::Corrupt, if_lost),
            _ => (StoreErrorKind::Other, if_lost),
        },
    };
    StoreError::new(kind, written, operation, error)
}

/// Returns true if the connection broke, so that another connection may work.
pub(super) fn is_connection(error: &RedisError) -> bool {
    !error.is_timeout()
        && (error.is_io_error() || error.is_connection_dropped() || error.is_connection_refusal())
}

/// Returns the kind of a script that the server refused, before its first write.
fn of_code(code: &str) -> StoreErrorKind {
    match code {
        "OOM" => StoreErrorKind::Full,
        // A replica, a server that loads its data, that has too few replicas, or that cannot write to its disk.
        "READONLY" | "LOADING" | "NOREPLICAS" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "BUSY"
        | "MISCONF" => StoreErrorKind::Unreachable,
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "MOVED" | "ASK" => StoreErrorKind::Invalid,
        "WRONGTYPE" => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Other,
    }
}
