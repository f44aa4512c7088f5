//! The times of the polls of one task, and the order of its states.

use crate::call::task::pace::{MIN_INTERVAL, SAFETY_INTERVAL, poll_interval};
use antiphon_wire::Task;
use std::time::Duration;
use tokio::time::Instant;

/// The times of the polls of one task.
#[derive(Default)]
pub(crate) struct PollTimes {
    /// `true` while the server reports the changes of the task.
    pub(crate) is_reported: bool,
    /// The moment of the latest reply.
    last: Option<Instant>,
    /// `lastUpdatedAt` of the latest state.
    newest: String,
}

impl PollTimes {
    /// The wait before the next poll. A task whose changes are reported is polled rarely, in case a report is lost.
    pub(crate) fn interval(&self, suggested: Option<Duration>) -> Duration {
        let interval = poll_interval(suggested);
        if self.is_reported { interval.max(SAFETY_INTERVAL) } else { interval }
    }

    /// The wait before a poll after the server reported a change. Many reports do not cause many polls.
    pub(crate) fn after_change(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |last| MIN_INTERVAL.saturating_sub(last.elapsed()))
    }

    /// Stores the time of a reply.
    pub(crate) fn replied(&mut self, task: &Task) {
        self.last = Some(Instant::now());
        self.newest.clone_from(&task.last_updated_at);
    }

    /// Returns `true` if a reported state is older than one that was received already: it waited on another connection.
    pub(crate) fn is_outdated(&self, task: &Task) -> bool {
        !task.status.is_final() && is_earlier(&task.last_updated_at, &self.newest)
    }
}

/// Compares moments in ISO 8601. Two texts of different forms have no order here.
fn is_earlier(one: &str, other: &str) -> bool {
    let form = |text: &str| -> String {
        text.chars().map(|sign| if sign.is_ascii_digit() { '0' } else { sign }).collect()
    };
    form(one) == form(other) && one < other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_one_form_have_an_order() {
        for (one, other, expected) in [
            ("2026-08-20T10:30:00Z", "2026-08-20T10:30:01Z", true),
            ("2026-08-20T10:30:00.100Z", "2026-08-20T10:30:00.200Z", true),
            ("2026-08-20T10:30:00Z", "2026-08-20T10:30:00Z", false),
            ("2026-08-20T10:30:01Z", "2026-08-20T10:30:00Z", false),
            ("2026-08-20T10:30:00Z", "2026-08-20T10:30:00.5Z", false),
            ("2026-08-20T10:30:00+02:00", "2026-08-20T10:30:01Z", false),
            ("", "2026-08-20T10:30:01Z", false),
        ] {
            assert_eq!(is_earlier(one, other), expected, "{one} {other}");
        }
    }
}
