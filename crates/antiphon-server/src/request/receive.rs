//! Reading of one message: the envelope, the members of `params`, the metadata that every request must carry, and the arguments that
//! it repeats in headers.
//!
//! [`WholeRequest`] reads nearly all requests, in one walk. Any other message is read in steps.

use crate::{
    errors::refusal::{Refusal, read_object},
    in_place::boxed,
    session::Session,
};
use antiphon_seal::canonical;
use antiphon_wire::{
    ErrorCode, ErrorObject, Incoming, ProtocolVersion, RequestId, RequestMeta, RequestParams, StringMember,
    UniqueNames, Unreadable, WholeRequest, header::params::ParamHeaders, method,
};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use std::{borrow::Cow, sync::atomic::AtomicBool};

/// A message that a transport received.
#[derive(Debug)]
#[non_exhaustive]
pub enum Received<'a> {
    /// A request with complete metadata.
    Request(Box<Request<'a>>),
    /// A notification. It is not answered.
    Notification(antiphon_wire::Notification<'a>),
    /// A message of an earlier revision: a request without complete metadata, or a response.
    Legacy(Incoming<'a>),
}

/// The outcome of a request so far, for metrics and its span.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// True once the result is a tool's error.
    pub(crate) tool_failed: AtomicBool,
    /// True once its tool or prompt was found at run time.
    pub(crate) was_found: AtomicBool,
}

/// A request with complete metadata. In a session of an earlier revision, the metadata is that of the handshake.
#[derive(Debug)]
pub struct Request<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: Cow<'a, str>,
    pub(crate) version: Cow<'a, str>,
    pub(crate) meta: RequestMeta<'a>,
    pub(crate) params: RequestParams<'a>,
    /// The whole of `params`, as text.
    pub(crate) text: &'a RawValue,
    /// The proof of the reader, if the request was read in one walk. [`Request::unique_names`] makes it for any other
    /// request.
    names: Option<UniqueNames>,
    /// The session of the request; `None` for a request that carries its own metadata.
    pub(crate) session: Option<Session>,
    /// The outcome before the reply.
    pub(crate) noted: Noted,
    /// True for a notification of an extension, which is served as a request is, but for its reply.
    pub(crate) is_notification: bool,
}

/// Reads a message. Messages of sessions are accepted if this server has sessions.
///
/// # Errors
/// The error to send, with the request's id if it could be read.
pub(crate) fn receive(bytes: &[u8], has_sessions: bool) -> Result<Received<'_>, Unreadable> {
    match WholeRequest::read(bytes) {
        // `receive_in_steps` has the error for this method.
        Some(whole) if whole.method != method::INITIALIZE => Ok(Received::Request(boxed(|| whole.into()))),
        _ => receive_in_steps(bytes, has_sessions),
    }
}

/// Reads a message of any kind: envelope, params, metadata, each by itself.
fn receive_in_steps(bytes: &[u8], has_sessions: bool) -> Result<Received<'_>, Unreadable> {
    let request = match Incoming::parse(bytes)? {
        Incoming::Request(request) => request,
        Incoming::Notification(notification) => return Ok(Received::Notification(notification)),
        response @ Incoming::Response(_) if has_sessions => return Ok(Received::Legacy(response)),
        response @ Incoming::Response(_) => return Err(without_session(response)),
    };
    match complete(request.params) {
        Ok(_) if request.method == method::INITIALIZE => {
            Err(refused(Some(request.id), initialize_refused(request.params, true)))
        }
        Ok((params, meta, text)) => {
            let version = meta.protocol_version.clone().unwrap_or_default();
            let (id, method) = (request.id, request.method);
            let (names, session, is_notification) = (None, None, false);
            let noted = Noted::default();
            let request =
                Request { id, method, version, meta, params, text, names, session, noted, is_notification };
            Ok(Received::Request(Box::new(request)))
        }
        Err(_) if has_sessions && !speaks_for_itself(request.params) => {
            Ok(Received::Legacy(Incoming::Request(request)))
        }
        Err(_) if request.method == method::INITIALIZE => {
            Err(refused(Some(request.id), initialize_refused(request.params, false)))
        }
        Err(error) => Err(refused(Some(request.id), error)),
    }
}

