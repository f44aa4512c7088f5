//! Checks answers before they are sent. An answer is parsed as the kind of ask that it answers.

use crate::asks::consent::show_url;
use antiphon_wire::{
    Action, AskKind, CreateMessageResult, ElicitResult, FieldFault, FormSchema, InputRequest, KnownAsk,
    KnownKind, ListRootsResult, escaped,
};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use std::{error::Error as StdError, fmt};

/// An error for an answer that does not fit its ask, which is a mistake of the callback or the program. It never
/// contains the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerError {
    key: String,
    fault: AnswerFault,
}

/// The fault of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerFault {
    /// No ask has this key.
    UnknownKey {
        /// The keys that are asked.
        asked: Vec<String>,
    },
    /// The answer has not the shape that this kind of ask needs.
    WrongKind(AskKind),
    /// These fields break a rule of the form.
    Fields(Vec<FieldFault>),
    /// An ask of this kind cannot be declined or cancelled; forms and URLs can.
    CannotDecline(AskKind),
    /// A root is not a `file://` URI.
    NotAFileRoot,
    /// The answer agrees to a URL that is not valid, or neither `http` nor `https`.
    /// [`any_url_scheme`](crate::ClientBuilder::any_url_scheme) permits other URLs.
    NotAWebUrl,
}

impl AnswerError {
    pub(crate) fn new(key: &str, fault: AnswerFault) -> Self {
        Self { key: key.to_owned(), fault }
    }

    /// The key of the ask.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The fault.
    pub fn fault(&self) -> &AnswerFault {
        &self.fault
    }

    /// The fields that break a rule of the form.
    pub fn fields(&self) -> &[FieldFault] {
        match &self.fault {
            AnswerFault::Fields(fields) => fields,
            _ => &[],
        }
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = escaped(&self.key);
        match &self.fault {
            AnswerFault::UnknownKey { asked } if asked.is_empty() => {
                write!(f, "`{key}` is not asked: nothing is")
            }
            AnswerFault::UnknownKey { asked } => {
                write!(f, "`{key}` is not asked; asked are `{}`", escaped(&asked.join("`, `")))
            }
            AnswerFault::WrongKind(kind) => write!(f, "the answer to `{key}` must be {}", shape(*kind)),
            AnswerFault::Fields(fields) => {
                write!(f, "the answer to `{key}` does not fit its form:")?;
                for (n, fault) in fields.iter().enumerate() {
                    let comma = if n == 0 { "" } else { "," };
                    write!(f, "{comma} `{}` {}", escaped(&fault.field), escaped(&fault.rule))?;
                }
                Ok(())
            }
            AnswerFault::CannotDecline(kind) => {
                write!(
                    f,
                    "`{key}` cannot be declined: {} have no such answer; give up the call",
                    plural(*kind)
                )
            }
            AnswerFault::NotAFileRoot => {
                write!(f, "the answer to `{key}` has a root that is not a `file://` URI")
            }
            AnswerFault::NotAWebUrl => {
                write!(
                    f,
                    "nobody can agree to `{key}`: it is not a valid http or https URL; decline or cancel it"
                )
            }
        }
    }
}

impl StdError for AnswerError {}

fn shape(kind: AskKind) -> &'static str {
    match kind.known() {
        Some(KnownKind::Form) => {
            r#"{"action": "accept", "content": {..}}, {"action": "decline"} or {"action": "cancel"}"#
        }
        Some(KnownKind::Url) => r#"{"action": "accept"}, {"action": "decline"} or {"action": "cancel"}"#,
        Some(KnownKind::Sampling) => "a message with `role`, `content` and `model`",
        Some(KnownKind::Roots) => r#"{"roots": [..]}"#,
        None => "a JSON object",
    }
}

/// The name of the kind, in the plural.
pub(crate) fn plural(kind: AskKind) -> &'static str {
    match kind.known() {
        Some(KnownKind::Form) => "forms",
        Some(KnownKind::Url) => "URLs",
        Some(KnownKind::Sampling) => "model messages",
        Some(KnownKind::Roots) => "root directories",
        None => "asks of this kind",
    }
}

/// The answer to an ask, checked, as it will be sent.
pub(crate) fn checked(
    key: &str,
    ask: &InputRequest,
    answer: &RawValue,
) -> Result<Box<RawValue>, AnswerError> {
    let wrong = || AnswerError::new(key, AnswerFault::WrongKind(ask.kind()));
    match ask.known() {
        Ok(KnownAsk::Form { requested_schema, .. }) => {
            let mut given: ElicitResult = read(answer).ok_or_else(wrong)?;
            let content = given.content.take();
            if given.action == Action::Accept {
                // > Clients **SHOULD** validate all responses against the provided schema
                given.content = Some(checked_form(key, requested_schema, &content.unwrap_or_default())?);
            }
            raw(&given).ok_or_else(wrong)
        }
        Ok(KnownAsk::Url { .. }) => {
            let mut given: ElicitResult = read(answer).ok_or_else(wrong)?;
            // > For URL mode: The `content` field is omitted
            // > The `content` field is typically omitted
            given.content = None;
            raw(&given).ok_or_else(wrong)
        }
        Ok(KnownAsk::Sampling(_)) => {
            read::<CreateMessageResult>(answer).ok_or_else(wrong)?;
            Ok(answer.to_owned())
        }
        Ok(KnownAsk::Roots) => {
            let given: ListRootsResult = read(answer).ok_or_else(wrong)?;
            // > The URI identifying the root. This *must* start with `file://` for now.
            if given.roots.iter().any(|root| !root.uri.starts_with("file://")) {
                return Err(AnswerError::new(key, AnswerFault::NotAFileRoot));
            }
            Ok(answer.to_owned())
        }
        // Only the server knows the shape of the answer. Every result is an object.
        Err(_) => {
            read::<Map<String, Value>>(answer).ok_or_else(wrong)?;
            Ok(answer.to_owned())
        }
    }
}

/// Refuses the consent to a URL that is neither `http` nor `https`.
///
/// > The `url` parameter **MUST** contain a valid URL.
pub(crate) fn refuse_other_schemes(
    key: &str,
    ask: &InputRequest,
    answer: &impl Serialize,
) -> Result<(), AnswerError> {
    let Ok(KnownAsk::Url { url, .. }) = ask.known() else { return Ok(()) };
    let given = raw(answer).and_then(|answer| read::<ElicitResult>(&answer));
    let agrees = given.is_some_and(|given| given.action == Action::Accept);
    if agrees && show_url(url).is_err() {
        return Err(AnswerError::new(key, AnswerFault::NotAWebUrl));
    }
    Ok(())
}

/// The content of a form, checked, defaults filled.
pub(crate) fn checked_form(
    key: &str,
    schema: &FormSchema,
    content: &impl Serialize,
) -> Result<Map<String, Value>, AnswerError> {
    let Ok(Value::Object(content)) = serde_json::to_value(content) else {
        return Err(AnswerError::new(key, AnswerFault::WrongKind(AskKind::Form)));
    };
    schema.check(content).map_err(|faults| AnswerError::new(key, AnswerFault::Fields(faults)))
}

/// The reason why it cannot be read is dropped: it may quote the answer.
fn read<T: serde::de::DeserializeOwned>(answer: &RawValue) -> Option<T> {
    serde_json::from_str(answer.get()).ok()
}

fn raw(answer: &impl Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(answer).ok()
}
