//! The limits of legacy sessions on one endpoint.

use crate::serve::http::legacy::event_log::EventLimits;
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

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(30 * 60),
            retry: Duration::from_secs(1),
            prefix: String::new(),
            limits: EventLimits { events: 256, bytes: 1024 * 1024, all_bytes: 64 * 1024 * 1024 },
        }
    }
}