/// Returns the error of a message that belongs to a session, if there is no session.
pub(crate) fn without_session(message: Incoming<'_>) -> Unreadable {
    let Incoming::Request(request) = message else {
        // > The client **MUST NOT** send JSON-RPC _responses_.
        //
        // The id belongs to a request of the server: a reply with it would look like the reply to a request of the
        // client.
        return refused(None, ErrorObject::invalid_request("a client sends no responses"));
    };
    let completed = complete(request.params);
    let error = match completed {
        _ if request.method == method::INITIALIZE => initialize_refused(request.params, completed.is_ok()),
        Ok(_) => ErrorObject::internal(),
        Err(error) => error,
    };
    refused(Some(request.id), error)
}

/// Returns whether the message names its version, as every modern request does.
pub(crate) fn speaks_for_itself(params: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct MetaOnly<'a> {
        #[serde(rename = "_meta", borrow, default)]
        meta: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Version<'a> {
        #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default)]
        version: Option<&'a RawValue>,
    }
    let meta = params.and_then(|text| serde_json::from_str::<MetaOnly<'_>>(text.get()).ok()?.meta);
    let version = meta.and_then(|meta| serde_json::from_str::<Version<'_>>(meta.get()).ok()?.version);
    version.is_some()
}

fn refused(id: Option<RequestId>, error: ErrorObject) -> Unreadable {
    Unreadable { id, error }
}

/// > A request missing any required field is malformed; the server **MUST** reject it with JSON-RPC error code
/// > `-32602` (Invalid params).
fn complete(
    params: Option<&RawValue>,
) -> Result<(RequestParams<'_>, RequestMeta<'_>, &RawValue), ErrorObject> {
    const REQUIRED: &str = "params._meta must hold `io.modelcontextprotocol/protocolVersion` (a string) and \
                            `io.modelcontextprotocol/clientCapabilities` (an object)";
    let text = params.ok_or_else(|| ErrorObject::invalid_params(format!("params is missing: {REQUIRED}")))?;
    let params: RequestParams<'_> = read_object(text, "params")?;
    let meta = params
        .meta
        .ok_or_else(|| ErrorObject::invalid_params(format!("params._meta is missing: {REQUIRED}")))?;
    let meta: RequestMeta<'_> = read_object(meta, "params._meta")?;
    if meta.protocol_version.is_none() || meta.asks.is_none() {
        return Err(ErrorObject::invalid_params(REQUIRED));
    }
    Ok((params, meta, text))
}

/// > A server that supports only modern versions **SHOULD** name the protocol versions it supports in any error it
/// > returns to an `initialize` request, on any transport
///
/// Without modern metadata, the request is a handshake of an older revision; with it, the method does not exist.
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

/// Returns the error `-32022`, with the versions that this server supports.
pub(crate) fn unsupported_version(requested: &str) -> ErrorObject {
    ErrorObject::unsupported_version(ProtocolVersion::MODERN.iter().map(ProtocolVersion::as_str), requested)
}

impl<'a> From<WholeRequest<'a>> for Request<'a> {
    fn from(whole: WholeRequest<'a>) -> Self {
        Self {
            id: whole.id,
            method: Cow::Borrowed(whole.method),
            version: Cow::Borrowed(whole.version),
            meta: whole.meta,
            params: whole.params,
            text: whole.text,
            names: Some(whole.names),
            session: None,
            noted: Noted::default(),
            is_notification: false,
        }
    }
}

