//! Resources and templates of resources.

use crate::{
    Annotations, BlobOrText, CacheScope, Icon, InputResponses, Meta, ResourceContents, Ttl,
    members::optional_whole, tag::Complete, tag::Link,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A resource, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// Where it is.
    pub uri: String,
    /// For programs.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// For whom, how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Its size in bytes, before any encoding.
    #[serde(default, deserialize_with = "optional_whole", skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Pictures for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Resource {
    /// A resource with a URI and a name.
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

/// A resource inside a message, to be fetched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceLink {
    #[serde(rename = "type")]
    kind: Link,
    /// The resource. Its members stand beside `type`.
    #[serde(flatten)]
    pub resource: Resource,
}

impl ResourceLink {
    /// A link to this resource.
    pub fn new(resource: Resource) -> Self {
        Self { kind: Link, resource }
    }
}

/// A template of resources, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// An RFC 6570 template.
    pub uri_template: String,
    /// For programs.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the resources are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type of them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// For whom, how important.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Pictures for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ResourceTemplate {
    /// A template with a name.
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
}

/// The result of `resources/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourcesResult {
    /// Always `complete`.
    #[serde(default)]
    pub result_type: Complete,
    /// The resources of this page.
    pub resources: Vec<Resource>,
    /// Where to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// For how long the result may be kept.
    #[serde(default)]
    pub ttl_ms: Ttl,
    /// Who may share a kept result.
    #[serde(default)]
    pub cache_scope: CacheScope,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ListResourcesResult {
    /// One page, not to be kept.
    pub fn new(resources: Vec<Resource>) -> Self {
        Self {
            result_type: Complete,
            resources,
            next_cursor: None,
            ttl_ms: Ttl::default(),
            cache_scope: CacheScope::default(),
            meta: None,
            extra: Map::new(),
        }
    }
}

/// The result of `resources/templates/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourceTemplatesResult {
    /// Always `complete`.
    #[serde(default)]
    pub result_type: Complete,
    /// The templates of this page.
    pub resource_templates: Vec<ResourceTemplate>,
    /// Where to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// For how long the result may be kept.
    #[serde(default)]
    pub ttl_ms: Ttl,
    /// Who may share a kept result.
    #[serde(default)]
    pub cache_scope: CacheScope,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ListResourceTemplatesResult {
    /// One page, not to be kept.
    pub fn new(resource_templates: Vec<ResourceTemplate>) -> Self {
        Self {
            result_type: Complete,
            resource_templates,
            next_cursor: None,
            ttl_ms: Ttl::default(),
            cache_scope: CacheScope::default(),
            meta: None,
            extra: Map::new(),
        }
    }
}

/// The params of `resources/read`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceParams {
    /// Which resource.
    pub uri: String,
    /// The answers to the asks of the last leg.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The state of the last leg, exactly as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Version, identity and capabilities of the client.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ReadResourceParams {
    /// A first leg.
    pub fn new(uri: impl Into<String>, meta: Meta) -> Self {
        Self { uri: uri.into(), input_responses: None, request_state: None, meta }
    }
}

/// The result of `resources/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// Always `complete`.
    #[serde(default)]
    pub result_type: Complete,
    /// The contents: several for, say, a directory.
    pub contents: Vec<ResourceContents>,
    /// For how long the result may be kept.
    #[serde(default)]
    pub ttl_ms: Ttl,
    /// Who may share a kept result.
    #[serde(default)]
    pub cache_scope: CacheScope,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ReadResourceResult {
    /// These contents, not to be kept.
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

    /// The first contents, if they are text.
    pub fn first_text(&self) -> Option<&str> {
        match &self.contents.first()?.body {
            BlobOrText::Text(text) => Some(text),
            BlobOrText::Blob(_) => None,
        }
    }
}

impl fmt::Debug for ReadResourceParams {
    /// Neither state nor arguments nor answers: they do not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadResourceParams")
            .field("uri", &self.uri)
            .field("input_responses", &self.input_responses)
            .finish_non_exhaustive()
    }
}
