//! The validation of answers, and the reason that a person reads when an answer is invalid.
//!
//! All answers pass through this module, for awaited questions and for questions asked by hand.

use crate::limits::{Limits, StopReason};
use antiphon_wire::{Action, CreateMessageResult, ElicitResult, InputRequest, KnownAsk, ListRootsResult};
use std::fmt;

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
