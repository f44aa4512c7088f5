//! The `_meta` object: metadata beside the members of params and results. The trace context in it, in the form of W3C Trace
//! Context.

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

/// The longest `tracestate` that is passed on, in bytes.
const LONGEST_STATE: usize = 512;

/// The trace context of a request: `traceparent` and `tracestate` of its `_meta`, in the form of W3C Trace Context. A task keeps the
/// context of the request that created it, so that all its legs belong to one trace, in every process. `baggage`
/// is not kept: it carries data of the caller.
///
/// > the keys `traceparent`, `tracestate`, and `baggage` are reserved for OpenTelemetry trace context propagation. When present, their
/// > values MUST follow W3C Trace Context
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    traceparent: String,
    tracestate: Option<String>,
}

impl TraceContext {
    /// Returns the `traceparent`: version, trace id, id of the caller's span, and flags, in hexadecimal digits.
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// Returns the `tracestate`, if there is one.
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// Creates a context from the parts of a `traceparent`: the id of a trace, the id of a span, and flags. No id is zero.
    pub fn from_parts(trace: u128, span: u64, flags: u8) -> Self {
        Self { traceparent: format!("00-{trace:032x}-{span:016x}-{flags:02x}"), tracestate: None }
    }

    /// Returns the id of the trace, the id of the span, and the flags. The form of a context was checked.
    pub fn parts(&self) -> (u128, u64, u8) {
        let part = |range| self.traceparent.get(range).unwrap_or_default();
        let trace = u128::from_str_radix(part(3..35), 16).unwrap_or_default();
        let span = u64::from_str_radix(part(36..52), 16).unwrap_or_default();
        (trace, span, u8::from_str_radix(part(53..55), 16).unwrap_or_default())
    }

    /// Reads the context in a `_meta`. One with a wrong form is ignored, as the recommendation says.
    pub fn of(meta: Option<&RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(borrow)]
            traceparent: &'a RawValue,
            #[serde(borrow, default)]
            tracestate: Option<&'a RawValue>,
        }
        // Most requests have none.
        let text = meta?.get();
        if !text.contains("traceparent") {
            return None;
        }
        let members: Members<'_> = serde_json::from_str(text).ok()?;
        let traceparent: String = serde_json::from_str(members.traceparent.get()).ok()?;
        if !is_traceparent(&traceparent) {
            return None;
        }
        let tracestate = members.tracestate.and_then(|text| serde_json::from_str::<String>(text.get()).ok());
        Some(Self { traceparent, tracestate: tracestate.filter(|state| is_tracestate(state)) })
    }
}

/// Returns true for `00-<32 digits>-<16 digits>-<2 digits>`, with ids that are not zero. Later versions may have more parts.
fn is_traceparent(text: &str) -> bool {
    let is_hex = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |part: &str, len: usize| is_hex(part, len) && part.bytes().any(|byte| byte != b'0');
    let mut parts = text.split('-');
    let mut next = || parts.next().unwrap_or_default();
    let (version, trace, span, flags) = (next(), next(), next(), next());
    let is_known =
        is_hex(version, 2) && version != "ff" && is_id(trace, 32) && is_id(span, 16) && is_hex(flags, 2);
    let is_printable = text.len() <= LONGEST_STATE && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_known && is_printable && (version != "00" || parts.next().is_none())
}

fn is_tracestate(text: &str) -> bool {
    text.len() <= LONGEST_STATE && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, value::to_raw_value};

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn only_well_formed_contexts_are_read() {
        let zeros = PARENT.replace("b7ad6b7169203331", "0000000000000000");
        for (meta, expected) in [
            (json!({}), None),
            (json!({"traceparent": PARENT}), Some(None)),
            (json!({"traceparent": PARENT, "tracestate": "a=1,b=2"}), Some(Some("a=1,b=2"))),
            (json!({"traceparent": PARENT, "tracestate": "a=\n"}), Some(None)),
            (json!({"traceparent": PARENT, "tracestate": 7}), Some(None)),
            (json!({"traceparent": PARENT, "tracestate": "a".repeat(513)}), Some(None)),
            (json!({"traceparent": format!("{PARENT}-more")}), None),
            (json!({"traceparent": PARENT.replace("00-0a", "cc-0a") + "-more"}), Some(None)),
            (json!({"traceparent": PARENT.replace("00-0a", "ff-0a")}), None),
            (json!({"traceparent": PARENT.to_uppercase()}), None),
            (json!({"traceparent": zeros}), None),
            (json!({"traceparent": "00-x"}), None),
            (json!({"traceparent": 7}), None),
            (json!({"x": "traceparent"}), None),
        ] {
            let read = TraceContext::of(Some(&to_raw_value(&meta).unwrap()));
            assert_eq!(read.as_ref().map(TraceContext::tracestate), expected, "{meta}");
        }
        assert_eq!(TraceContext::of(None), None);
    }
}
