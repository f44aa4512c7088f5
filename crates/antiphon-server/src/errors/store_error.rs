//! Errors of the store: an operation is repeated if its effect is unknown, and the request refused otherwise.

use crate::errors::refusal::Refusal;
use antiphon_store::{StoreError, StoreFuture, Written};
use antiphon_wire::escaped;

/// The number of attempts of an operation whose effect is unknown.
pub(crate) const ATTEMPTS: u32 = 3;

/// Runs an operation again whose effect is unknown. Every operation of a store may be repeated.
pub(crate) async fn repeated<'a, T>(operation: impl Fn() -> StoreFuture<'a, T>) -> Result<T, StoreError> {
    let mut attempt = 1;
    loop {
        match operation().await {
            Err(error) if error.written() == Written::Unknown && attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

/// Logs an error of the store, and returns the refusal.
pub(crate) fn refused(error: &StoreError) -> Refusal {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    tracing::error!(error = %escaped(error), cause = %escaped(&cause), "the store of calls failed: the request is refused");
    Refusal::Store
}
