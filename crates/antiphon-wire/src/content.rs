//! Content blocks, decided by `type`. Blocks of unknown types and unknown members are kept.

use crate::{Meta, ResourceLink, members::present, tag};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

/// One block of content.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ContentBlock {
    /// `text`.
    Text(TextContent),
    /// `image`.
    Image(ImageContent),
    /// `audio`.
    Audio(AudioContent),
    /// `resource_link`: a resource to fetch.
    ResourceLink(Box<ResourceLink>),
    /// `resource`: a resource, here and now.
    Resource(Box<EmbeddedResource>),
    /// A type these types do not know, with all its members.
    Other(Map<String, Value>),
}

impl ContentBlock {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// A picture, as base64, of this media type.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// A sound, as base64, of this media type.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(data, mime_type))
    }

    /// The contents of a resource.
    pub fn resource(contents: ResourceContents) -> Self {
        Self::Resource(Box::new(EmbeddedResource::new(contents)))
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(content) => content.serialize(serializer),
            Self::Image(content) => content.serialize(serializer),
            Self::Audio(content) => content.serialize(serializer),
            Self::ResourceLink(content) => content.serialize(serializer),
            Self::Resource(content) => content.serialize(serializer),
            Self::Other(members) => members.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = Map::deserialize(deserializer)?;
        match type_of(&members)? {
            "text" => read(members).map(Self::Text),
            "image" => read(members).map(Self::Image),
            "audio" => read(members).map(Self::Audio),
            "resource_link" => read(members).map(Self::ResourceLink),
            "resource" => read(members).map(Self::Resource),
            _ => Ok(Self::Other(members)),
        }
    }
}

/// The `type` of a block.
pub(crate) fn type_of<E: de::Error>(members: &Map<String, Value>) -> Result<&str, E> {
    members.get("type").and_then(Value::as_str).ok_or_else(|| E::missing_field("type"))
}

/// Reads a block whose type is known.
pub(crate) fn read<T: de::DeserializeOwned, E: de::Error>(members: Map<String, Value>) -> Result<T, E> {
    T::deserialize(Value::Object(members)).map_err(E::custom)
}

/// Text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TextContent {
    #[serde(rename = "type")]
    kind: tag::Text,
    /// The text.
    pub text: String,
    /// For whom, how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl TextContent {
    /// A text without annotations.
    pub fn new(text: impl Into<String>) -> Self {
        Self { kind: tag::Text, text: text.into(), annotations: None, meta: None, extra: Map::new() }
    }
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageContent {
    #[serde(rename = "type")]
    kind: tag::Image,
    /// The bytes, in base64.
    pub data: String,
    /// Their media type.
    pub mime_type: String,
    /// For whom, how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ImageContent {
    /// A picture, as base64.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self {
            kind: tag::Image,
            data: data.into(),
            mime_type: mime_type.into(),
            annotations: None,
            meta: None,
            extra: Map::new(),
        }
    }
}

/// A sound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AudioContent {
    #[serde(rename = "type")]
    kind: tag::Audio,
    /// The bytes, in base64.
    pub data: String,
    /// Their media type.
    pub mime_type: String,
    /// For whom, how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl AudioContent {
    /// A sound, as base64.
    pub fn new(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self {
            kind: tag::Audio,
            data: data.into(),
            mime_type: mime_type.into(),
            annotations: None,
            meta: None,
            extra: Map::new(),
        }
    }
}

/// A resource inside a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbeddedResource {
    #[serde(rename = "type")]
    kind: tag::Embedded,
    /// The resource.
    pub resource: ResourceContents,
    /// For whom, how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl EmbeddedResource {
    /// This resource.
    pub fn new(resource: ResourceContents) -> Self {
        Self { kind: tag::Embedded, resource, annotations: None, meta: None, extra: Map::new() }
    }
}

/// A model wants to use a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUseContent {
    #[serde(rename = "type")]
    kind: tag::ToolUse,
    /// Identifies this use.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// With which arguments.
    pub input: Map<String, Value>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolUseContent {
    /// This use of this tool.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Map<String, Value>) -> Self {
        let (id, name) = (id.into(), name.into());
        Self { kind: tag::ToolUse, id, name, input, meta: None, extra: Map::new() }
    }
}

/// What a tool answered a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultContent {
    #[serde(rename = "type")]
    kind: tag::ToolResult,
    /// The use it answers.
    pub tool_use_id: String,
    /// The answer.
    pub content: Vec<ContentBlock>,
    /// The answer as data.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolResultContent {
    /// The answer to this use.
    pub fn new(tool_use_id: impl Into<String>, content: Vec<ContentBlock>) -> Self {
        Self {
            kind: tag::ToolResult,
            tool_use_id: tool_use_id.into(),
            content,
            structured_content: None,
            is_error: None,
            meta: None,
            extra: Map::new(),
        }
    }
}

/// The contents of a resource: text, or bytes in base64.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// Which resource.
    pub uri: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// The contents themselves.
    pub body: BlobOrText,
    /// Anything else.
    pub meta: Option<Meta>,
    /// Members this type does not name.
    pub extra: Map<String, Value>,
}

/// Text, or bytes in base64: the protocol tells them apart by the member's name.
#[derive(Clone, Debug, PartialEq)]
pub enum BlobOrText {
    /// `blob`, in base64.
    Blob(String),
    /// `text`.
    Text(String),
}

impl ResourceContents {
    /// Text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(uri, BlobOrText::Text(text.into()))
    }

    /// Bytes, in base64.
    pub fn blob(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self::new(uri, BlobOrText::Blob(blob.into()))
    }

    fn new(uri: impl Into<String>, body: BlobOrText) -> Self {
        Self { uri: uri.into(), mime_type: None, body, meta: None, extra: Map::new() }
    }

    /// The same contents, of this media type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            BlobOrText::Text(text) => Some(text),
            BlobOrText::Blob(_) => None,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContentsOnWire {
    uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blob: Option<String>,
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    meta: Option<Meta>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (text, blob) = match self.body.clone() {
            BlobOrText::Text(text) => (Some(text), None),
            BlobOrText::Blob(blob) => (None, Some(blob)),
        };
        ContentsOnWire {
            uri: self.uri.clone(),
            mime_type: self.mime_type.clone(),
            text,
            blob,
            meta: self.meta.clone(),
            extra: self.extra.clone(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = ContentsOnWire::deserialize(deserializer)?;
        let body = match (read.text, read.blob) {
            (Some(text), None) => BlobOrText::Text(text),
            (None, Some(blob)) => BlobOrText::Blob(blob),
            _ => return Err(de::Error::custom("resource contents have either `text` or `blob`")),
        };
        Ok(Self { uri: read.uri, mime_type: read.mime_type, body, meta: read.meta, extra: read.extra })
    }
}

/// For whom something is, how important it is, and when it changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// For whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// From 0, optional, to 1, required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<serde_json::Number>,
    /// An ISO 8601 time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Who speaks. Words that are not known are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// Somebody else.
    Other(String),
}

impl Role {
    /// The word on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for Role {
    fn from(word: String) -> Self {
        match word.as_str() {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            _ => Self::Other(word),
        }
    }
}

impl From<Role> for String {
    fn from(role: Role) -> Self {
        match role {
            Role::Other(word) => word,
            known => known.as_str().to_owned(),
        }
    }
}
