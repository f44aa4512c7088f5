//! The checks of a request, in order, from its first header to its dispatch.
//!
//! A second answer in a row is that of a server with sessions, to a request of an earlier revision.
//!
//! | check | answer if it fails |
//! |---|---|
//! | path, where `serve_http` serves | 404 |
//! | a preflight of a browser: `Host` and `Origin` are allowed | 204; 421, 403 |
//! | method: POST only; GET and DELETE if they name a session | 405, `Allow: POST` |
//! | size, by `Content-Length` and by counting | 413 |
//! | `Transfer-Encoding`: `chunked` or absent | 501 |
//! | `Content-Encoding`: `identity` or absent | 415 |
//! | `Content-Type: application/json` | 415 |
//! | `Host` is allowed | 421 |
//! | `Origin`, if there is one, is allowed | 403 |
//! | `Accept` lists JSON or event streams, or is absent; event streams for a GET | 406 |
//! | the access token is valid, if one is required | 401, 403, 400, 429 or 503, `WWW-Authenticate` |
//! | the body arrives in time | 408 |
//! | the [budget](crate::RequestBudget) has room for a body of more than 8 KiB | 503, `Retry-After` |
//! | `Mcp-Session-Id`, unless the version is modern: a session of this caller | ignored; 404 |
//! | ... and the version header, if there is one, names the version of the session | 400, -32600 |
//! | `Last-Event-ID` of a GET: an event of the session, and the events after it are stored | 400, 410 |
//! | one GET without it at a time | 409 |
//! | the body is one JSON-RPC message | 400, -32700 or -32600 |
//! | a notification | 202, no body |
//! | `initialize` | 400, -32022; with complete `_meta` 404, -32601: both name the versions; a new session |
//! | `_meta` is complete | 400, -32602; without it and without a modern version header, served without a session |
//! | `subscriptions/listen`: `Accept` lists event streams | 406 |
//! | the headers agree with the body; `Mcp-Name` may be absent in requests about a task | 400, -32020 |
//! | the version is supported | 400, -32022 |
//! | the method exists | 404, -32601 |
//!
//! A request of a route for operators, or for the metadata of the protected resource, is answered before the checks. The
//! path is checked by [`check_path`], a preflight by [`preflight`](super::cors::preflight). The checks from the method
//! to `Accept` are in [`check_head`], for every method; [`authorize`](super::auth) checks the token.
//! [`check_agreement`] compares headers and body; [`legacy`](super::legacy) checks the headers of sessions. The server
//! itself does the rest, on every transport.

use crate::{
    request::receive::{Request, check_params, invalid_characters, mismatch, twice},
    serve::http::{
        HttpOptions,
        body::Rejection,
        fields::{
            ACCEPT, Accepts, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, Field, HOST, MCP_METHOD,
            MCP_NAME, MCP_PROTOCOL_VERSION, MCP_SESSION_ID, ORIGIN, Repeated, TRANSFER_ENCODING, find,
        },
    },
};
use antiphon_wire::{
    ErrorObject, Notification, ProtocolVersion,
    header::{self, params::ParamHeaders},
    method::SUBSCRIPTIONS_LISTEN,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header as name, request::Parts, uri::Authority,
};
use std::borrow::Cow;

fn refused(status: StatusCode, text: impl Into<String>) -> Rejection {
    Rejection::new(status, text)
}

/// Checks the head of a request. Returns the kinds of responses that the client reads.
pub(crate) fn check_head(
    parts: &Parts,
    options: &HttpOptions,
    has_sessions: bool,
) -> Result<Accepts, Rejection> {
    // > HTTP GET or DELETE to the MCP endpoint: respond with `405 Method Not Allowed`.
    let is_post = parts.method == Method::POST;
    let is_known = is_post || matches!(parts.method, Method::GET | Method::DELETE) && has_sessions;
    if !is_known || !is_post && !names_session(&parts.headers) {
        let text = if has_sessions {
            "The MCP endpoint takes POST, and GET and DELETE with the Mcp-Session-Id of a session"
        } else {
            "The MCP endpoint takes POST only"
        };
        return Err(refused(StatusCode::METHOD_NOT_ALLOWED, text).about(&parts.method));
    }
    let [length, transfer_coding, content_coding, content_type, host, origin, accept] = find(
        &parts.headers,
        [&CONTENT_LENGTH, &TRANSFER_ENCODING, &CONTENT_ENCODING, &CONTENT_TYPE, &HOST, &ORIGIN, &ACCEPT],
    );
    if parsed_length(length.first()).is_some_and(|length| length > options.max_body as u64) {
        return Err(too_large(options));
    }
    check_codings(&parts.headers, transfer_coding, content_coding)?;
    if is_post && !content_type.first().is_some_and(is_json) {
        return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json"));
    }
    check_hosts(parts, host, options)?;
    // > If the `Origin` header is present and invalid, servers **MUST** respond with HTTP 403 Forbidden.
    match origin.single() {
        Ok(None) => {}
        Ok(Some(origin)) if options.knows_origin(origin) => {}
        Ok(Some(_)) | Err(Repeated) => {
            let origin = origin.first().map_or(&b""[..], HeaderValue::as_bytes);
            return Err(origin_not_allowed().about(&String::from_utf8_lossy(origin)));
        }
    }
    check_accept(&parts.method, Accepts::of(&parts.headers, accept))
}

