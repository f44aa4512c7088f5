//! The labels of refusals, by which metrics count them and log lines name them, and the log of refused requests: each cause once a minute as a warning, so that a peer cannot fill the log.

use crate::errors::refusal::Refusal;
use antiphon_wire::lock::Lock;
use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

impl Refusal {
    /// The labels: `data.reason` where the error has one.
    pub(crate) const LABELS: [&str; 23] = [
        "params",
        "not_found",
        "invalid_request_state",
        "limit",
        "capability",
        "extension",
        "task_form",
        "insufficient_scope",
        "not_approver",
        "method",
        "busy",
        "codec",
        "version",
        "flow_diverged",
        "step_failed",
        "used",
        "in_flight",
        "outcome_unknown",
        "store",
        "no_claim",
        "error",
        "internal",
        "timeout",
    ];

    /// Returns the place of this refusal's label.
    pub(crate) fn label(&self) -> usize {
        match self {
            Self::Params(_) => 0,
            Self::NotFound { .. } => 1,
            Self::State => 2,
            Self::Limit { .. } => 3,
            Self::Capability { .. } => 4,
            Self::Extension { .. } => 5,
            Self::TaskOnly { .. } | Self::TaskForbidden { .. } => 6,
            Self::Scope { .. } => 7,
            Self::NotApprover => 8,
            Self::Method(_) => 9,
            Self::Busy => 10,
            Self::Codec => 11,
            Self::Version => 12,
            Self::Diverged => 13,
            Self::StepFailed { .. } => 14,
            Self::Used => 15,
            Self::InFlight { .. } => 16,
            Self::OutcomeUnknown { .. } | Self::RecordLost => 17,
            Self::Store => 18,
            Self::NoClaim => 19,
            // Errors of handlers, and errors that were sent before.
            Self::UrlsFirst(_) | Self::UserFacing(_) | Self::Again(_) => 20,
            Self::Internal => 21,
            Self::OutOfTime { .. } => 22,
            Self::AfterSteps { refusal, .. } => refusal.label(),
        }
    }
}

/// The time in which one cause is one warning.
const INTERVAL: Duration = Duration::from_secs(60);
/// The maximum number of causes that are told apart. Callers choose names, such as that of a host.
const MAX_CAUSES: usize = 64;

/// The causes of refusals, with the time of their last warning.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(Lock<Table>);

#[derive(Debug, Default)]
struct Table {
    causes: HashMap<String, Entry>,
    /// The entry of all causes that find no place.
    others: Option<Entry>,
}

#[derive(Debug)]
struct Entry {
    warned_at: SystemTime,
    suppressed: u64,
}

/// The level at which a refusal is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loudness {
    /// A warning. The value is the number of refusals of the same cause that were no warnings since the last one.
    Warn(u64),
    /// A line for debugging: the same cause was a warning within a minute.
    Debug,
}

impl RefusalLog {
    /// Counts a refusal. `cause` may contain names that the caller chose; they must be cut.
    pub(crate) fn count(&self, cause: &str, now: SystemTime) -> Loudness {
        let mut table = self.0.lock();
        if let Some(entry) = table.causes.get_mut(cause) {
            return entry.count(now);
        }
        if table.causes.len() >= MAX_CAUSES {
            table.causes.retain(|_, entry| !entry.is_over(now));
        }
        if table.causes.len() < MAX_CAUSES {
            table.causes.insert(cause.to_owned(), Entry { warned_at: now, suppressed: 0 });
            return Loudness::Warn(0);
        }
        match &mut table.others {
            Some(entry) => entry.count(now),
            none => {
                *none = Some(Entry { warned_at: now, suppressed: 0 });
                Loudness::Warn(0)
            }
        }
    }
}

impl Entry {
    /// Returns `true` if a minute has passed, or the clock was set back.
    fn is_over(&self, now: SystemTime) -> bool {
        now.duration_since(self.warned_at).map_or(true, |passed| passed >= INTERVAL)
    }

    fn count(&mut self, now: SystemTime) -> Loudness {
        if self.is_over(now) {
            self.warned_at = now;
            return Loudness::Warn(std::mem::take(&mut self.suppressed));
        }
        self.suppressed = self.suppressed.saturating_add(1);
        Loudness::Debug
    }
}

/// Logs a refusal with these fields at its level.
macro_rules! log_refusal {
    ($loudness:expr, {$($fields:tt)*}, $message:literal) => {
        match $loudness {
            $crate::errors::refusal_log::Loudness::Warn(suppressed) => tracing::warn!($($fields)*, suppressed, $message),
            $crate::errors::refusal_log::Loudness::Debug => tracing::debug!($($fields)*, $message),
        }
    };
}
pub(crate) use log_refusal;

#[cfg(test)]
mod tests {
    use super::Loudness::*;
    use super::*;

    #[test]
    fn a_cause_is_a_warning_once_a_minute() {
        let (log, start) = (RefusalLog::default(), SystemTime::UNIX_EPOCH + Duration::from_secs(1000));
        for (second, cause, expected) in [
            (0, "host a", Warn(0)),
            (0, "host a", Debug),
            (1, "host b", Warn(0)),
            (59, "host a", Debug),
            (60, "host a", Warn(2)),
            (60, "host a", Debug),
            (61, "host b", Warn(0)),
            (120, "host a", Warn(1)),
            // The clock was set back.
            (10, "host a", Warn(0)),
        ] {
            assert_eq!(log.count(cause, start + Duration::from_secs(second)), expected, "{second} {cause}");
        }
    }

    #[test]
    fn the_causes_are_bounded() {
        let (log, start) = (RefusalLog::default(), SystemTime::UNIX_EPOCH);
        let warnings = (0..1000).filter(|n| log.count(&format!("host {n}"), start) != Debug).count();
        // All others are one cause.
        assert_eq!(warnings, MAX_CAUSES + 1);
        assert_eq!(log.count("host 5000", start + INTERVAL), Warn(0), "the places are free after a minute");
        assert!(log.0.lock().causes.len() <= MAX_CAUSES);
    }

    #[test]
    fn the_label_is_the_reason_of_the_error_if_it_has_one() {
        for refusal in [
            Refusal::State,
            Refusal::NotApprover,
            Refusal::Busy,
            Refusal::Codec,
            Refusal::Version,
            Refusal::Diverged,
            Refusal::Used,
            Refusal::Store,
            Refusal::NoClaim,
            Refusal::RecordLost,
            Refusal::OutOfTime { limit: Duration::ZERO },
            Refusal::OutcomeUnknown { step: None },
            Refusal::InFlight { retry_after: Duration::ZERO },
            Refusal::OutOfTime { limit: Duration::ZERO },
            Refusal::Scope { needed: Vec::new() },
            Refusal::StepFailed { path: String::new(), cause: None },
            Refusal::Limit { name: "state", text: String::new() },
        ] {
            let error = refusal.to_error();
            let reason = error.data.as_ref().and_then(|data| data.get("reason")?.as_str());
            assert_eq!(reason, Some(Refusal::LABELS[refusal.label()]), "{refusal:?}");
        }
        assert_eq!(Refusal::LABELS[Refusal::Internal.label()], "internal");
    }
}
