//! The clock of a test, in the place of the server's.

use super::link::RedisOptions;
use crate::clock::StoreClock;

impl RedisOptions {
    /// Sets the clock of a test, so that it need not wait, and can compare moments. Every instance on the same keys must have the same
    /// one.
    #[must_use]
    pub fn test_clock(mut self, clock: StoreClock) -> Self {
        self.test_clock = Some(clock);
        self
    }
}
