//! Prompts: the list, and one prompt with its messages.

use crate::{
    ContentBlock, Icon, InputResponses, Meta, Role,
    discover::list_result,
    lenient::{flag, icons, list, or_default, shown_text},
    tag::Complete,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use std::fmt;

/// A prompt, as an entry of `prompts/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Prompt {
    /// The name, for programs.
    pub name: String,
    /// The title, for people.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The purpose of the prompt.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments of the prompt.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// The icons.
    #[serde(default, deserialize_with = "icons", skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Prompt {
    /// Creates a prompt without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            arguments: Vec::new(),
            icons: Vec::new(),
            meta: None,
            extra: Map::new(),
        }
    }
}

/// An argument of a prompt. All arguments are strings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name, for programs.
    pub name: String,
    /// The title, for people.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description of the argument.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `true` if the argument is required. Absent means `false`.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl PromptArgument {
    /// Creates an optional argument.
    pub fn optional(name: impl Into<String>) -> Self {
        Self { name: name.into(), title: None, description: None, required: None, extra: Map::new() }
    }

    /// Creates a required argument.
    pub fn required(name: impl Into<String>) -> Self {
        Self { required: Some(true), ..Self::optional(name) }
    }
}

list_result! {
    /// The result of `prompts/list`.
    ListPromptsResult {
        /// The prompts of this page.
        prompts: Vec<Prompt>
    }
}

/// The params of `prompts/get`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptParams {
    /// The name of the prompt.
    pub name: String,
    /// The arguments, as the text that was sent: an object of strings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// The answers to the asks of the last leg.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The state of the last leg, exactly as it was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The version, identity and capabilities of the client.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl GetPromptParams {
    /// Creates the params of a first leg.
    pub fn new(name: impl Into<String>, arguments: Option<Box<RawValue>>, meta: Meta) -> Self {
        Self { name: name.into(), arguments, input_responses: None, request_state: None, meta }
    }
}

/// The result of `prompts/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptResult {
    /// The result type, always `complete`.
    #[serde(default, deserialize_with = "or_default")]
    pub result_type: Complete,
    /// The purpose of the prompt.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages, in order.
    #[serde(deserialize_with = "list")]
    pub messages: Vec<PromptMessage>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl GetPromptResult {
    /// Creates a result with these messages.
    pub fn new(messages: Vec<PromptMessage>) -> Self {
        Self { result_type: Complete, description: None, messages, meta: None, extra: Map::new() }
    }
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// The role of the speaker.
    pub role: Role,
    /// The content of the message.
    pub content: ContentBlock,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl PromptMessage {
    /// Creates a message of the person.
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self { role: Role::User, content: content.into(), extra: Map::new() }
    }

    /// Creates a message of the model.
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        Self { role: Role::Assistant, content: content.into(), extra: Map::new() }
    }
}

impl fmt::Debug for GetPromptParams {
    /// Formats the value without state, arguments and answers, which do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetPromptParams")
            .field("name", &self.name)
            .field("input_responses", &self.input_responses)
            .finish_non_exhaustive()
    }
}