impl<'a> Request<'a> {
    /// Returns a request of a session.
    pub(crate) fn of_session(
        session: &'a Session,
        request: antiphon_wire::Request<'a>,
        params: RequestParams<'a>,
        meta: RequestMeta<'a>,
        text: &'a RawValue,
    ) -> Self {
        let (id, method) = (request.id, request.method);
        let version = Cow::Borrowed(session.version().as_str());
        let (names, session, noted) = (None, Some(session.clone()), Noted::default());
        Self { id, method, version, meta, params, text, names, session, noted, is_notification: false }
    }

    /// Returns a notification in the form of a request. It needs no metadata, and declares nothing without it.
    ///
    /// # Errors
    /// If its metadata cannot be read, or names an unsupported version.
    pub(crate) fn of_notification(
        notification: &antiphon_wire::Notification<'a>,
    ) -> Result<Self, ErrorObject> {
        let text = params_or_empty(notification.params);
        let params: RequestParams<'_> = read_object(text, "params")?;
        let meta: RequestMeta<'_> = match params.meta {
            Some(meta) => read_object(meta, "params._meta")?,
            None => RequestMeta::default(),
        };
        let version = match &meta.protocol_version {
            Some(version) if !ProtocolVersion::is_modern_text(version) => {
                return Err(unsupported_version(version));
            }
            Some(version) => version.clone(),
            None => Cow::Borrowed(ProtocolVersion::MODERN[0].as_str()),
        };
        let (id, method) = (RequestId::from(0_u64), notification.method.clone());
        let (names, session, noted) = (None, None, Noted::default());
        Ok(Self { id, method, version, meta, params, text, names, session, noted, is_notification: true })
    }
}

/// Returns params, or an empty object in their place.
pub(crate) fn params_or_empty(params: Option<&RawValue>) -> &RawValue {
    // A constant that always parses.
    params.unwrap_or_else(|| serde_json::from_str("{}").expect("an object"))
}

impl Request<'_> {
    /// Returns the id.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Returns the name of the method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// Returns the protocol version that the request names.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns `params` with `_meta`, as JSON text.
    pub fn params(&self) -> &RawValue {
        self.text
    }

    /// Returns the member that names the target of the request, for methods that have one.
    pub(crate) fn target(&self) -> Option<&StringMember<'_>> {
        match &*self.method {
            method::TOOLS_CALL | method::PROMPTS_GET => self.params.name.as_ref(),
            method::RESOURCES_READ | method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => {
                self.params.uri.as_ref()
            }
            method::TASKS_GET
            | method::TASKS_UPDATE
            | method::TASKS_CANCEL
            | method::TASKS_RESULT
            | method::TASKS_INPUT_RESPONSE => self.params.task_id.as_ref(),
            _ => None,
        }
    }

    /// Returns the same request, whose handler reads this `_meta`.
    pub(crate) fn with_meta<'b>(&'b self, meta: Option<&'b RawValue>) -> Request<'b> {
        let mut params = self.params.clone();
        params.meta = meta;
        Request {
            id: self.id.clone(),
            method: Cow::Borrowed(&self.method),
            version: Cow::Borrowed(&self.version),
            meta: self.meta.clone(),
            params,
            text: self.text,
            names: self.names,
            session: self.session.clone(),
            noted: Noted::default(),
            is_notification: self.is_notification,
        }
    }

    /// Returns the version that the client uses.
    pub(crate) fn protocol_version(&self) -> ProtocolVersion {
        match &self.session {
            None => ProtocolVersion::modern(&self.version),
            Some(session) => session.version().clone(),
        }
    }

    /// Returns the proof that no object of `params` names a member twice; walks over the text if the reader did not.
    pub(crate) fn unique_names(&self) -> Result<UniqueNames, Refusal> {
        match self.names {
            Some(names) => Ok(names),
            None => UniqueNames::from_walk(self.text.get(), canonical::check)
                .map_err(|fault| Refusal::params(format!("params: {fault}"))),
        }
    }
}

