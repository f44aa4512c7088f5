//! The error of a step.

use antiphon_engine::StepFailure;
use serde_json::Value;
use std::fmt;

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
    /// step [in a transaction](crate::Ctx::in_transaction) is rolled back.
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

    pub(crate) fn unrecordable(cause: impl fmt::Display) -> Self {
        let message = format!("the step has run, but its result cannot be recorded: {cause}");
        Self { message, code: Some(Self::UNRECORDABLE.to_owned()), data: None, user_facing: false }
    }

    pub(crate) fn unrecordable_in_transaction(cause: impl fmt::Display) -> Self {
        let message = format!("the step was rolled back, because its result cannot be recorded: {cause}");
        Self { message, ..Self::unrecordable("") }
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
