//! The limits that the engine enforces, the reasons for which a leg ends without a result of its handler, and the validation of
//! answers, with the reason that a person reads when one is invalid.
//!
//! All answers are validated here, for awaited questions and for questions asked by hand.

use antiphon_wire::{
    Action, AskSupport, CreateMessageResult, ElicitResult, InputRequest, KnownAsk, ListRootsResult,
};
use std::fmt;

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

/// A valid answer, decoded as the kind of its question.
#[derive(Clone)]
#[non_exhaustive]
pub enum InputResponse {
    /// The answer to a form or a URL.
    Elicit(ElicitResult),
    /// The answer to a sampling request.
    Sampling(Box<CreateMessageResult>),
    /// The answer to a roots request.
    Roots(ListRootsResult),
}

impl InputResponse {
    /// Returns `true` if the person declined or cancelled.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Elicit(result) if result.action != Action::Accept)
    }

    /// Returns the answer as JSON, as it is recorded.
    pub(crate) fn to_text(&self) -> Result<String, String> {
        let text = match self {
            Self::Elicit(result) => serde_json::to_string(result),
            Self::Sampling(result) => serde_json::to_string(result),
            Self::Roots(result) => serde_json::to_string(result),
        };
        text.map_err(|_| UNREADABLE.to_owned())
    }
}

impl fmt::Debug for InputResponse {
    /// Writes the kind only, because answers do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Elicit(_) => "Elicit(..)",
            Self::Sampling(_) => "Sampling(..)",
            Self::Roots(_) => "Roots(..)",
        })
    }
}

/// The text for the person if the answer is not of the question's kind.
pub(crate) const UNREADABLE: &str = "The answer could not be read.";

/// Returns the text for the person if the answer is larger than the space left in the record.
pub(crate) fn too_long(room: usize) -> String {
    format!("The answers together are too long: this one may have {room} bytes.")
}

/// Checks the size of an answer and validates it against the question. Fills in defaults and drops unknown fields.
///
/// # Errors
/// The reason, as text for the person. The text names fields and rules and contains no values.
pub fn check(question: &InputRequest, text: &str, limits: &Limits) -> Result<InputResponse, String> {
    let most = match question.known() {
        Ok(KnownAsk::Form { .. } | KnownAsk::Url { .. }) => limits.form_answer,
        Ok(KnownAsk::Sampling(_) | KnownAsk::Roots) | Err(_) => limits.sampling_answer,
    };
    if text.len() > most {
        return Err(format!("The answer must have at most {most} bytes."));
    }
    read_answer(question, text)
}

/// Decodes one answer as the kind of its question. Fills in defaults.
///
/// # Errors
/// The reason, as text for the person. The text names fields and rules and contains no values.
pub fn read_answer(question: &InputRequest, text: &str) -> Result<InputResponse, String> {
    let unreadable = |_| UNREADABLE.to_owned();
    match question.known() {
        Ok(KnownAsk::Form { requested_schema, .. }) => {
            let mut result: ElicitResult = serde_json::from_str(text).map_err(unreadable)?;
            let content = result.content.take();
            if result.action == Action::Accept {
                // > Servers **SHOULD** validate received data matches the requested schema
                let checked = requested_schema.check(content.unwrap_or_default());
                result.content = Some(checked.map_err(|faults| describe(&faults))?);
            }
            Ok(InputResponse::Elicit(result))
        }
        Ok(KnownAsk::Url { .. }) => {
            let mut result: ElicitResult = serde_json::from_str(text).map_err(unreadable)?;
            result.content = None;
            Ok(InputResponse::Elicit(result))
        }
        Ok(KnownAsk::Sampling(_)) => {
            serde_json::from_str(text).map(InputResponse::Sampling).map_err(unreadable)
        }
        Ok(KnownAsk::Roots) => serde_json::from_str(text).map(InputResponse::Roots).map_err(unreadable),
        // This server cannot have sent a question of another kind.
        Err(_) => Err(UNREADABLE.to_owned()),
    }
}

/// Returns the question with the reason appended to its message.
pub(crate) fn with_reason(question: InputRequest, reason: Option<&str>) -> InputRequest {
    let Some(reason) = reason else { return question };
    let message = match question.known() {
        Ok(KnownAsk::Form { message, .. } | KnownAsk::Url { message, .. }) => {
            format!("{message}\n\n{reason}")
        }
        // No person reads them.
        Ok(KnownAsk::Sampling(_) | KnownAsk::Roots) | Err(_) => return question,
    };
    match question {
        InputRequest::Elicit(elicit) => InputRequest::Elicit(elicit.with_message(message)),
        other => other,
    }
}

/// The cause, for the caller, if no answer to the question came.
pub(crate) const NO_ANSWER: &str = "No answer to it came.";

/// Returns the reason to stop if the question was asked more often than the limit allows. `times` includes the time
/// that is due now. `cause` is `None` if the question's text has changed.
pub(crate) fn asked_too_often(
    path: &str,
    times: u8,
    cause: Option<&str>,
    limits: &Limits,
) -> Option<StopReason> {
    if times <= limits.times_asked {
        return None;
    }
    let cause = cause.unwrap_or("Its text changes each time.");
    let text = format!("`{path}` was asked {} times without an answer that fits. {cause}", times - 1);
    Some(StopReason::Limit { name: "times_asked", text })
}

fn describe(faults: &[antiphon_wire::FieldFault]) -> String {
    let rules: Vec<String> = faults.iter().take(8).map(ToString::to_string).collect();
    format!("{}.", rules.join("; "))
}
