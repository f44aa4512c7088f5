//! `server/discover`, and what its result shares with others: identity, icons, caching hints.

use crate::{Meta, ProtocolVersion, ServerCapabilities, tag::Complete};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The result of `server/discover`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// Always `complete`.
    #[serde(default)]
    pub result_type: Complete,
    /// The versions the server speaks.
    pub supported_versions: Vec<ProtocolVersion>,
    /// What the server offers.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// For how long the result may be kept.
    #[serde(default)]
    pub ttl_ms: Ttl,
    /// Who may share a kept result.
    #[serde(default)]
    pub cache_scope: CacheScope,
    /// Holds the server's identity.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl DiscoverResult {
    /// A result that is not to be kept.
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

/// A time to live in milliseconds; 0, the default, means "do not keep". What a peer sends as negative or
/// fractional is read as the nearest whole number from 0.
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

/// Who may share a kept result. A word that is not known is read as the narrower scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", from = "Cow<'_, str>")]
pub enum CacheScope {
    /// Anybody.
    Public,
    /// Only the principal who asked. The default.
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
    /// For programs.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Any format.
    pub version: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where to learn more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Pictures for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Implementation {
    /// A name and a version.
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

    /// What a person should read: the title, or else the name.
    pub fn display_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    pub(crate) fn to_value(&self) -> Value {
        // Strings and JSON values: there is nothing in it that cannot be written.
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// A picture, by its URI (`https:` or `data:`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// Where it is. Untrusted input: check the scheme before you fetch it.
    pub src: String,
    /// Its media type, where the server's own is missing or generic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Sizes such as `48x48`, or `any`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// The background it is drawn for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Icon {
    /// An icon of no stated type, size or theme.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), mime_type: None, sizes: None, theme: None, extra: Map::new() }
    }
}

/// The background an icon is drawn for. Words that are not known are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum IconTheme {
    /// A light one.
    Light,
    /// A dark one.
    Dark,
    /// Another one.
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
