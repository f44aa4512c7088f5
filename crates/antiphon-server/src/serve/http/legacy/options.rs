//! What an endpoint keeps for sessions.

use crate::serve::http::{HttpOptions, legacy::store::Bounds};
use std::time::Duration;

/// The bounds of legacy sessions. How many there may be, and how much may run in them, is in
/// [`Limits`](crate::Limits).
#[derive(Clone, Debug)]
pub(crate) struct SessionOptions {
    pub(crate) idle: Duration,
    pub(crate) retry: Duration,
    pub(crate) prefix: String,
    pub(crate) bounds: Bounds,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(30 * 60),
            retry: Duration::from_secs(1),
            prefix: String::new(),
            bounds: Bounds { events: 256, bytes: 1024 * 1024, all_bytes: 64 * 1024 * 1024 },
        }
    }
}

impl HttpOptions {
    /// How long a legacy session lives without a request and without an open stream. Default: 30 minutes. Then its id is
    /// unknown: 404, and the client opens another. One that was never named behind its `initialize` lives for a minute at
    /// most.
    #[must_use]
    pub fn session_idle(mut self, time: Duration) -> Self {
        self.sessions.idle = time;
        self
    }

    /// How many events of its streams a legacy session keeps for a client that comes back, and how many bytes of them.
    /// Default: 256 events, 1 MiB. Progress and log messages go first; a client that has missed anything else which is
    /// not kept any more is told so: 410. What a connected client has not yet read is kept beyond it, four events a
    /// stream at most.
    #[must_use]
    pub fn session_events(mut self, events: usize, bytes: usize) -> Self {
        (self.sessions.bounds.events, self.sessions.bounds.bytes) = (events, bytes);
        self
    }

    /// How many bytes of events all legacy sessions keep together. Default: 64 MiB. Beyond it each keeps nothing but what
    /// a connected client has not yet read.
    #[must_use]
    pub fn all_session_events(mut self, bytes: usize) -> Self {
        self.sessions.bounds.all_bytes = bytes;
        self
    }

    /// How long a legacy client waits before it takes up a stream again that the server closed. Default: 1 second.
    #[must_use]
    pub fn session_retry(mut self, time: Duration) -> Self {
        self.sessions.retry = time;
        self
    }

    /// Begins the ids of legacy sessions with this, such as `a-` on the instance of that name: a balancer in front can then
    /// tell by `Mcp-Session-Id` where a request belongs, without remembering. Default: nothing. What is not visible ASCII
    /// is left out.
    #[must_use]
    pub fn session_prefix(mut self, prefix: &str) -> Self {
        // > The session ID **MUST** only contain visible ASCII characters (ranging from 0x21 to 0x7E).
        self.sessions.prefix = prefix.chars().filter(char::is_ascii_graphic).collect();
        self
    }
}
