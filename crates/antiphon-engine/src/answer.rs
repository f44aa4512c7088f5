//! The validation of answers: which answer fits its question, and what a person is asked again whose answer does not.
//!
//! All questions pass here, whether a handler awaits or returns them.

use crate::{limits::Limits, stop::StopReason};
use antiphon_wire::{
    Action, AskKind, CreateMessageResult, ElicitRequest, ElicitResult, InputRequest, ListRootsResult,
};
use std::fmt;

/// A verified answer, read as the kind of ask it answers.
#[derive(Clone)]
#[non_exhaustive]
pub enum Response {
    /// To a form or a URL.
    Elicit(ElicitResult),
    /// To a sampling ask.
    Sampling(Box<CreateMessageResult>),
    /// To a roots ask.
    Roots(ListRootsResult),
}

impl Response {
    /// Returns whether the person declined or went away.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Elicit(result) if result.action != Action::Accept)
    }

    /// The answer as it is recorded: as JSON.
    pub(crate) fn to_text(&self) -> Result<String, String> {
        let text = match self {
            Self::Elicit(result) => serde_json::to_string(result),
            Self::Sampling(result) => serde_json::to_string(result),
            Self::Roots(result) => serde_json::to_string(result),
        };
        text.map_err(|_| UNREADABLE.to_owned())
    }
}

impl fmt::Debug for Response {
    /// The kind only: answers do not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Elicit(_) => "Elicit(..)",
            Self::Sampling(_) => "Sampling(..)",
            Self::Roots(_) => "Roots(..)",
        })
    }
}

/// The reason for the person whose answer is not of the question's kind.
pub(crate) const UNREADABLE: &str = "The answer could not be read.";

/// The reason for the person whose answer is larger than what is left of the record.
pub(crate) fn too_long(room: usize) -> String {
    format!("The answers together are too long: this one may have {room} bytes.")
}

/// Checks an answer: its size, and whether it fits the question. Defaults are filled in, unknown fields dropped.
///
/// # Errors
/// The reason in words for the person: fields and rules, never values.
pub(crate) fn check(question: &InputRequest, text: &str, limits: &Limits) -> Result<Response, String> {
    let most = match question.kind() {
        AskKind::Form | AskKind::Url => limits.form_answer,
        _ => limits.sampling_answer,
    };
    if text.len() > most {
        return Err(format!("The answer must have at most {most} bytes."));
    }
    read_answer(question, text)
}

/// Reads one answer as the kind of ask it answers, defaults filled in.
///
/// # Errors
/// What is wrong with it, in words for the person: fields and rules, never values.
pub fn read_answer(question: &InputRequest, text: &str) -> Result<Response, String> {
    let unreadable = |_| UNREADABLE.to_owned();
    match question {
        InputRequest::Elicit(elicit) => {
            let mut result: ElicitResult = serde_json::from_str(text).map_err(unreadable)?;
            result.content = match (elicit, result.action) {
                (ElicitRequest::Form { requested_schema, .. }, Action::Accept) => {
                    let content = result.content.take().unwrap_or_default();
                    // > Servers **SHOULD** validate received data matches the requested schema
                    Some(requested_schema.check(&content).map_err(|faults| describe(&faults))?)
                }
                _ => None,
            };
            Ok(Response::Elicit(result))
        }
        InputRequest::CreateMessage(_) => {
            serde_json::from_str(text).map(Response::Sampling).map_err(unreadable)
        }
        InputRequest::ListRoots { .. } => serde_json::from_str(text).map(Response::Roots).map_err(unreadable),
        // A kind of ask that this server cannot have sent.
        _ => Err(UNREADABLE.to_owned()),
    }
}

/// The question once more, with the reason behind its message.
pub(crate) fn with_reason(question: InputRequest, reason: Option<&str>) -> InputRequest {
    match (question, reason) {
        (InputRequest::Elicit(elicit), Some(reason)) => {
            let message = format!("{}\n\n{reason}", elicit.message());
            InputRequest::Elicit(elicit.with_message(message))
        }
        (question, _) => question,
    }
}

/// The end of a call in which one question was asked too often. `times`: with the one that is due now.
pub(crate) fn asked_too_often(
    path: &str,
    times: u8,
    cause: Option<&str>,
    limits: &Limits,
) -> Option<StopReason> {
    if times <= limits.times_asked {
        return None;
    }
    let cause = cause.unwrap_or("Its text is another one each time.");
    let text = format!("`{path}` was asked {} times without an answer that fits. {cause}", times - 1);
    Some(StopReason::Limit { name: "times_asked", text })
}

fn describe(faults: &[antiphon_wire::FieldFault]) -> String {
    let rules: Vec<String> = faults.iter().take(8).map(ToString::to_string).collect();
    format!("{}.", rules.join("; "))
}