/// Returns the announced length of the body.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    parsed_length(headers.get(&CONTENT_LENGTH))
}

fn parsed_length(value: Option<&HeaderValue>) -> Option<u64> {
    value?.to_str().ok()?.parse().ok()
}

/// Checks that the body is sent as it is: nothing here decompresses it.
fn check_codings(
    headers: &HeaderMap,
    transfer_coding: Field<'_>,
    content_coding: Field<'_>,
) -> Result<(), Rejection> {
    let has_other_than = |field: Field<'_>, header: &HeaderName, plain: &str| {
        let is_plain = |coding: &str| coding.trim().eq_ignore_ascii_case(plain);
        !field.all(headers, header, |value| value.to_str().unwrap_or("?").split(',').all(is_plain))
    };
    // > A server that receives a request message with a transfer coding it does not understand SHOULD respond with 501
    // > (Not Implemented). (RFC 9112, section 6.1)
    if has_other_than(transfer_coding, &TRANSFER_ENCODING, "chunked") {
        return Err(refused(StatusCode::NOT_IMPLEMENTED, "Transfer-Encoding must be chunked, or absent"));
    }
    // > An origin server MAY respond with a status code of 415 (Unsupported Media Type) if a representation in the request
    // > message has a content coding that is not acceptable. (RFC 9110, section 8.4)
    if has_other_than(content_coding, &CONTENT_ENCODING, "identity") {
        return Err(refused(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "The body must be sent without Content-Encoding",
        ));
    }
    Ok(())
}

/// Returns whether the headers name a session.
pub(crate) fn names_session(headers: &HeaderMap) -> bool {
    headers.contains_key(&MCP_SESSION_ID)
}

/// Returns whether the body is declared as JSON.
fn is_json(content_type: &HeaderValue) -> bool {
    // Nearly every request.
    content_type == "application/json"
        || content_type.to_str().is_ok_and(|value| media_type(value).eq_ignore_ascii_case("application/json"))
}

/// Checks that the path is the endpoint's. A router in front of the service does this otherwise.
pub(crate) fn check_path(parts: &Parts, options: &HttpOptions) -> Result<(), Rejection> {
    if parts.uri.path() == options.path {
        return Ok(());
    }
    let text = "There is no MCP endpoint at this path; its operator sets the path with HttpOptions::path";
    Err(refused(StatusCode::NOT_FOUND, text).about(parts.uri.path()))
}

/// Checks that the request names a host, and that every host that it names is allowed. HTTP/1.1 names it in a header,
/// HTTP/2 in the URI.
pub(crate) fn check_host(parts: &Parts, options: &HttpOptions) -> Result<(), Rejection> {
    let [host] = find(&parts.headers, [&HOST]);
    check_hosts(parts, host, options)
}

fn check_hosts(parts: &Parts, host: Field<'_>, options: &HttpOptions) -> Result<(), Rejection> {
    let in_uri = parts.uri.authority().map(Authority::as_str);
    let is_known = |host: &HeaderValue| host.to_str().is_ok_and(|host| options.knows_host(host));
    if (in_uri.is_some() || host.first().is_some())
        && in_uri.is_none_or(|host| options.knows_host(host))
        && host.all(&parts.headers, &HOST, is_known)
    {
        return Ok(());
    }
    let text = "This server does not answer under this host name; its operator can allow it with \
                HttpOptions::allow_host";
    Err(refused(StatusCode::MISDIRECTED_REQUEST, text).about(&named_host(parts)))
}

/// Returns the rejection of a request of a page whose origin is not allowed.
pub(crate) fn origin_not_allowed() -> Rejection {
    let text = "This server does not answer web pages of this origin; its operator can allow it with \
                HttpOptions::allow_origin";
    refused(StatusCode::FORBIDDEN, text)
}

/// Returns the host that the request names first, for the log.
fn named_host(parts: &Parts) -> Cow<'_, str> {
    match (parts.uri.authority(), parts.headers.get(name::HOST)) {
        (Some(authority), _) => authority.as_str().into(),
        (None, Some(host)) => String::from_utf8_lossy(host.as_bytes()),
        (None, None) => "no host".into(),
    }
}

/// Checks that the client reads a response to this method. A DELETE has none.
fn check_accept(method: &Method, accepts: Accepts) -> Result<Accepts, Rejection> {
    let not_acceptable = |text: &str| Err(refused(StatusCode::NOT_ACCEPTABLE, text));
    match (method == Method::POST, method == Method::GET) {
        (true, _) if !(accepts.json || accepts.events) => {
            not_acceptable("Accept must list application/json, text/event-stream, or both")
        }
        (_, true) if !accepts.events => not_acceptable("Accept must list text/event-stream"),
        _ => Ok(accepts),
    }
}

