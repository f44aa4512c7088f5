//! `server/discover`, and the types that its result shares with other results: identity, icons, caching
//! hints.

use crate::{Meta, ProtocolVersion, ServerCapabilities, tag::Complete};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The result of `server/discover`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The result type: always `complete`.
    #[serde(default)]
    pub result_type: Complete,
    /// The protocol versions that the server supports.
    pub supported_versions: Vec<ProtocolVersion>,
    /// The capabilities that the server offers.
    pub capabilities: ServerCapabilities,
    /// Instructions for a model on the use of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The time for which the result may be cached, in milliseconds.
    #[serde(default)]
    pub ttl_ms: Ttl,
    /// The scope in which a cached result may be shared.
    #[serde(default)]
    pub cache_scope: CacheScope,
    /// Further metadata (`_meta`); contains the server's identity.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl DiscoverResult {
    /// Returns a result that must not be cached.
    pub fn new(supported_versions: Vec<ProtocolVersion>, capabilities: ServerCapabilities) -> Self {
        Self {
            result_type: Complete,
            supported_versions,
            capabilities,
            instructions: None,
            ttl_ms: Ttl::default(),
            cache_scope: CacheScope::default(),
            meta: None,
            extra: Map::new(),
        }
    }
}

/// A time to live in milliseconds; 0, the default, means "do not cache". A negative or fractional value from
/// a peer is read as the nearest whole number from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Ttl(pub u64);

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        // A float cast saturates: negative becomes 0.
        Ok(Self(number.as_u64().unwrap_or_else(|| number.as_f64().unwrap_or_default() as u64)))
    }
}

/// The scope in which a cached result may be shared. An unknown word is read as the narrower scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", from = "Cow<'_, str>")]
pub enum CacheScope {
    /// A cached result may be shared with anybody.
    Public,
    /// A cached result is for the principal that sent the request only. The default.
    #[default]
    Private,
}

impl From<Cow<'_, str>> for CacheScope {
    fn from(word: Cow<'_, str>) -> Self {
        if word == "public" { Self::Public } else { Self::Private }
    }
}

/// The name and version of an implementation. Self-reported: for display and logs, never for decisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// The name for programs.
    pub name: String,
    /// The title to display to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The version, in any format.
    pub version: String,
    /// The purpose of the implementation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The URL of a page with more information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// The icons of the implementation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Implementation {
    /// Returns an implementation with a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            version: version.into(),
            description: None,
            website_url: None,
            icons: Vec::new(),
            extra: Map::new(),
        }
    }

    /// Returns the name to display to a person: the title, or else the name.
    pub fn display_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    pub(crate) fn to_value(&self) -> Value {
        // Strings and JSON values: there is nothing in it that cannot be written.
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// An image by its URI (`https:` or `data:`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// The icon's URI. Untrusted input: check the scheme before you fetch the icon.
    pub src: String,
    /// The icon's media type, if the media type from the server of the icon is missing or generic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The icon's sizes such as `48x48`, or `any`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// The background that the icon is drawn for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Icon {
    /// Returns an icon without a media type, size or theme.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), mime_type: None, sizes: None, theme: None, extra: Map::new() }
    }
}

/// The background that an icon is drawn for. Unknown words are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum IconTheme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
    /// Another background, with its word on the wire.
    Other(String),
}

impl From<String> for IconTheme {
    fn from(word: String) -> Self {
        match word.as_str() {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::Other(word),
        }
    }
}

impl From<IconTheme> for String {
    fn from(theme: IconTheme) -> Self {
        match theme {
            IconTheme::Light => "light".to_owned(),
            IconTheme::Dark => "dark".to_owned(),
            IconTheme::Other(word) => word,
        }
    }
}
