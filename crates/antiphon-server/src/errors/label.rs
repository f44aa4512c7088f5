//! The labels of refusals, by which metrics count them and log lines name them.

use super::refusal::Refusal;

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

#[cfg(test)]
mod tests {
    use super::*;

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
            Refusal::OutOfTime { limit: std::time::Duration::ZERO },
            Refusal::OutcomeUnknown { step: None },
            Refusal::InFlight { retry_after: std::time::Duration::ZERO },
            Refusal::OutOfTime { limit: std::time::Duration::ZERO },
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
