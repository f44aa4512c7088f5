//! The error of a question that has no answer.

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
