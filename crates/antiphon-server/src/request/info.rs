//! The request of a leg, as its handler sees it.

use crate::{
    errors::error::Error,
    identity::{head::RequestHead, peer_address::PeerAddress},
    request::trace::TraceContext,
};
use http::{Extensions, HeaderMap};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::{collections::HashMap, fmt, sync::Arc};

/// What a leg keeps of its request.
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
/// not change within a call is recorded in a [`step`](crate::Ctx::step). A leg of a task has no request of a client, except what
/// [`ServerBuilder::keep_in_tasks`](crate::ServerBuilder::keep_in_tasks) names: neither headers, nor an address, nor other values.
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
