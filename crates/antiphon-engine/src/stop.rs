//! The reasons for which a leg ends without a result of its handler.

use antiphon_wire::AskSupport;

/// The reason for which a leg ends before its handler has returned. No future of the handler resolves after that.
#[derive(Clone, Debug, PartialEq)]
pub enum StopReason {
    /// A mistake of the handler's author. The text is for the log.
    Author(String),
    /// The handler does not reach an entry that it reached on an earlier leg.
    Diverged {
        /// The path of the step or question where the engine found the difference.
        path: String,
        /// The reason.
        reason: &'static str,
        /// The entries of the record, as keys and digests, for the log.
        record: String,
    },
    /// A step ended without an outcome.
    StepFailed {
        /// The path of the step.
        path: String,
        /// The cause, for the log.
        cause: String,
    },
    /// The client did not declare a capability that the question needs.
    Capability {
        /// The path of the question.
        path: String,
        /// The missing capabilities.
        missing: AskSupport,
    },
    /// The client sent nothing valid. The text is for the client.
    Client(String),
    /// The call reached a limit.
    Limit {
        /// The name of the limit, a field of [`Limits`](crate::Limits).
        name: &'static str,
        /// The text for the caller.
        text: String,
    },
    /// The handler panicked. The text is the panic's message, if it is a string.
    Panicked(Option<String>),
    /// The handler took longer than its time limit.
    OutOfTime,
    /// A step began in an earlier run of this leg, whose process died. Nobody knows whether it had its effect.
    OutcomeUnknown {
        /// The path of the step.
        path: String,
    },
    /// The store did not confirm the record of a step. The text is for the log.
    Store(String),
    /// Another run of this leg has taken it over.
    TakenOver,
}

impl StopReason {
    /// Returns whether the records of this leg's steps are in a store, where the next run of the same leg finds them.
    pub fn is_about_the_store(&self) -> bool {
        matches!(self, Self::OutcomeUnknown { .. } | Self::Store(_) | Self::TakenOver)
    }

    /// Returns one sentence for the log.
    pub fn describe(&self) -> String {
        match self {
            Self::Author(text) | Self::Client(text) | Self::Limit { text, .. } => text.clone(),
            Self::Diverged { path, reason, record } => format!("`{path}`: {reason}; the record: {record}"),
            Self::StepFailed { path, cause } => format!("the step `{path}`: {cause}"),
            Self::Capability { path, .. } => format!("the client cannot be asked `{path}`"),
            Self::Panicked(text) => format!("the handler panicked: {}", text.as_deref().unwrap_or_default()),
            Self::OutOfTime => "the handler took longer than its time limit and was dropped".to_owned(),
            Self::OutcomeUnknown { path } => format!("the outcome of the step `{path}` is unknown"),
            Self::Store(cause) => format!("the store did not confirm a step: {cause}"),
            Self::TakenOver => "another run of this leg has taken it over".to_owned(),
        }
    }
}
