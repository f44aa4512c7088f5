//! Attempts of a step, and their number.

use std::time::Duration;

/// One run of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub(super) key: String,
    pub(super) number: u32,
}

impl Attempt {
    /// Returns the idempotency key: 32 hexadecimal digits, the same for every run of this step of this call, and not
    /// guessable. Pass it to a provider that accepts one.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the number of this attempt in this leg, from 1. Under
    /// [`write_ahead`](crate::ServerBuilder::write_ahead), attempts of an earlier run of the leg count.
    pub fn number(&self) -> u32 {
        self.number
    }
}

/// The number of attempts of a step in one leg, and the pause between them.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    pub(super) times: u32,
    every: Duration,
}

impl Retry {
    /// `times` attempts in total (minimum 1), without a pause.
    pub fn times(times: u32) -> Self {
        Self { times: times.max(1), every: Duration::ZERO }
    }

    /// Sets the pause after the first failure. The pause doubles after each further failure, up to one minute.
    #[must_use]
    pub fn interval(mut self, pause: Duration) -> Self {
        self.every = pause;
        self
    }

    pub(super) fn pause(&self, failed: u32) -> Duration {
        let factor = 1_u32.checked_shl(failed.saturating_sub(1)).unwrap_or(u32::MAX);
        self.every.saturating_mul(factor).min(Duration::from_secs(60))
    }
}
