//! Descriptions: the audience and the importance of contents, the roles of speakers, icons, and the identity of a client or a
//! server.

use crate::lenient::{icons, shown_text, sizes};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The intended audience of an item, its importance, and the time of its last change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// The roles that the item is intended for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// The importance, from 0 (optional) to 1 (required).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<serde_json::Number>,
    /// The time of the last change, in ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The role of a speaker. Unknown words are kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum Role {
    /// The person (`user`).
    User,
    /// The model (`assistant`).
    Assistant,
    /// Another role, with its word on the wire.
    Other(String),
}

impl Role {
    /// Returns the word on the wire.
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

/// The name and version of an implementation. Self-reported: for display and logs, never for decisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// The name for programs.
    pub name: String,
    /// The title to display to people.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The version, in any format.
    pub version: String,
    /// The purpose of the implementation.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The URL of a page with more information.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// The icons of the implementation.
    #[serde(default, deserialize_with = "icons", skip_serializing_if = "Vec::is_empty")]
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
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The icon's sizes such as `48x48`, or `any`.
    #[serde(default, deserialize_with = "sizes", skip_serializing_if = "Option::is_none")]
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

impl From<&str> for Icon {
    /// Returns the icon at this URI.
    fn from(src: &str) -> Self {
        Self::new(src)
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
