//! One message, read once: the envelope, the members of `params`, and the metadata every request must carry.

use super::{registry::Registry, serve::Inner};
use antiphon_wire::{ErrorObject, Incoming, ProtocolVersion, RequestId, RequestMeta, Unreadable, method};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

/// A message that a server acts on.
#[derive(Debug)]
pub(crate) enum Received<'a> {
    Request(Box<Request<'a>>),
    /// Nobody answers it.
    Notification(antiphon_wire::Notification<'a>),
}

/// A request whose metadata is complete.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: Cow<'a, str>,
    pub(crate) version: Cow<'a, str>,
    pub(crate) meta: RequestMeta<'a>,
    pub(crate) params: Params<'a>,
    /// All of `params`, as text.
    pub(crate) text: &'a RawValue,
    /// What the server offered when somebody first looked.
    registry: OnceLock<Arc<Registry>>,
}

/// The members of `params` that any method has, as text. `null` is absent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Params<'a> {
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) input_responses: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) request_state: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) cursor: Option<&'a RawValue>,
}

/// Reads a message.
///
/// # Errors
/// The error to answer with, under the request's id if that could be read.
pub(crate) fn receive(bytes: &[u8]) -> Result<Received<'_>, Unreadable> {
    let request = match Incoming::parse(bytes)? {
        Incoming::Request(request) => request,
        Incoming::Notification(notification) => return Ok(Received::Notification(notification)),
        // > The client **MUST NOT** send JSON-RPC _responses_.
        //
        // Its id names a request of ours: an answer under it would be taken for that to one of the client's.
        Incoming::Response(_) => {
            return Err(refused(None, ErrorObject::invalid_request("a client sends no responses")));
        }
    };
    let completed = complete(request.params);
    if request.method == method::INITIALIZE {
        let error = initialize_refused(request.params, completed.is_ok());
        return Err(refused(Some(request.id), error));
    }
    match completed {
        Ok((params, meta, text)) => {
            let version = meta.protocol_version.clone().unwrap_or_default();
            let (id, method) = (request.id, request.method);
            Ok(Received::Request(Box::new(Request {
                id,
                method,
                version,
                meta,
                params,
                text,
                registry: OnceLock::new(),
            })))
        }
        Err(error) => Err(refused(Some(request.id), error)),
    }
}

fn refused(id: Option<RequestId>, error: ErrorObject) -> Unreadable {
    Unreadable { id, error }
}

/// > A request missing any required field is malformed; the server **MUST** reject it with JSON-RPC error code
/// > `-32602` (Invalid params).
fn complete(params: Option<&RawValue>) -> Result<(Params<'_>, RequestMeta<'_>, &RawValue), ErrorObject> {
    const REQUIRED: &str = "params._meta must hold `io.modelcontextprotocol/protocolVersion` (a string) and \
                            `io.modelcontextprotocol/clientCapabilities` (an object)";
    let text = params.ok_or_else(|| ErrorObject::invalid_params(format!("params is missing: {REQUIRED}")))?;
    let params: Params<'_> = read_object(text, "params")?;
    let meta = params
        .meta
        .ok_or_else(|| ErrorObject::invalid_params(format!("params._meta is missing: {REQUIRED}")))?;
    let meta: RequestMeta<'_> = read_object(meta, "params._meta")?;
    if meta.protocol_version.is_none() || meta.asks.is_none() {
        return Err(ErrorObject::invalid_params(REQUIRED));
    }
    // > Progress tokens **MUST** be a string or integer value
    let is_token = |token: &Value| token.is_string() || token.is_i64() || token.is_u64();
    if !meta.progress_token.as_ref().is_none_or(is_token) {
        return Err(ErrorObject::invalid_params("params._meta.progressToken must be a string or an integer"));
    }
    Ok((params, meta, text))
}

/// serde would read an array into a struct, by position.
fn read_object<'a, T: Deserialize<'a>>(text: &'a RawValue, what: &str) -> Result<T, ErrorObject> {
    if !text.get().starts_with('{') {
        return Err(ErrorObject::invalid_params(format!("{what} must be an object")));
    }
    serde_json::from_str(text.get()).map_err(|fault| ErrorObject::invalid_params(format!("{what}: {fault}")))
}

/// > A server that supports only modern versions **SHOULD** name the protocol versions it supports in any error it
/// > returns to an `initialize` request, on any transport
///
/// Without the metadata of today it is a handshake of an older revision; with it, one more method that does not exist.
fn initialize_refused(params: Option<&RawValue>, is_modern: bool) -> ErrorObject {
    if is_modern {
        let supported: Vec<&str> = ProtocolVersion::MODERN.iter().map(ProtocolVersion::as_str).collect();
        return ErrorObject::method_not_found(method::INITIALIZE)
            .with_data(json!({ "method": method::INITIALIZE, "supported": supported }));
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialize {
        protocol_version: String,
    }
    let requested = params.and_then(|text| serde_json::from_str::<Initialize>(text.get()).ok());
    unsupported_version(requested.as_ref().map_or("none", |params| &params.protocol_version))
}

/// `-32022`, naming the versions this server speaks.
pub(crate) fn unsupported_version(requested: &str) -> ErrorObject {
    ErrorObject::unsupported_version(ProtocolVersion::MODERN.iter().map(ProtocolVersion::as_str), requested)
}

impl Request<'_> {
    /// What the server offers, the same from the first check to the reply.
    pub(super) fn registry(&self, server: &Inner) -> &Registry {
        self.registry.get_or_init(|| server.registry.load_full())
    }

    /// The member that names what the request is about, for the methods that have one.
    pub(crate) fn target(&self) -> Option<&RawValue> {
        match &*self.method {
            method::TOOLS_CALL | method::PROMPTS_GET => self.params.name,
            method::RESOURCES_READ => self.params.uri,
            _ => None,
        }
    }
}
