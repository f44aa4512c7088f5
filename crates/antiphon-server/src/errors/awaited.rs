//! The errors of what a handler awaits: a question that has no answer, and a step that failed.

use antiphon_engine::StepFailure;
use serde_json::{Value, json};
use std::fmt;

/// The maximum length of a question's excerpt in an error, in characters.
const EXCERPT: usize = 120;

/// The reason for which an awaited question gave no answer. The text is for the caller: a handler that returns this
/// error with `?` shows it to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// The person declined.
    #[non_exhaustive]
    Declined {
        /// The question's key, scopes included.
        key: String,
        /// The question.
        message: String,
    },
    /// The person dismissed the question without choosing.
    #[non_exhaustive]
    Cancelled {
        /// The question's key, scopes included.
        key: String,
        /// The question.
        message: String,
    },
    /// The answer did not come within its time.
    #[non_exhaustive]
    Expired {
        /// The question's key, scopes included.
        key: String,
    },
    /// The client does not support this kind of question, and the question has an `or_refuse`.
    #[non_exhaustive]
    Unsupported {
        /// The question's key, scopes included.
        key: String,
        /// The text given to `or_refuse`.
        words: Option<String>,
    },
}

impl AskError {
    pub(crate) fn declined(key: &str, message: &str) -> Self {
        Self::Declined { key: key.to_owned(), message: excerpt(message) }
    }

    pub(crate) fn cancelled(key: &str, message: &str) -> Self {
        Self::Cancelled { key: key.to_owned(), message: excerpt(message) }
    }

    pub(crate) fn expired(key: &str) -> Self {
        Self::Expired { key: key.to_owned() }
    }

    pub(crate) fn unsupported(key: &str, words: Option<String>) -> Self {
        Self::Unsupported { key: key.to_owned(), words }
    }

    /// The question's key, scopes included.
    pub fn key(&self) -> &str {
        match self {
            Self::Declined { key, .. }
            | Self::Cancelled { key, .. }
            | Self::Expired { key }
            | Self::Unsupported { key, .. } => key,
        }
    }
}

fn excerpt(message: &str) -> String {
    match message.char_indices().nth(EXCERPT) {
        None => message.to_owned(),
        Some((end, _)) => format!("{}..", &message[..end]),
    }
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declined { key, message } if message.is_empty() => {
                write!(f, "The user declined to answer `{key}`")
            }
            Self::Cancelled { key, message } if message.is_empty() => {
                write!(f, "The user dismissed `{key}` without an answer")
            }
            Self::Declined { key, message } => {
                write!(f, "The user declined to answer `{key}`: {message}")
            }
            Self::Cancelled { key, message } => {
                write!(f, "The user dismissed `{key}` without an answer: {message}")
            }
            Self::Expired { key } => write!(f, "The user did not answer `{key}` in time"),
            Self::Unsupported { words: Some(words), .. } => f.write_str(words),
            Self::Unsupported { key, words: None } => write!(f, "The client cannot be asked `{key}`"),
        }
    }
}

impl std::error::Error for AskError {}

/// The name of the limit for the result of a step.
const STEP_RESULT: &str = "step_result";

/// The reason for which the result of a step cannot be recorded.
#[derive(Debug)]
pub(crate) enum Unrecordable {
    /// The value has so many bytes of JSON.
    TooLarge { bytes: usize, limit: usize },
    /// The error has so many bytes.
    ErrorTooLarge { bytes: usize, limit: usize },
    /// The value cannot be written as JSON, or not be read again.
    NotJson(String),
}

impl fmt::Display for Unrecordable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes, limit } => {
                write!(f, "it takes {bytes} bytes of JSON; the limit is {limit}")
            }
            Self::ErrorTooLarge { bytes, limit } => {
                write!(f, "its error takes {bytes} bytes; the limit is {limit}")
            }
            Self::NotJson(fault) => f.write_str(fault),
        }
    }
}

/// The error of a step: the same on the first run and when it is read from the record, for any error of the step's
/// function. A handler's caller receives the text only if the function's error had a text for the caller, as with
/// [`Error::user_facing`](crate::Error::user_facing).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StepError {
    /// The text of the error.
    pub message: String,
    /// The code for the program, such as `card_declined`.
    pub code: Option<String>,
    /// Further data for the program.
    pub data: Option<Value>,
    pub(crate) user_facing: bool,
}

impl StepError {
    /// The code of a step whose outcome could not be recorded: its effect has happened, and is not repeated. The effect of a
    /// step [in a transaction](crate::Ctx::in_transaction) is rolled back. If the result is too large, `data` is
    /// `{"limit": "step_result"}`, and a handler that fails with this error ends its call with that limit.
    pub const UNRECORDABLE: &'static str = "unrecordable";

    /// Returns an error with this text, which the caller may read.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: None, data: None, user_facing: true }
    }

    /// Sets the code for the program.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Sets further data for the program.
    #[must_use]
    pub fn data(mut self, data: impl Into<Value>) -> Self {
        self.data = Some(data.into());
        self
    }

    pub(crate) fn unrecordable(cause: &Unrecordable) -> Self {
        let message = format!("the step has run, but its result cannot be recorded: {cause}");
        let data = match cause {
            Unrecordable::TooLarge { .. } | Unrecordable::ErrorTooLarge { .. } => {
                Some(json!({ "limit": STEP_RESULT }))
            }
            Unrecordable::NotJson(_) => None,
        };
        Self { message, code: Some(Self::UNRECORDABLE.to_owned()), data, user_facing: false }
    }

    pub(crate) fn unrecordable_in_transaction(cause: &Unrecordable) -> Self {
        let message = format!("the step was rolled back, because its result cannot be recorded: {cause}");
        Self { message, ..Self::unrecordable(cause) }
    }

    /// Returns the name of the limit that the result of the step exceeds.
    pub(crate) fn limit(&self) -> Option<&'static str> {
        let limit =
            self.data.as_ref().filter(|_| self.code.as_deref() == Some(Self::UNRECORDABLE))?.get("limit")?;
        (limit == STEP_RESULT).then_some(STEP_RESULT)
    }

    pub(crate) fn recorded(&self) -> StepFailure {
        StepFailure {
            message: self.message.clone(),
            code: self.code.clone(),
            data: self.data.as_ref().map(Value::to_string),
            user_facing: self.user_facing,
        }
    }
}

impl From<StepFailure> for StepError {
    fn from(failure: StepFailure) -> Self {
        let StepFailure { message, code, data, user_facing } = failure;
        // The text was written from a value, so it parses.
        let data = data.and_then(|text: String| serde_json::from_str(&text).ok());
        Self { message, code, data, user_facing }
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StepError {}
