//! Resources, their contents, and templates of resources.

use crate::{
    Annotations, CacheScope, Icon, InputResponses, Meta, Ttl,
    discover::list_result,
    lenient::{annotations, icons, list, or_default, shown_number, shown_text},
    tag::{Complete, Link},
    uri_template::{InvalidTemplate, UriTemplate},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use std::fmt;

/// A resource, as an entry of `resources/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// The URI of the resource.
    pub uri: String,
    /// The name, for programs.
    pub name: String,
    /// The title, for people.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description of the resource.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The audience and the importance.
    #[serde(default, deserialize_with = "annotations", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The size in bytes, before any encoding.
    #[serde(default, deserialize_with = "shown_number", skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
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

impl Resource {
    /// Creates a resource with a URI and a name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            annotations: None,
            size: None,
            icons: Vec::new(),
            meta: None,
            extra: Map::new(),
        }
    }
}

/// A link in a message to a resource that the reader can fetch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceLink {
    #[serde(rename = "type")]
    kind: Link,
    /// The resource. Its members are written beside `type`.
    #[serde(flatten)]
    pub resource: Resource,
}

impl ResourceLink {
    /// Creates a link to this resource.
    pub fn new(resource: Resource) -> Self {
        Self { kind: Link, resource }
    }
}

/// A template of resources, as an entry of `resources/templates/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The URI template (RFC 6570).
    pub uri_template: String,
    /// The name, for programs.
    pub name: String,
    /// The title, for people.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description of the resources.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of all resources of the template.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The audience and the importance.
    #[serde(default, deserialize_with = "annotations", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
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

impl ResourceTemplate {
    /// Creates a template with a name.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri_template: uri_template.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
            extra: Map::new(),
        }
    }

    /// Returns the URI with these values for the variables: [`UriTemplate::expand`]. A client reads the resource at this URI.
    ///
    /// ```
    /// # use serde_json::json;
    /// let template = antiphon_wire::ResourceTemplate::new("log://{service}{/path*}{?limit}", "log");
    /// let uri = template.expand(json!({"service": "api", "path": ["2026", "a b"], "limit": 5}))?;
    /// assert_eq!(uri, "log://api/2026/a%20b?limit=5");
    /// # Ok::<(), antiphon_wire::uri_template::InvalidTemplate>(())
    /// ```
    ///
    /// # Errors
    /// If the template is not of level 3 of RFC 6570, or if the values are not an object of texts, numbers, booleans and lists of them.
    pub fn expand(&self, values: impl Serialize) -> Result<String, InvalidTemplate> {
        UriTemplate::parse(&self.uri_template)?.expand(values)
    }
}

list_result! {
    /// The result of `resources/list`.
    ListResourcesResult {
        /// The resources of this page.
        resources: Vec<Resource>
    }
}

list_result! {
    /// The result of `resources/templates/list`.
    ListResourceTemplatesResult {
        /// The templates of this page.
        resource_templates: Vec<ResourceTemplate>
    }
}

/// The params of `resources/read`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceParams {
    /// The URI of the resource.
    pub uri: String,
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

impl ReadResourceParams {
    /// Creates the params of a first leg.
    pub fn new(uri: impl Into<String>, meta: Meta) -> Self {
        Self { uri: uri.into(), input_responses: None, request_state: None, meta }
    }
}

/// The result of `resources/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// The result type, always `complete`.
    #[serde(default, deserialize_with = "or_default")]
    pub result_type: Complete,
    /// The contents. A directory, for example, has several.
    #[serde(deserialize_with = "list")]
    pub contents: Vec<ResourceContents>,
    /// The time for which the result may be cached.
    #[serde(default, deserialize_with = "or_default")]
    pub ttl_ms: Ttl,
    /// The scope in which a cached result may be shared.
    #[serde(default, deserialize_with = "or_default")]
    pub cache_scope: CacheScope,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ReadResourceResult {
    /// Creates a result with these contents that must not be cached.
    pub fn new(contents: Vec<ResourceContents>) -> Self {
        Self {
            result_type: Complete,
            contents,
            ttl_ms: Ttl::default(),
            cache_scope: CacheScope::default(),
            meta: None,
            extra: Map::new(),
        }
    }

    /// Returns the first contents, if they are text.
    pub fn first_text(&self) -> Option<&str> {
        match &self.contents.first()?.body {
            BlobOrText::Text(text) => Some(text),
            BlobOrText::Blob(_) => None,
        }
    }
}

impl fmt::Debug for ReadResourceParams {
    /// Formats the value without state, arguments and answers, which do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadResourceParams")
            .field("uri", &self.uri)
            .field("input_responses", &self.input_responses)
            .finish_non_exhaustive()
    }
}

/// The contents of a resource: text, or bytes in base64.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// The resource's URI.
    pub uri: String,
    /// The resource's media type.
    pub mime_type: Option<String>,
    /// The contents themselves.
    pub body: BlobOrText,
    /// Further metadata (`_meta`).
    pub meta: Option<Meta>,
    /// Members this type does not name.
    pub extra: Map<String, Value>,
}

/// Text, or bytes in base64. In the protocol, the member's name separates the two.
#[derive(Clone, Debug, PartialEq)]
pub enum BlobOrText {
    /// Bytes in base64 (`blob`).
    Blob(String),
    /// Text (`text`).
    Text(String),
}

impl ResourceContents {
    /// Returns contents that are text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(uri, BlobOrText::Text(text.into()))
    }

    /// Returns contents that are bytes in base64.
    pub fn blob(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self::new(uri, BlobOrText::Blob(blob.into()))
    }

    fn new(uri: impl Into<String>, body: BlobOrText) -> Self {
        Self { uri: uri.into(), mime_type: None, body, meta: None, extra: Map::new() }
    }

    /// Returns the same contents with this media type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Returns the text, if the contents are text.
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
