//! The audience and the importance of contents, and the roles of speakers.

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
