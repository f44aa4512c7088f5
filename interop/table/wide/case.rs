//! A case, and its limits.

use crate::{error::AnyError, peer::Peer};
use std::{future::Future, pin::Pin, time::Duration};

pub(crate) type CaseFuture<'a> = Pin<Box<dyn Future<Output = Result<(), AnyError>> + Send + 'a>>;
/// A case: its name, and its function.
pub(crate) type Case = (&'static str, for<'a> fn(&'a Peer) -> CaseFuture<'a>);

/// Limit of the wait for one event.
pub(crate) const EVENT_TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Compares two values.
///
/// # Errors
///
/// Both values, if they differ.
pub(crate) fn expect_equal<T: PartialEq + std::fmt::Debug>(found: T, wanted: T) -> Result<(), AnyError> {
    if found == wanted { Ok(()) } else { Err(format!("found {found:?}, wanted {wanted:?}").into()) }
}
