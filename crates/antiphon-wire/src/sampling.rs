//! Sampling: a message of the client's model.
//!
//! Deprecated in 2026-07-28 (new servers call a model provider directly); supported for peers that use sampling.

use crate::content::{read, type_of};
use crate::{AudioContent, ImageContent, Meta, Role, TextContent, Tool, ToolResultContent, ToolUseContent};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Number, Value};

/// The params of `sampling/createMessage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageParams {
    /// The conversation so far.
    pub messages: Vec<SamplingMessage>,
    /// The preferences of the server for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_preferences: Option<ModelPreferences>,
    /// The system prompt that the server prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The context to include: `none`, `thisServer` or `allServers`. The latter two need `sampling.context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_context: Option<String>,
    /// The sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Number>,
    /// The maximum number of tokens of the answer.
    pub max_tokens: Number,
    /// The sequences at which the model stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// Metadata for the provider of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The tools that the model may use; needs `sampling.tools`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// The rule for the use of tools by the model; needs `sampling.tools`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CreateMessageParams {
    /// Creates the params of these messages, for an answer of at most `max_tokens` tokens.
    pub fn new(messages: Vec<SamplingMessage>, max_tokens: u32) -> Self {
        Self {
            messages,
            model_preferences: None,
            system_prompt: None,
            include_context: None,
            temperature: None,
            max_tokens: max_tokens.into(),
            stop_sequences: None,
            metadata: None,
            tools: None,
            tool_choice: None,
            extra: Map::new(),
        }
    }
}

/// The rule for the use of tools by the model: optional, required or forbidden.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolChoice {
    /// The mode: `auto`, `required` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The preferences of the server for a model. The client selects the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelPreferences {
    /// The names of models, best first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints: Option<Vec<ModelHint>>,
    /// The priority of low cost, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_priority: Option<Number>,
    /// The priority of speed, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_priority: Option<Number>,
    /// The priority of intelligence, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intelligence_priority: Option<Number>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ModelPreferences {
    /// Adds the name of a model, or a part of it, behind the other names: the best one comes first.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<ModelHint>) -> Self {
        self.hints.get_or_insert_default().push(hint.into());
        self
    }

    /// Sets the priority of low cost, from 0 to 1. Other numbers are set to the nearest of the two.
    #[must_use]
    pub fn cost_priority(mut self, priority: f64) -> Self {
        self.cost_priority = number(priority);
        self
    }

    /// Sets the priority of speed, from 0 to 1. Other numbers are set to the nearest of the two.
    #[must_use]
    pub fn speed_priority(mut self, priority: f64) -> Self {
        self.speed_priority = number(priority);
        self
    }

    /// Sets the priority of intelligence, from 0 to 1. Other numbers are set to the nearest of the two.
    #[must_use]
    pub fn intelligence_priority(mut self, priority: f64) -> Self {
        self.intelligence_priority = number(priority);
        self
    }
}

/// Returns a priority as JSON, or `None` if it is not a number.
fn number(priority: f64) -> Option<Number> {
    Number::from_f64(priority.clamp(0.0, 1.0))
}

/// A model, or a family of models.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelHint {
    /// A part of the model's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ModelHint {
    /// Returns the hint with this name, or part of a name: `claude-sonnet`, for example.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), extra: Map::new() }
    }
}

impl From<&str> for ModelHint {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for ModelHint {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

/// One message of a conversation with a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SamplingMessage {
    /// The role of the speaker.
    pub role: Role,
    /// The content: one block, or several.
    pub content: SamplingContent,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl SamplingMessage {
    /// Creates a text message of the person.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: SamplingContent::text(text), meta: None, extra: Map::new() }
    }
}

/// The result of `sampling/createMessage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// The role of the speaker.
    pub role: Role,
    /// The content: one block, or several.
    pub content: SamplingContent,
    /// The name of the model.
    pub model: String,
    /// The reason for the end of the answer: `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or another word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CreateMessageResult {
    /// Creates the result with a text of this model.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content: SamplingContent::text(text),
            model: model.into(),
            stop_reason: Some("endTurn".into()),
            meta: None,
            extra: Map::new(),
        }
    }
}

/// The content of a message to or from a model. One block and a list of one block stay distinct, as sent.
#[derive(Clone, Debug, PartialEq)]
pub enum SamplingContent {
    /// A single block.
    One(SamplingBlock),
    /// A list of blocks.
    Many(Vec<SamplingBlock>),
}

impl SamplingContent {
    /// Creates a content of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::One(SamplingBlock::Text(TextContent::new(text)))
    }

    /// Returns the blocks.
    pub fn blocks(&self) -> &[SamplingBlock] {
        match self {
            Self::One(block) => std::slice::from_ref(block),
            Self::Many(blocks) => blocks,
        }
    }

    /// Returns the text of the first block, if that block is a text.
    pub fn first_text(&self) -> Option<&str> {
        match self.blocks().first()? {
            SamplingBlock::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl Serialize for SamplingContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(block) => block.serialize(serializer),
            Self::Many(blocks) => blocks.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SamplingContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        match Value::deserialize(deserializer)? {
            Value::Array(blocks) => blocks
                .into_iter()
                .map(|block| SamplingBlock::deserialize(block).map_err(D::Error::custom))
                .collect::<Result<_, _>>()
                .map(Self::Many),
            block => SamplingBlock::deserialize(block).map(Self::One).map_err(D::Error::custom),
        }
    }
}

/// One block of a conversation with a model. Its `type` determines the variant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SamplingBlock {
    /// A block of type `text`.
    Text(TextContent),
    /// A block of type `image`.
    Image(ImageContent),
    /// A block of type `audio`.
    Audio(AudioContent),
    /// A block of type `tool_use`.
    ToolUse(ToolUseContent),
    /// A block of type `tool_result`.
    ToolResult(ToolResultContent),
    /// A block of another type, with all its members.
    Other(Map<String, Value>),
}

impl Serialize for SamplingBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(content) => content.serialize(serializer),
            Self::Image(content) => content.serialize(serializer),
            Self::Audio(content) => content.serialize(serializer),
            Self::ToolUse(content) => content.serialize(serializer),
            Self::ToolResult(content) => content.serialize(serializer),
            Self::Other(members) => members.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SamplingBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = Map::deserialize(deserializer)?;
        match type_of(&members)? {
            "text" => read(members).map(Self::Text),
            "image" => read(members).map(Self::Image),
            "audio" => read(members).map(Self::Audio),
            "tool_use" => read(members).map(Self::ToolUse),
            "tool_result" => read(members).map(Self::ToolResult),
            _ => Ok(Self::Other(members)),
        }
    }
}
