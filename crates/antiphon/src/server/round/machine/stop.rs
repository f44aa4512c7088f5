//! Why a leg ends without a result of its handler.

use crate::server::refusal::Refusal;
use antiphon_wire::AskSupport;

/// Why a leg ends though its handler has not returned. The handler does not learn of it: nothing resolves any more.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The author's mistake, in words for the log.
    Author(String),
    /// The handler does not come to what it came to before.
    Diverged { path: String, why: &'static str, record: String },
    /// A step came to no outcome.
    StepFailed { path: String, cause: String },
    /// The client cannot be asked this.
    Capability { path: String, missing: AskSupport },
    /// The client did not do its part, in words for it.
    Client(String),
    /// A bound was reached.
    Limit { name: &'static str, text: String },
}

impl Stop {
    /// What the log is told, in one sentence.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Author(text) | Self::Client(text) | Self::Limit { text, .. } => text.clone(),
            Self::Diverged { path, why, record } => format!("`{path}`: {why}; the record: {record}"),
            Self::StepFailed { path, cause } => format!("the step `{path}`: {cause}"),
            Self::Capability { path, .. } => format!("the client cannot be asked `{path}`"),
        }
    }

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
            Self::Capability { path, missing } => {
                tracing::warn!(target, call, path, ?missing, "a session's client cannot be asked this");
                Refusal::Capability { missing }
            }
            Self::Client(text) => {
                // Its words, in quotes.
                tracing::warn!(target, call, ?text, "a session's client did not answer");
                Refusal::Told(text)
            }
            Self::Limit { name, text } => {
                tracing::error!(target, call, name, %text, "a bound was reached");
                Refusal::Limit { name, text }
            }
        }
    }
}
