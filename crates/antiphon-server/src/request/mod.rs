//! A request before its handler: its members are read, then its state is opened and checked.

pub(crate) mod admit;
pub(crate) mod carrier;
mod observe;
pub(crate) mod peek;
pub(crate) mod receive;
mod spill;

use crate::{
    errors::Error,
    identity::{Caller, PeerAddress, RequestHead},
    options::Settings,
    request::receive::Request,
    trace::TraceContext,
};
use antiphon_seal::{Binding, Principal};
use http::{Extensions, HeaderMap};
use serde::de::DeserializeOwned;
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