/// Checks that the client reads event streams, if the response to its request is one.
pub(crate) fn check_stream(method: &str, accepts: Accepts) -> Result<(), Rejection> {
    if accepts.events || method != SUBSCRIPTIONS_LISTEN {
        return Ok(());
    }
    let text = "Accept must list text/event-stream: a subscription is an event stream";
    Err(Rejection { unread: false, ..refused(StatusCode::NOT_ACCEPTABLE, text) })
}

pub(crate) fn too_large(options: &HttpOptions) -> Rejection {
    refused(StatusCode::PAYLOAD_TOO_LARGE, format!("The body must have at most {} bytes", options.max_body))
}

pub(crate) fn too_slow() -> Rejection {
    refused(StatusCode::REQUEST_TIMEOUT, "The body took too long to arrive")
}

/// > Servers that process the request body **MUST** reject requests where the values specified in the headers do not
/// > match the corresponding values in the request body.
pub(crate) fn check_agreement<'a>(
    request: &Request<'_>,
    headers: &HeaderMap,
    param_headers: impl FnOnce(&str) -> Option<&'a ParamHeaders>,
) -> Result<(), ErrorObject> {
    let [version, method, named] = find(headers, [&MCP_PROTOCOL_VERSION, &MCP_METHOD, &MCP_NAME]);
    let version = single(version, &MCP_PROTOCOL_VERSION)?;
    if version != request.version {
        return Err(differs(
            "MCP-Protocol-Version",
            "params._meta[\"io.modelcontextprotocol/protocolVersion\"]",
        ));
    }
    if single(method, &MCP_METHOD)? != request.method {
        return Err(differs("Mcp-Method", "method"));
    }
    let Some(target) = request.target() else { return Ok(()) };
    // > the client **MUST** set the `Mcp-Name` header to the value of `params.taskId`.
    //
    // Clients that do not would create tasks that they can never read. A server needs no header to find the task.
    if named.first().is_none() && request.method.starts_with("tasks/") {
        return Ok(());
    }
    let named = single(named, &MCP_NAME)?;
    // > servers **MUST** decode an encoded `Mcp-Name` or `Mcp-Param-{Name}` value before comparing it
    let named = header::decode(named).ok_or_else(|| mismatch("Mcp-Name is not valid base64 of UTF-8"))?;
    if target.text() != Some(&named) {
        return Err(differs("Mcp-Name", "params.name, params.uri or params.taskId"));
    }
    match param_headers(&named) {
        Some(params) => check_params(params, request.params.arguments, headers),
        None => Ok(()),
    }
}

/// Checks the method in the headers of a notification, if it is there: a proxy may have read it.
///
/// > header requirements for notification POSTs are not defined by this revision.
pub(crate) fn check_notification(
    notification: &Notification<'_>,
    headers: &HeaderMap,
) -> Result<(), ErrorObject> {
    match single_or_none(headers, &MCP_METHOD)? {
        Some(named) if named != notification.method => Err(differs("Mcp-Method", "method")),
        _ => Ok(()),
    }
}

/// Returns the legacy version that the headers name, if they name one. In a session it must be the version of the session.
///
/// > If the server receives a request with an invalid or unsupported `MCP-Protocol-Version`, it **MUST** respond with
/// > `400 Bad Request`.
pub(crate) fn check_legacy_version(
    headers: &HeaderMap,
    of_session: Option<&ProtocolVersion>,
) -> Result<Option<ProtocolVersion>, ErrorObject> {
    let Some(named) = single_or_none(headers, &MCP_PROTOCOL_VERSION)? else { return Ok(None) };
    let Some(version) = ProtocolVersion::legacy(named) else {
        let known = ProtocolVersion::MODERN.iter().chain(ProtocolVersion::LEGACY);
        let known = known.map(ProtocolVersion::as_str).collect::<Vec<_>>().join(", ");
        let text = format!("MCP-Protocol-Version is not supported; supported versions: {known}");
        return Err(ErrorObject::invalid_request(text));
    };
    match of_session.filter(|session| **session != version) {
        Some(session) => Err(ErrorObject::invalid_request(format!(
            "MCP-Protocol-Version is {version}, and the session began with {session}"
        ))),
        None => Ok(Some(version)),
    }
}

/// Returns the value of a header that may be present once.
pub(crate) fn single_or_none<'a>(
    headers: &'a HeaderMap,
    header: &HeaderName,
) -> Result<Option<&'a str>, ErrorObject> {
    let [field] = find(headers, [header]);
    if field.first().is_some() { single(field, header).map(Some) } else { Ok(None) }
}

/// Returns the value of a header that must be present once: with two values, two readers could read two different ones.
fn single<'a>(field: Field<'a>, header: &HeaderName) -> Result<&'a str, ErrorObject> {
    match field.single() {
        Ok(Some(value)) => value.to_str().map_err(|_| invalid_characters(header.as_str())),
        Ok(None) => Err(mismatch(format!("{header} is missing"))),
        Err(Repeated) => Err(twice(header.as_str())),
    }
}

fn differs(header: &str, member: &str) -> ErrorObject {
    mismatch(format!("{header} does not agree with {member}"))
}

/// Returns the media type without its parameters.
fn media_type(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}