/// Checks that the headers agree with the arguments.
///
/// > Any server that processes the message body **MUST** validate that encoded header values, after decoding if
/// > Base64-encoded, match the corresponding values in the request body.
pub(crate) fn check_params(
    params: &ParamHeaders,
    arguments: Option<&RawValue>,
    headers: &HeaderMap,
) -> Result<(), ErrorObject> {
    if params.is_empty() {
        return Ok(());
    }
    // The text was parsed before, so this cannot fail.
    let arguments = arguments.and_then(|text| serde_json::from_str(text.get()).ok()).unwrap_or_default();
    for param in params.iter() {
        let header = param.header_name();
        let mut values = headers.get_all(&header).iter();
        let value = match (values.next(), values.next()) {
            (None, _) => None,
            (Some(value), None) => Some(value.to_str().map_err(|_| invalid_characters(&header))?),
            (Some(_), Some(_)) => return Err(twice(&header)),
        };
        param
            .check(&arguments, value)
            .map_err(|fault| ErrorObject::new(ErrorCode::HEADER_MISMATCH, fault.to_string()))?;
    }
    Ok(())
}

/// Returns the error for a header with other characters than those of visible ASCII.
pub(crate) fn invalid_characters(header: &str) -> ErrorObject {
    mismatch(format!("{header} holds invalid characters"))
}

/// Returns the error for a header that occurs twice.
pub(crate) fn twice(header: &str) -> ErrorObject {
    mismatch(format!("{header} occurs twice"))
}

/// Returns an error about headers.
pub(crate) fn mismatch(text: impl std::fmt::Display) -> ErrorObject {
    ErrorObject::new(ErrorCode::HEADER_MISMATCH, format!("Header mismatch: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

    /// Asserts that a message is received alike in one walk and in steps, and that one walk is enough, or not.
    fn check(message: &str, in_one_walk: bool) {
        for has_sessions in [true, false] {
            let shown = |received| format!("{received:?}");
            let received = shown(receive(message.as_bytes(), has_sessions));
            assert_eq!(received.contains("names: Some(UniqueNames(()))"), in_one_walk, "{message}");
            let received = received.replace("names: Some(UniqueNames(()))", "names: None");
            assert_eq!(received, shown(receive_in_steps(message.as_bytes(), has_sessions)), "{message}");
        }
    }

    #[test]
    fn a_request_is_received_alike_in_one_walk_and_in_steps() {
        let request = |method: &str, params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{META}{params}}}}}"#)
        };
        for (method, params) in [
            ("tools/call", r#","name":"echo","arguments":{"text":"hello"}"#),
            ("tools/call", r#","name":"é","inputResponses":{},"requestState":"r1.AAAA""#),
            ("resources/read", r#","uri":"file:///a""#),
            ("tools/list", r#","cursor":"a""#),
            ("server/discover", ""),
            ("nothing/known", r#","name":null"#),
        ] {
            check(&request(method, params), !params.contains("null"));
        }
        for (method, params) in [
            ("initialize", ""),
            ("tools/call", r#","name":3"#),
            ("tools/call", r#","name":"\u0065cho""#),
            ("tools/call", r#","name":"\ud800""#),
            ("tools/call", r#","name":"a","name":"a""#),
            ("tools/call", r#","arguments":{"a":1,"a":2}"#),
            ("tools/call", r#","arguments":{"a":01}"#),
            ("tools/call", r#","_meta":{}"#),
        ] {
            check(&request(method, params), false);
        }
        for message in [
            "",
            "[]",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        ] {
            check(message, false);
        }
    }

    #[test]
    fn a_target_is_decoded_once_for_all() {
        for (name, expected) in [
            (r#""echo""#, Some("echo")),
            (r#""\u0065cho""#, Some("echo")),
            (r#""\ud800""#, None),
            ("3", None),
            (r#"["echo"]"#, None),
        ] {
            let message = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{META},"name":{name}}}}}"#
            );
            let Ok(Received::Request(request)) = receive(message.as_bytes(), true) else {
                panic!("{name}");
            };
            let target = request.target().expect("it is there");
            assert_eq!(target.text(), expected, "{name}");
        }
    }
}
