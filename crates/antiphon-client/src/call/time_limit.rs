//! The deadline and the cancellation of a whole call.

use crate::{
    call::{definition::CallOptions, errors::ClientErrorKind},
    request::core::Core,
};
use std::time::Duration;
use tokio::time::sleep;

/// Ends the work when the call is cancelled or takes too long. The work is dropped then, with its open callbacks.
pub(crate) async fn within<T>(
    core: &Core,
    options: &CallOptions,
    work: impl Future<Output = Result<T, ClientErrorKind>>,
) -> Result<T, ClientErrorKind> {
    let limit = options.call_timeout.or(core.bounds.call_timeout);
    let cancelled = async {
        match &options.cancel {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancelled => Err(ClientErrorKind::Cancelled),
        outcome = work => outcome,
        () = sleep(limit.unwrap_or_default()), if limit.is_some() => {
            Err(ClientErrorKind::Deadline(limit.unwrap_or(Duration::MAX)))
        }
    }
}
