//! A request before its handler: its members are read, then its state is opened and checked.

pub(crate) mod admit;
pub(crate) mod carrier;
pub(crate) mod param_headers;
pub(crate) mod receive;
mod spill;

use crate::{
    errors::Error,
    identity::{Caller, PeerAddress, RequestHead},
    options::Settings,
    request::receive::Request,
};
use antiphon_seal::{Binding, Principal};
use http::{Extensions, HeaderMap};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::{collections::HashMap, fmt, sync::Arc};

/// One request for a tool, prompt or resource.
pub(crate) struct LegRequest<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) target: &'a str,
    pub(crate) arguments: Option<&'a RawValue>,
    pub(crate) settings: &'a Settings,
    pub(crate) caller: &'a Caller<'a>,
    /// True if the server sends log messages to clients.
    pub(crate) logs: bool,
}

impl<'a> LegRequest<'a> {
    /// Returns the data to which this leg's state is bound.
    pub(crate) fn binding<'b>(&'b self, principal: Option<&'b Principal>) -> Binding<'b> {
        Binding {
            method: &self.request.method,
            target: self.target,
            arguments: self.arguments.map(RawValue::get),
            principal,
            tool_version: self.settings.version,
        }
    }
}

/// The data of a request that its leg keeps.
pub(crate) struct RequestData {
    pub(crate) method: &'static str,
    pub(crate) head: Option<Arc<RequestHead>>,
    /// The values of the request, if a layer of the server has added some to those of the head.
    pub(crate) added: Option<Arc<Extensions>>,
    pub(crate) peer: Option<PeerAddress>,
    pub(crate) meta: Option<Box<RawValue>>,
}

impl RequestData {
    fn extensions(&self) -> Option<&Extensions> {
        self.added.as_deref().or_else(|| self.head.as_deref().map(|head| &head.extensions))
    }
}

/// The request of this leg, as it arrived: from [`Ctx::request`](crate::Ctx::request).
///
/// Each leg has a request of its own: another instance may receive it, with other headers, from another network. So what must
/// not change within a call is recorded in a [`step`](crate::Ctx::step). A leg of a task has no request of a client: neither headers,
/// nor an address, nor values of layers.
#[derive(Clone, Copy)]
pub struct RequestInfo<'a> {
    pub(crate) data: &'a RequestData,
    pub(crate) trace: Option<&'a TraceContext>,
}

impl<'a> RequestInfo<'a> {
    /// Returns the method: `tools/call`, `prompts/get` or `resources/read`.
    pub fn method(&self) -> &'static str {
        self.data.method
    }

    /// Returns the HTTP headers; `None` on other transports, and in a task. `Authorization` is among them: an access token is for this
    /// server only.
    ///
    /// > MCP servers **MUST NOT** pass through the token it received from the MCP client.
    pub fn headers(&self) -> Option<&'a HeaderMap> {
        self.data.head.as_deref().map(RequestHead::headers)
    }

    /// Returns the address of the peer, as far as it is known.
    pub fn peer_address(&self) -> Option<PeerAddress> {
        self.data.peer
    }

    /// Returns the `_meta` of the request as JSON text, with all of its keys. Untrusted.
    pub fn meta(&self) -> Option<&'a RawValue> {
        self.data.meta.as_deref()
    }

    /// Reads one key of `_meta`; `None` if it is not there, or null.
    ///
    /// # Errors
    /// If the value does not fit the type.
    pub fn meta_key<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        let Some(meta) = self.data.meta.as_deref() else { return Ok(None) };
        let members: HashMap<String, &RawValue> = serde_json::from_str(meta.get())?;
        members.get(key).map_or(Ok(None), |value| Ok(serde_json::from_str(value.get())?))
    }

    /// Returns the trace context of the request: [`Ctx::trace_context`](crate::Ctx::trace_context).
    pub fn trace_context(&self) -> Option<&'a TraceContext> {
        self.trace
    }

    /// Returns a value of this type that a tower layer in front of the endpoint, a [layer](crate::ServerBuilder::layer) of the server or
    /// [`request_context`](crate::ServerBuilder::request_context) has added.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&'a T> {
        self.data.extensions()?.get()
    }
}

impl fmt::Debug for RequestInfo<'_> {
    /// Omits headers, `_meta` and values: they hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestInfo").field("method", &self.data.method).finish_non_exhaustive()
    }
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

    /// Reads the context in a `_meta`. One with a wrong form is ignored, as the recommendation says.
    pub(crate) fn of(meta: Option<&RawValue>) -> Option<Self> {
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
    use super::TraceContext;
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
