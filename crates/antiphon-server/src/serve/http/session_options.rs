//! The limits of legacy sessions on one endpoint.

use std::time::Duration;

/// The limits of legacy sessions on one endpoint. The number of sessions and of handlers in them is limited by
/// [`Limits`](crate::Limits).
#[derive(Clone, Debug)]
pub(crate) struct SessionOptions {
    pub(crate) idle: Duration,
    pub(crate) retry: Duration,
    pub(crate) prefix: String,
    pub(crate) limits: EventLimits,
}

/// The limits of stored events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventLimits {
    /// The number of events of one session.
    pub(crate) events: usize,
    /// The bytes of one session.
    pub(crate) bytes: usize,
    /// The bytes of all sessions together. Beyond it, a session stores only the events that its readers have not taken.
    pub(crate) all_bytes: usize,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(30 * 60),
            retry: Duration::from_secs(1),
            prefix: String::new(),
            limits: EventLimits { events: 256, bytes: 1024 * 1024, all_bytes: 32 * 1024 * 1024 },
        }
    }
}
