//! The process that a transport uses now.

use crate::transport::{
    TransportError,
    TransportErrorKind::Closed,
    child::process::{Process, Restarts},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The time that a broken connection waits for the child's exit status, which has more information.
const LAST_STATUS: Duration = Duration::from_secs(1);

/// The process of a transport, and the restarts that it has left.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) process: Arc<Process>,
    pub(crate) restarts: Restarts,
    /// `true` if this client closed the transport: no child is started again.
    pub(crate) closed: bool,
}

pub(crate) fn lock(current: &Mutex<Current>) -> MutexGuard<'_, Current> {
    current.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the child's exit status to the error, and marks the error as final if no other child will be started.
pub(crate) async fn explain(
    process: &Process,
    name: &str,
    current: &Mutex<Current>,
    error: TransportError,
) -> TransportError {
    let error = match process.supervisor.exited_within(LAST_STATUS).await {
        Some(end) => TransportError::new(Closed, format!("the server process `{name}` ended: {end}")),
        None => error,
    };
    let current = lock(current);
    if current.closed || !current.restarts.are_allowed() { error.for_good() } else { error.not_for_good() }
}
