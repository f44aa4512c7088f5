//! Times that the client and the server share: the pauses after results that contain only a state, and the time that
//! progress adds to a request. No function reads a clock.

use std::time::Duration;

/// The limits on consecutive results that contain only a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateOnlyLimits {
    legs: u32,
    timeout: Duration,
}

impl Default for StateOnlyLimits {
    fn default() -> Self {
        Self { legs: 60, timeout: Duration::from_secs(120) }
    }
}

impl StateOnlyLimits {
    /// Sets the maximum number of such results in a row. Default: 60.
    #[must_use]
    pub fn legs(mut self, number: u32) -> Self {
        self.legs = number;
        self
    }

    /// Sets the maximum time since the first result of the row. Default: 120 s.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }
}

/// The pauses between consecutive results that contain only a state.
#[derive(Debug)]
pub struct Pacing {
    limits: StateOnlyLimits,
    seen: u32,
}

impl Pacing {
    /// Creates the pauses of a new row.
    pub fn new(limits: StateOnlyLimits) -> Self {
        Self { limits, seen: 0 }
    }

    /// Returns the pause before the next leg; `None` if the row has reached a limit. `waited` is the time since the first
    /// result of the row.
    pub fn next(&mut self, waited: Duration) -> Option<Duration> {
        if self.seen >= self.limits.legs || waited >= self.limits.timeout {
            return None;
        }
        self.seen += 1;
        Some(pause_before(self.seen).min(self.limits.timeout.saturating_sub(waited)))
    }
}

/// Returns the pause before a leg: 50, 100, 200, then 250 ms. From the tenth on it doubles, up to 5 s.
fn pause_before(leg: u32) -> Duration {
    Duration::from_millis(match leg {
        0 | 1 => 50,
        2 => 100,
        3 => 200,
        4..=9 => 250,
        10..=13 => 250 << (leg - 9),
        _ => 5000,
    })
}

/// Returns the deadline of a request, measured from its start, and the limit that sets this deadline. `last_progress` is
/// the time of the last progress notification since the start, which restarts `limit`, up to `most` in total. Without
/// `most`, progress does not change the deadline.
///
/// > Implementations **MAY** choose to reset the timeout clock when receiving a progress notification [...].
/// > However, implementations **SHOULD** always enforce a maximum timeout, regardless of progress notifications
pub fn stretched(limit: Duration, most: Option<Duration>, last_progress: Duration) -> (Duration, Duration) {
    let Some(most) = most else { return (limit, limit) };
    let (end, most) = (last_progress.saturating_add(limit), most.max(limit));
    if end < most { (end, limit) } else { (most, most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limits: StateOnlyLimits, leg_takes_ms: u64, first: &[u64], legs: usize) {
        let (mut pacing, mut waited, mut waits) = (Pacing::new(limits), Duration::ZERO, Vec::new());
        while let Some(wait) = pacing.next(waited) {
            waits.push(wait.as_millis() as u64);
            waited += wait + Duration::from_millis(leg_takes_ms);
        }
        assert_eq!((&waits[..first.len()], waits.len()), (first, legs), "{limits:?} {leg_takes_ms}");
    }

    #[test]
    fn waits_grow_and_end() {
        let standard = StateOnlyLimits::default();
        let patient = standard.timeout(Duration::from_secs(3600));
        let schedule = [50, 100, 200, 250, 250, 250, 250, 250, 250, 500, 1000, 2000, 4000, 5000, 5000];
        check(patient, 0, &schedule, 60);
        // The limit of two minutes is reached first; the last pause is shortened to fit.
        check(standard, 0, &schedule, 36);
        // The duration of the legs counts too.
        check(standard, 20_000, &[50, 100, 200, 250, 250], 6);
        check(standard.legs(2), 0, &[50, 100], 2);
        check(standard.legs(0), 0, &[], 0);
        check(standard.timeout(Duration::ZERO), 0, &[], 0);
    }
}
