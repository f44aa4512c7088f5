//! The `_meta` object: metadata beside the members of params and results.

use crate::{
    AskSupport, ClientCapabilities, Implementation, ProtocolVersion, RequestId,
    capability::DeclaredCapabilities, lenient::members_or_empty, members::Object,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, value::RawValue};
use std::borrow::Cow;

/// The reserved keys.
pub mod keys {
    /// The protocol version of a request. Required.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The client's name and version. Optional.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The client's capabilities. Required.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The lowest level of log messages that the client requests. Optional.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The server's name and version, in results.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The id of the `subscriptions/listen` request, in every message on the subscription.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The token that opts the request into progress notifications.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The task that a message belongs to, in the tasks of 2025-11-25 and in the draft after that revision.
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
}

/// A `_meta` object. Every member is kept, also an unknown one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meta(#[serde(deserialize_with = "members_or_empty")] pub Map<String, Value>);

impl From<Map<String, Value>> for Meta {
    fn from(members: Map<String, Value>) -> Self {
        Self(members)
    }
}

impl From<Value> for Meta {
    /// Returns the members of an object, as from `json!({"com.example/unit": "EUR"})`. Any other value has no members.
    fn from(value: Value) -> Self {
        match value {
            Value::Object(members) => Self(members),
            _ => Self::default(),
        }
    }
}

impl Meta {
    /// Returns the three members that a client sends with every request.
    pub fn for_request(
        version: &ProtocolVersion,
        info: Option<&Implementation>,
        can: &ClientCapabilities,
    ) -> Self {
        let mut members = Map::new();
        members.insert(keys::PROTOCOL_VERSION.into(), version.as_str().into());
        if let Some(info) = info {
            members.insert(keys::CLIENT_INFO.into(), info.to_value());
        }
        members.insert(keys::CLIENT_CAPABILITIES.into(), Value::Object(can.0.clone()));
        Self(members)
    }

    /// Returns the server's name and version, if the result contains them and they can be read.
    pub fn server_info(&self) -> Option<Implementation> {
        Implementation::deserialize(self.0.get(keys::SERVER_INFO)?).ok()
    }

    /// Returns the metadata of every message on the subscription that the request `id` opened.
    ///
    /// > The value is the JSON-RPC ID of the `subscriptions/listen` request that opened the stream.
    pub fn for_subscription(id: &RequestId) -> Self {
        let mut members = Map::new();
        // An id is a string or an integer: there is nothing in it that cannot be written.
        members.insert(keys::SUBSCRIPTION_ID.into(), serde_json::to_value(id).unwrap_or_default());
        Self(members)
    }

    /// Returns the id of the message's subscription, if that id is a string or an integer.
    pub fn subscription_id(&self) -> Option<RequestId> {
        RequestId::deserialize(self.0.get(keys::SUBSCRIPTION_ID)?).ok()
    }

    /// Returns `true` if the object has no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The members of a request's `_meta` that a server uses, borrowed from the message.
///
/// Required members are optional here, so that the error can name the missing one.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RequestMeta<'a> {
    /// The protocol version of this request.
    pub protocol_version: Option<Cow<'a, str>>,
    /// The asks that the client supports, as declared in its capabilities.
    pub asks: Option<AskSupport>,
    /// True if the client declares the extension [`TASKS_EXTENSION`](crate::TASKS_EXTENSION).
    pub tasks: bool,
    /// The client's name and version, as sent.
    pub client_info: Option<&'a RawValue>,
    /// The lowest level of log messages that the client requests. If absent, the server must not send log messages.
    pub log_level: Option<LogLevel>,
    /// The token of progress notifications, if the client requests them.
    pub progress_token: Option<ProgressToken>,
}

#[derive(Deserialize)]
struct RequestMetaIn<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default)]
    protocol_version: Option<Cow<'a, str>>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", default)]
    capabilities: Option<DeclaredCapabilities>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo", borrow, default)]
    client_info: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel", default)]
    log_level: Option<LogLevel>,
    // > Progress tokens **MUST** be a string or integer value.
    //
    // That is what an id is.
    #[serde(rename = "progressToken", default)]
    progress_token: Option<RequestId>,
}

impl<'de: 'a, 'a> Deserialize<'de> for RequestMeta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(read) = <Object<RequestMetaIn<'a>>>::deserialize(deserializer)?;
        Ok(Self {
            protocol_version: read.protocol_version,
            asks: read.capabilities.map(|declared| declared.asks),
            tasks: read.capabilities.is_some_and(|declared| declared.tasks),
            client_info: read.client_info,
            log_level: read.log_level,
            progress_token: read.progress_token.map(RequestId::into_value),
        })
    }
}

/// The token of progress notifications: a string or an integer, kept as sent.
pub type ProgressToken = Value;

/// The severity of a log message (RFC 5424), in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// General information.
    Info,
    /// A normal but significant event.
    Notice,
    /// A possible problem.
    Warning,
    /// An error.
    Error,
    /// The failure of a component.
    Critical,
    /// A condition that needs action at once.
    Alert,
    /// A condition in which the system is unusable.
    Emergency,
}
