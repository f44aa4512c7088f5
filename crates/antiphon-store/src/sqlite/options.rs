//! Options of a SQLite store.

use std::time::Duration;

use crate::clock::StoreClock;

/// The options of a [`SqliteStore`](super::SqliteStore).
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    pub(super) timeout: Duration,
    pub(super) queue: usize,
    pub(super) clock: StoreClock,
    pub(super) read_only: bool,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(5), queue: 1_024, clock: StoreClock::system(), read_only: false }
    }
}

impl SqliteOptions {
    /// Sets the maximum time of one operation, the wait for other processes included; 5 seconds by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum number of operations that wait for the file; 1,024 by default. Further ones are refused as
    /// [`Unreachable`](crate::StoreErrorKind::Unreachable).
    #[must_use]
    pub fn queue(mut self, operations: usize) -> Self {
        self.queue = operations.max(1);
        self
    }

    /// Sets whether the file is only read: it must exist and have the tables of this release, and every write fails. For programs
    /// that look at the store of a server. Default: `false`.
    #[must_use]
    pub fn read_only(mut self, on: bool) -> Self {
        self.read_only = on;
        self
    }

    /// Sets the clock of the rows; the system's clock by default. All processes of the file must have the same clock.
    #[must_use]
    pub fn clock(mut self, clock: StoreClock) -> Self {
        self.clock = clock;
        self
    }
}
