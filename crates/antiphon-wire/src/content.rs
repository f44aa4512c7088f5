//! Content blocks; `type` selects the variant. Blocks of unknown types and unknown members are kept.

use crate::{
    Annotations, Meta, ResourceContents, ResourceLink,
    lenient::{annotations, flag},
    members::present,
    tag,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

/// One block of content.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ContentBlock {
    /// A text (`text`).
    Text(TextContent),
    /// An image (`image`).
    Image(ImageContent),
    /// An audio recording (`audio`).
    Audio(AudioContent),
    /// A link to a resource that the receiver can read (`resource_link`).
    ResourceLink(Box<ResourceLink>),
    /// A resource with its contents (`resource`).
    Resource(Box<EmbeddedResource>),
    /// A block of a type without a variant here, or one that does not decode, with all its members.
    Other(Map<String, Value>),
}

impl ContentBlock {
    /// Returns a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Returns an image block from base64 data of this media type.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(data, mime_type))
    }

    /// Returns an audio block from base64 data of this media type.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(data, mime_type))
    }

    /// Returns a block with the contents of a resource.
    pub fn resource(contents: ResourceContents) -> Self {
        Self::Resource(Box::new(EmbeddedResource::new(contents)))
    }

    /// Returns the text, if the block is a text.
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

macro_rules! blocks {
    ($($content:ident => $made:expr;)*) => { $(
        impl From<$content> for ContentBlock {
            fn from(content: $content) -> Self {
                $made(content)
            }
        }
    )* };
}

blocks! {
    TextContent => Self::Text;
    ImageContent => Self::Image;
    AudioContent => Self::Audio;
    ResourceLink => |link| Self::ResourceLink(Box::new(link));
    ResourceContents => Self::resource;
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
        let mut block = Value::Object(Map::deserialize(deserializer)?);
        let known =
            match block.get("type").and_then(Value::as_str) {
                Some("text") => without_copy(&mut block, "text", |block: &mut TextContent| &mut block.text)
                    .map(Self::Text),
                Some("image") => without_copy(&mut block, "data", |block: &mut ImageContent| &mut block.data)
                    .map(Self::Image),
                Some("audio") => without_copy(&mut block, "data", |block: &mut AudioContent| &mut block.data)
                    .map(Self::Audio),
                Some("resource_link") => Box::deserialize(&block).ok().map(Self::ResourceLink),
                Some("resource") => Box::deserialize(&block).ok().map(Self::Resource),
                _ => None,
            };
        Ok(known.unwrap_or_else(|| match block {
            Value::Object(members) => Self::Other(members),
            _ => Self::Other(Map::new()),
        }))
    }
}

/// Reads a block whose member `large` is a text that is moved, not copied. A block that does not decode stays as it is.
fn without_copy<T: de::DeserializeOwned>(
    block: &mut Value,
    large: &str,
    place: impl Fn(&mut T) -> &mut String,
) -> Option<T> {
    let Some(Value::String(text)) = block.get_mut(large) else { return None };
    let text = std::mem::take(text);
    match T::deserialize(&*block) {
        Ok(mut read) => {
            *place(&mut read) = text;
            Some(read)
        }
        Err(_) => {
            if let Some(place) = block.get_mut(large) {
                *place = Value::String(text);
            }
            None
        }
    }
}

/// Returns the `type` of a block.
pub(crate) fn type_of<E: de::Error>(members: &Map<String, Value>) -> Result<&str, E> {
    members.get("type").and_then(Value::as_str).ok_or_else(|| E::missing_field("type"))
}

/// Reads a block of a known type.
pub(crate) fn read<T: de::DeserializeOwned, E: de::Error>(members: Map<String, Value>) -> Result<T, E> {
    T::deserialize(Value::Object(members)).map_err(E::custom)
}

/// A text block (`text`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TextContent {
    #[serde(rename = "type")]
    kind: tag::Text,
    /// The text.
    pub text: String,
    /// The intended audience, the importance and the last change.
    #[serde(default, deserialize_with = "annotations", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl TextContent {
    /// Returns a text without annotations.
    pub fn new(text: impl Into<String>) -> Self {
        Self { kind: tag::Text, text: text.into(), annotations: None, meta: None, extra: Map::new() }
    }
}

/// An image block (`image`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageContent {
    #[serde(rename = "type")]
    kind: tag::Image,
    /// The bytes of the image, in base64.
    pub data: String,
    /// The media type of the image.
    pub mime_type: String,
    /// The intended audience, the importance and the last change.
    #[serde(default, deserialize_with = "annotations", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ImageContent {
    /// Returns an image from base64 data and a media type.
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

/// An audio block (`audio`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AudioContent {
    #[serde(rename = "type")]
    kind: tag::Audio,
    /// The bytes of the audio, in base64.
    pub data: String,
    /// The media type of the audio.
    pub mime_type: String,
    /// The intended audience, the importance and the last change.
    #[serde(default, deserialize_with = "annotations", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl AudioContent {
    /// Returns an audio block from base64 data and a media type.
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

/// A resource with its contents inside a message (`resource`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbeddedResource {
    #[serde(rename = "type")]
    kind: tag::Embedded,
    /// The contents of the resource.
    pub resource: ResourceContents,
    /// The intended audience, the importance and the last change.
    #[serde(default, deserialize_with = "annotations", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl EmbeddedResource {
    /// Returns a block with these contents.
    pub fn new(resource: ResourceContents) -> Self {
        Self { kind: tag::Embedded, resource, annotations: None, meta: None, extra: Map::new() }
    }
}

/// A model's request to call a tool (`tool_use`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUseContent {
    #[serde(rename = "type")]
    kind: tag::ToolUse,
    /// The identifier of this tool use.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments of the call.
    pub input: Map<String, Value>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolUseContent {
    /// Returns a tool use with this identifier, tool name and arguments.
    pub fn new(id: impl Into<String>, name: impl Into<String>, input: Map<String, Value>) -> Self {
        let (id, name) = (id.into(), name.into());
        Self { kind: tag::ToolUse, id, name, input, meta: None, extra: Map::new() }
    }
}

/// The result of a tool, for the model that requested the call (`tool_result`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultContent {
    #[serde(rename = "type")]
    kind: tag::ToolResult,
    /// The identifier of the tool use that this result belongs to.
    pub tool_use_id: String,
    /// The result as content blocks.
    pub content: Vec<ContentBlock>,
    /// The result as structured data.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// True if the tool failed.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ToolResultContent {
    /// Returns the result of the tool use with this identifier.
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
