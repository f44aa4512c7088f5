//! The members of a request's `params` that servers read for any method, borrowed from the message.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The members of `params` that a server reads for any method. A member that is `null` is absent.
///
/// Most members stay text, because their type depends on the method.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RequestParams<'a> {
    /// The metadata; [`RequestMeta`](crate::RequestMeta) reads it.
    #[serde(rename = "_meta", borrow, default)]
    pub meta: Option<&'a RawValue>,
    /// The name of a tool or prompt.
    #[serde(borrow, default)]
    pub name: Option<StringMember<'a>>,
    /// The URI of a resource.
    #[serde(borrow, default)]
    pub uri: Option<StringMember<'a>>,
    /// The id of a task.
    #[serde(borrow, default)]
    pub task_id: Option<StringMember<'a>>,
    /// The arguments of a tool or prompt.
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
    /// The answers to the questions of the last round.
    #[serde(borrow, default)]
    pub input_responses: Option<&'a RawValue>,
    /// The state of the call, as the last round carried it.
    #[serde(borrow, default)]
    pub request_state: Option<&'a RawValue>,
    /// The wish for a task: [`TaskMetadata`](crate::TaskMetadata) reads it. Only in 2025-11-25, and in the draft after that
    /// revision.
    #[serde(borrow, default)]
    pub task: Option<&'a RawValue>,
    /// The cursor of a page of a list.
    #[serde(borrow, default)]
    pub cursor: Option<&'a RawValue>,
}

/// A member that has to be a string, decoded once.
///
/// Another value is not an error of the message: the method that needs the string reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StringMember<'a> {
    /// The string.
    Text(Cow<'a, str>),
    /// Another value, or a string with half of a surrogate pair.
    NotAString,
}

impl StringMember<'_> {
    /// The string, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::NotAString => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for StringMember<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // serde borrows a `Cow` only inside of a type that says so.
        #[derive(Deserialize)]
        struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
        let text = <&'a RawValue>::deserialize(deserializer)?.get();
        Ok(serde_json::from_str(text).map_or(Self::NotAString, |Text(text)| Self::Text(text)))
    }
}
