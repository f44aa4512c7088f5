//! The waits before a broken subscription is opened again. Nothing here reads a clock.

use std::time::Duration;

/// The number of attempts, and the waits between them, to open a subscription again after it broke, or after the server closed
/// it. The usual reason for such an end is that the server stops, and another instance is there at once.
///
/// The waits double from the first to the longest. Each wait is shortened by a random part of up to one half, so that not
/// all clients reconnect at the same time after a server restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ReconnectPolicy {
    attempts: u32,
    min_interval: Duration,
    max_interval: Duration,
}

impl Default for ReconnectPolicy {
    /// Ten attempts in a row; waits of half a second, doubling to 30 seconds: about two minutes in all.
    fn default() -> Self {
        Self { attempts: 10, min_interval: Duration::from_millis(500), max_interval: Duration::from_secs(30) }
    }
}

impl ReconnectPolicy {
    /// Returns a policy that never reconnects: a break or the server's response ends the subscription.
    pub fn never() -> Self {
        Self::default().attempts(0)
    }

    /// The number of attempts in a row that may fail before the subscription ends with the last one's error: 10 unless set. An
    /// acknowledgement ends the row.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// The wait before the first attempt: half a second unless set.
    pub fn min_interval(mut self, wait: Duration) -> Self {
        self.min_interval = wait;
        self
    }

    /// The longest wait: 30 seconds unless set.
    pub fn max_interval(mut self, wait: Duration) -> Self {
        self.max_interval = wait;
        self
    }
}

/// The attempts that a subscription has made.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// The number of attempts that failed since the last acknowledgement.
    in_a_row: u32,
    /// The number of times that the wait was doubled. An acknowledgement alone does not reset it: the client must not
    /// reconnect twice a second, without end, to a server that acknowledges and then breaks.
    doubled: u32,
}

impl Attempts {
    /// Called when the server acknowledged.
    pub(crate) fn acknowledged(&mut self) {
        self.in_a_row = 0;
    }

    /// The wait before the next attempt, after a subscription broke that had been acknowledged for `lasted`. `None` if there is
    /// no further attempt.
    pub(crate) fn next(
        &mut self,
        policy: &ReconnectPolicy,
        lasted: Duration,
        random: u64,
    ) -> Option<Duration> {
        if self.in_a_row >= policy.attempts {
            return None;
        }
        if lasted >= policy.max_interval {
            self.doubled = 0;
        }
        let factor = 2_u32.checked_pow(self.doubled).unwrap_or(u32::MAX);
        let wait = policy.min_interval.saturating_mul(factor).min(policy.max_interval);
        self.in_a_row += 1;
        self.doubled = self.doubled.saturating_add(1);
        let left_out = u32::try_from(random % 1024).unwrap_or_default();
        Some(wait - wait.mul_f64(f64::from(left_out) / 2048.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the waits after these events: `None` an acknowledgement, `Some` a break this number of seconds after the
    /// acknowledgement.
    fn check(policy: ReconnectPolicy, happens: &[Option<u64>], waits_ms: &[Option<u64>]) {
        for random in [0, 1023, u64::MAX] {
            let mut attempts = Attempts::default();
            let mut waits = Vec::new();
            for step in happens {
                match step {
                    None => attempts.acknowledged(),
                    Some(lasted) => waits.push(attempts.next(&policy, Duration::from_secs(*lasted), random)),
                }
            }
            assert_eq!(waits.len(), waits_ms.len());
            for (at, (wait, most)) in waits.iter().zip(waits_ms).enumerate() {
                let (wait, most) = (wait.map(|wait| wait.as_millis() as u64), *most);
                let fits = match (wait, most) {
                    (Some(wait), Some(most)) if random == 0 => wait == most,
                    (Some(wait), Some(most)) => wait >= most / 2 && wait < most,
                    (wait, most) => wait == most,
                };
                assert!(fits, "{policy:?} {happens:?}: wait {at} is {wait:?} instead of {most:?}");
            }
        }
    }

    #[test]
    fn waits_double_and_attempts_end() {
        let standard = ReconnectPolicy::default();
        let broken = [Some(0); 12];
        let schedule: Vec<_> = [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 30000]
            .map(Some)
            .into_iter()
            .chain([None, None])
            .collect();
        check(standard, &broken, &schedule);
        check(ReconnectPolicy::never(), &[Some(100)], &[None]);
        // An acknowledgement ends the row, and time alone ends the waiting.
        let few = standard.attempts(2);
        check(few, &[Some(0), Some(0), Some(0)], &[Some(500), Some(1000), None]);
        check(
            few,
            &[Some(0), Some(0), None, Some(1), Some(1), Some(1)],
            &[Some(500), Some(1000), Some(2000), Some(4000), None],
        );
        check(few, &[Some(0), Some(0), None, Some(30)], &[Some(500), Some(1000), Some(500)]);
        // Nothing overflows.
        let eager = ReconnectPolicy::default().attempts(u32::MAX).max_interval(Duration::MAX);
        let mut attempts = Attempts { in_a_row: 0, doubled: 200 };
        assert!(attempts.next(&eager, Duration::ZERO, 7).is_some());
        check(standard.min_interval(Duration::from_secs(60)), &[Some(0)], &[Some(30000)]);
    }
}
