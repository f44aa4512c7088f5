//! A request before its handler: its members are read, then its state is opened and checked.

pub(crate) mod admit;
pub(crate) mod carrier;
pub(crate) mod observe;
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
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashMap, fmt, sync::Arc};

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

/// The data of a request that its handler reads.
pub(crate) struct RequestData {
    pub(crate) method: Cow<'static, str>,
    pub(crate) head: Option<Arc<RequestHead>>,
    /// The values of the request, if a layer of the server has added some to those of the head.
    pub(crate) added: Option<Arc<Extensions>>,
    pub(crate) peer: Option<PeerAddress>,
    pub(crate) meta: Option<Box<RawValue>>,
    pub(crate) declared: DeclaredExtensions,
}

/// The place in which the client declares its extensions.
pub(crate) enum DeclaredExtensions {
    /// `_meta` of the request.
    InRequest,
    /// The handshake of the session, which has this text.
    InSession(Option<Arc<RawValue>>),
}

impl RequestData {
    /// Returns the data of a request with this method.
    pub(crate) fn new(method: Cow<'static, str>, request: &Request<'_>, caller: &Caller<'_>) -> Self {
        Self {
            method,
            head: caller.shared_head(),
            added: caller.added.cloned(),
            peer: caller.peer_address(),
            meta: request.params.meta.map(ToOwned::to_owned),
            declared: match &request.session {
                None => DeclaredExtensions::InRequest,
                Some(session) => DeclaredExtensions::InSession(session.extensions().cloned()),
            },
        }
    }

    /// Returns the settings that the client declared for an extension, as JSON text; `None` if it did not declare the extension.
    pub(crate) fn extension(&self, id: &str) -> Option<&RawValue> {
        let all = match &self.declared {
            DeclaredExtensions::InRequest => extensions_in(self.meta.as_deref())?,
            DeclaredExtensions::InSession(declared) => declared.as_deref()?,
        };
        let mut all: HashMap<String, &RawValue> = serde_json::from_str(all.get()).ok()?;
        // > values are per-extension settings objects
        all.remove(id).filter(|settings| settings.get().starts_with('{'))
    }

    /// Reads the settings that the client declared for an extension.
    ///
    /// # Errors
    /// If they do not fit the type.
    pub(crate) fn extension_settings<T: DeserializeOwned>(&self, id: &str) -> Result<Option<T>, Error> {
        let Some(settings) = self.extension(id) else { return Ok(None) };
        serde_json::from_str(settings.get()).map(Some).map_err(|fault| {
            Error::user_facing(format!("The client's settings of the extension {id} do not fit: {fault}"))
        })
    }

    fn extensions(&self) -> Option<&Extensions> {
        self.added.as_deref().or_else(|| self.head.as_deref().map(|head| &head.extensions))
    }
}

/// The request of this leg, as it arrived: from [`Ctx::request`](crate::Ctx::request), or of a completer, from
/// [`Completing::request`](crate::Completing::request).
///
/// Each leg has a request of its own: another instance may receive it, with other headers, from another network. So what must
/// not change within a call is recorded in a [`step`](crate::Ctx::step). A leg of a task has no request of a client: neither headers,
/// nor an address, nor values of layers, but for those that tasks [keep](crate::ServerBuilder::keep_in_tasks).
#[derive(Clone, Copy)]
pub struct RequestInfo<'a> {
    pub(crate) data: &'a RequestData,
    pub(crate) trace: Option<&'a TraceContext>,
}

impl<'a> RequestInfo<'a> {
    /// Returns the method: `tools/call`, `prompts/get`, `resources/read`, `completion/complete`, or that of an extension.
    pub fn method(&self) -> &'a str {
        &self.data.method
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

/// Returns the extensions that a request declares in its `_meta`, as JSON text.
pub(crate) fn extensions_in(meta: Option<&RawValue>) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Members<'a> {
        #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow)]
        capabilities: Capabilities<'a>,
    }
    #[derive(Deserialize)]
    struct Capabilities<'a> {
        #[serde(borrow, default)]
        extensions: Option<&'a RawValue>,
    }
    serde_json::from_str::<Members<'_>>(meta?.get()).ok()?.capabilities.extensions
}
