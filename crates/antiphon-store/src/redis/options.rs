//! Options of a Redis store.

use std::time::Duration;

use crate::clock::StoreClock;

/// The options of a [`RedisStore`](super::RedisStore).
#[derive(Clone, Debug)]
pub struct RedisOptions {
    pub(super) key_prefix: String,
    pub(super) timeout: Duration,
    pub(super) allow_eviction: bool,
    pub(super) root_certificates: Option<Vec<u8>>,
    /// A clock of a test, in the place of the server's.
    pub(super) test_clock: Option<StoreClock>,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            key_prefix: "antiphon:".to_owned(),
            timeout: Duration::from_secs(5),
            allow_eviction: false,
            root_certificates: None,
            test_clock: None,
        }
    }
}

impl RedisOptions {
    /// Sets the beginning of all keys; `antiphon:` by default.
    #[must_use]
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.key_prefix = prefix.into();
        self
    }

    /// Sets the maximum time of one operation, the wait for a connection included; 5 seconds by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets whether a server is accepted that removes keys when its memory is full; false by default. Such a server forgets
    /// claims, and a leg may run twice.
    #[must_use]
    pub fn allow_eviction(mut self, allow: bool) -> Self {
        self.allow_eviction = allow;
        self
    }

    /// Sets the certificate authorities, as PEM, in the place of the system's: for URLs that begin with `rediss`.
    #[must_use]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root_certificates = Some(pem.into());
        self
    }
}
