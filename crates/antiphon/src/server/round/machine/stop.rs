//! Why a leg ends without a result of its handler.

use crate::server::refusal::Refusal;

/// Why a leg ends though its handler has not returned. The handler does not learn of it: nothing resolves any more.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The author's mistake, in words for the log.
    Author(String),
    /// The handler does not come to what it came to before.
    Diverged { path: String, why: &'static str, record: String },
    /// A step came to no outcome.
    StepFailed { path: String, cause: String },
    /// A bound was reached.
    Limit { name: &'static str, text: String },
}

impl Stop {
    /// Tells the log, and what the caller is told.
    pub(crate) fn refuse(self, target: &str, call: Option<String>) -> Refusal {
        match self {
            Self::Author(cause) => {
                tracing::error!(target, call, %cause, "a handler asks in a way that cannot be");
                Refusal::Internal
            }
            Self::Diverged { path, why, record } => {
                tracing::error!(target, call, path, why, record, "a handler takes another path than before");
                Refusal::Diverged
            }
            Self::StepFailed { path, cause } => {
                tracing::error!(target, call, path, %cause, "a step came to no outcome");
                Refusal::StepFailed { path }
            }
            Self::Limit { name, text } => {
                tracing::error!(target, call, name, %text, "a bound was reached");
                Refusal::Limit { name, text }
            }
        }
    }
}
