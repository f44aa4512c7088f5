//! The limits that the engine enforces, and the reasons for which a leg ends without a result of its handler.

use antiphon_wire::AskSupport;

/// The limits of one call. A leg that reaches a limit stops with [`StopReason::Limit`](crate::StopReason::Limit), which
/// names the limit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of requests of one call. Default: 16.
    pub legs: u16,
    /// The maximum number of questions in one round. Default: 64.
    pub asks: usize,
    /// The maximum number of times that one question is asked while its answers are invalid, its round has no answer at
    /// all, or its text changes. Default: 3.
    pub times_asked: u8,
    /// The maximum size of the answer to one form or URL, in bytes of JSON. Default: 64 KiB.
    pub form_answer: usize,
    /// The maximum size of one sampling or roots answer, in bytes of JSON. Default: 1 MiB.
    pub sampling_answer: usize,
    /// The maximum size of the record, in bytes. Default: 128 KiB.
    pub state: usize,
    /// The maximum size of the outcome of one step, in bytes of JSON. Default: 16 KiB.
    pub step_result: usize,
    /// The maximum number of legs of one call that end with state only; 255 for no limit. Default: 2.
    pub state_only_legs: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            legs: 16,
            asks: 64,
            times_asked: 3,
            form_answer: 64 * 1024,
            sampling_answer: 1024 * 1024,
            state: 128 * 1024,
            step_result: 16 * 1024,
            state_only_legs: 2,
        }
    }
}

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
