//! Messages that exist only in the revisions up to 2025-11-25: the handshake, asks as requests of the server,
//! tasks of the earlier form, and a few notifications.
//!
//! Results, content, tools, prompts and resources are those of today with fewer members. The same types read them.

mod ask;
mod task;
mod task_draft;

pub use ask::{LegacyAsk, UrlElicitations, elicitation_id_of, progress_token_of};
pub use task::{
    LegacyCreateTaskResult, LegacyTask, ListTasksResult, RelatedTaskMetadata, TasksCapability,
    related_task_of,
};
pub use task_draft::{DraftTaskResult, TaskInputParams, with_related_task};

use crate::{
    ClientCapabilities, Implementation, LogLevel, Meta, ProtocolVersion, ServerCapabilities,
    lenient::or_default,
};
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::{Map, Value};

/// The params of `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeParams {
    /// The newest version that the client supports.
    pub protocol_version: ProtocolVersion,
    /// The capabilities of the client, for the whole session.
    #[serde(default)]
    pub capabilities: ClientCapabilities,
    /// The client's name and version.
    pub client_info: Implementation,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl InitializeParams {
    /// Creates the params of the first request of a client.
    pub fn new(
        protocol_version: ProtocolVersion,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        Self { protocol_version, capabilities, client_info, extra: Map::new() }
    }
}

/// The result of `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// The version of the session.
    ///
    /// > This may not match the version that the client requested. If the client cannot support this version, it MUST
    /// > disconnect.
    pub protocol_version: ProtocolVersion,
    /// The capabilities of the server.
    #[serde(default, deserialize_with = "or_default")]
    pub capabilities: ServerCapabilities,
    /// The server's name and version.
    #[serde(deserialize_with = "identity")]
    pub server_info: Implementation,
    /// Instructions for a model on the use of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Reads the identity of a server, which is for people. A version that is no text is empty.
fn identity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Implementation, D::Error> {
    let mut members = Map::deserialize(deserializer)?;
    if !members.get("version").is_some_and(Value::is_string) {
        members.insert("version".to_owned(), Value::from(""));
    }
    Implementation::deserialize(Value::Object(members)).map_err(de::Error::custom)
}

impl InitializeResult {
    /// Creates the result of a server, without instructions.
    pub fn new(
        protocol_version: ProtocolVersion,
        capabilities: ServerCapabilities,
        server_info: Implementation,
    ) -> Self {
        Self {
            protocol_version,
            capabilities,
            server_info,
            instructions: None,
            meta: None,
            extra: Map::new(),
        }
    }
}

/// The params of `logging/setLevel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SetLevelParams {
    /// The lowest level of log messages that the client requests.
    pub level: LogLevel,
}

impl SetLevelParams {
    /// Creates the params that request log messages from this level on.
    pub fn new(level: LogLevel) -> Self {
        Self { level }
    }
}

/// The params of `resources/subscribe` and `resources/unsubscribe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscribeParams {
    /// The URI of the resource.
    pub uri: String,
}

impl SubscribeParams {
    /// Creates the params for this resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}

/// The params of `notifications/elicitation/complete`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitationCompleteParams {
    /// The URL elicitation that is finished.
    pub elicitation_id: String,
}

impl ElicitationCompleteParams {
    /// Creates the params for a finished elicitation.
    pub fn new(elicitation_id: impl Into<String>) -> Self {
        Self { elicitation_id: elicitation_id.into() }
    }
}
