//! How long to wait before a leg that carries only state, and when to stop; how long progress stretches a time. It reads no
//! clock.

use std::time::Duration;
use tokio::time::Instant;

/// How long a server may answer with state only before the call is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateOnlyLimits {
    /// So many in a row.
    pub(crate) legs: u32,
    /// For so long, from the first of the row.
    pub(crate) time: Duration,
}

impl Default for StateOnlyLimits {
    fn default() -> Self {
        Self { legs: 60, time: Duration::from_secs(120) }
    }
}

/// One row of state-only results.
#[derive(Debug)]
pub(crate) struct Pacing {
    limits: StateOnlyLimits,
    seen: u32,
    since: Option<Instant>,
}

impl Pacing {
    pub(crate) fn new(limits: StateOnlyLimits) -> Self {
        Self { limits, seen: 0, since: None }
    }

    /// Another state-only result came: how long to wait before the next leg. None once the row is too long.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Duration> {
        let waited = now.saturating_duration_since(*self.since.get_or_insert(now));
        if self.seen >= self.limits.legs || waited >= self.limits.time {
            return None;
        }
        self.seen += 1;
        Some(wait_before(self.seen).min(self.limits.time.saturating_sub(waited)))
    }
}

/// 50, 100, 200, then 250 ms; from the tenth on doubling, up to 5 s.
fn wait_before(leg: u32) -> Duration {
    Duration::from_millis(match leg {
        0 | 1 => 50,
        2 => 100,
        3 => 200,
        4..=9 => 250,
        10..=13 => 250 << (leg - 9),
        _ => 5000,
    })
}

/// When the time of something ends, from its start on, and the limit that sets this end. When it was last `heard` of, its
/// time began anew, up to so much in all as `most` says.
///
/// > Implementations **MAY** choose to reset the timeout clock when receiving a progress notification [...].
/// > However, implementations **SHOULD** always enforce a maximum timeout, regardless of progress notifications
pub(crate) fn stretched(limit: Duration, most: Option<Duration>, heard: Duration) -> (Duration, Duration) {
    let Some(most) = most else { return (limit, limit) };
    let (end, most) = (heard.saturating_add(limit), most.max(limit));
    if end < most { (end, limit) } else { (most, most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limits: StateOnlyLimits, leg_takes_ms: u64, first: &[u64], legs: usize) {
        let (mut pacing, mut now, mut waits) = (Pacing::new(limits), Instant::now(), Vec::new());
        while let Some(wait) = pacing.next(now) {
            waits.push(wait.as_millis() as u64);
            now += wait + Duration::from_millis(leg_takes_ms);
        }
        assert_eq!((&waits[..first.len()], waits.len()), (first, legs), "{limits:?} {leg_takes_ms}");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_and_end() {
        let standard = StateOnlyLimits::default();
        let patient = StateOnlyLimits { time: Duration::from_secs(3600), ..standard };
        let schedule = [50, 100, 200, 250, 250, 250, 250, 250, 250, 500, 1000, 2000, 4000, 5000, 5000];
        check(patient, 0, &schedule, 60);
        // Two minutes of waiting come first; the last wait is cut to fit.
        check(standard, 0, &schedule, 36);
        // The time of the legs counts.
        check(standard, 20_000, &[50, 100, 200, 250, 250], 6);
        check(StateOnlyLimits { legs: 2, ..standard }, 0, &[50, 100], 2);
        check(StateOnlyLimits { legs: 0, ..standard }, 0, &[], 0);
        check(StateOnlyLimits { time: Duration::ZERO, ..standard }, 0, &[], 0);
    }
}
