//! Why a leg ends without a result of its handler.

use antiphon_wire::AskSupport;

/// Why a leg ends though its handler has not returned. Nothing resolves for the handler from then on.
#[derive(Clone, Debug, PartialEq)]
pub enum StopReason {
    /// A mistake of the handler's author, in words for the log.
    Author(String),
    /// The handler does not come to what it came to before.
    Diverged {
        /// The step or question where it was noticed.
        path: String,
        /// The reason.
        reason: &'static str,
        /// The path taken, as keys and digests: for the log.
        record: String,
    },
    /// A step came to no outcome.
    StepFailed {
        /// The step.
        path: String,
        /// The cause, for the log.
        cause: String,
    },
    /// The client cannot be asked this.
    Capability {
        /// The question.
        path: String,
        /// What the client did not declare.
        missing: AskSupport,
    },
    /// The client did not do its part, in words for it.
    Client(String),
    /// A bound was reached.
    Limit {
        /// The bound's name.
        name: &'static str,
        /// The words for the caller.
        text: String,
    },
    /// The handler panicked, with this text if it had one.
    Panicked(Option<String>),
    /// The handler's time was over.
    OutOfTime,
}

impl StopReason {
    /// One sentence for the log.
    pub fn describe(&self) -> String {
        match self {
            Self::Author(text) | Self::Client(text) | Self::Limit { text, .. } => text.clone(),
            Self::Diverged { path, reason, record } => format!("`{path}`: {reason}; the record: {record}"),
            Self::StepFailed { path, cause } => format!("the step `{path}`: {cause}"),
            Self::Capability { path, .. } => format!("the client cannot be asked `{path}`"),
            Self::Panicked(text) => format!("it panicked: {}", text.as_deref().unwrap_or_default()),
            Self::OutOfTime => "it took longer than its time and was dropped".to_owned(),
        }
    }
}
