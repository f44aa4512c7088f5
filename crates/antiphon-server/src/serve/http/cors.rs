//! The requests that are answered without a token and before the checks of a message: preflights of browsers (CORS, in the Fetch standard), and the
//! routes for operators: readiness, liveness and metrics. A load balancer sends neither a token nor the right `Host`.

use crate::{
    serve::http::{
        HttpOptions,
        body::{Rejection, ReplyBody},
        checks::{check_host, origin_not_allowed},
        fields::is_preflight,
        reply::with_status,
    },
    server::message_service::MessageService,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header, request::Parts};

/// The request headers that a page may always send. A preflight that names others beginning with `mcp-` gets those too.
const REQUEST_HEADERS: &str = "content-type, accept, authorization, dpop, mcp-protocol-version, mcp-method, mcp-name, \
                               mcp-session-id, last-event-id";

/// The number of names of a preflight that are read. A preflight has no token, so its work is bounded.
const MAX_NAMES: usize = 64;

/// The seconds for which a browser may remember a preflight. It is the maximum in Chromium. Each request is checked
/// again, so an origin that is no longer allowed is rejected at once.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Returns the answer to a preflight: the request with which a browser asks whether a page may send another one. `None`
/// for any other request. A preflight has no token.
pub(crate) fn preflight(
    parts: &Parts,
    options: &HttpOptions,
    has_sessions: bool,
) -> Option<Result<Response<ReplyBody>, Rejection>> {
    is_preflight(&parts.method, &parts.headers).then(|| {
        check_host(parts, options)?;
        options.page_of(&parts.headers).ok_or_else(origin_not_allowed)?;
        Ok(preflight_response(&parts.headers, has_sessions))
    })
}

fn preflight_response(asked: &HeaderMap, has_sessions: bool) -> Response<ReplyBody> {
    let mut response = with_status(StatusCode::NO_CONTENT, Vec::new());
    let headers = response.headers_mut();
    let methods = if has_sessions { "POST, GET, DELETE" } else { "POST" };
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(asked));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    // Whoever named the origin wants its pages to reach this server, in whatever network it is.
    if asked.get(REQUEST_PRIVATE_NETWORK).is_some_and(|value| value == "true") {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    response
}

/// Returns the headers that the page may send. Those beginning with `mcp-` cannot be listed beforehand: `mcp-param-*`
/// repeats arguments of tools.
fn allowed_headers(asked: &HeaderMap) -> HeaderValue {
    let named = asked.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let named = named.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let is_listed = |name: &HeaderName| REQUEST_HEADERS.split(", ").any(|listed| listed == name.as_str());
    let mut more: Vec<HeaderName> = Vec::new();
    for name in named.take(MAX_NAMES).filter_map(|name| name.trim().parse::<HeaderName>().ok()) {
        if name.as_str().starts_with("mcp-") && !is_listed(&name) && !more.contains(&name) {
            more.push(name);
        }
    }
    let allowed = more.iter().fold(REQUEST_HEADERS.to_owned(), |all, name| all + ", " + name.as_str());
    HeaderValue::from_str(&allowed).unwrap_or(HeaderValue::from_static(REQUEST_HEADERS))
}

/// Returns the answer to a request of one of these paths; `None` for another path.
pub(crate) fn probe<S: MessageService>(
    parts: &Parts,
    options: &HttpOptions,
    server: &S,
) -> Option<Response<ReplyBody>> {
    let is_at = |path: &Option<String>| path.as_deref() == Some(parts.uri.path());
    let answer = if is_at(&options.health_path) {
        match server.is_draining() {
            true => (StatusCode::SERVICE_UNAVAILABLE, "draining".to_owned()),
            false => (StatusCode::OK, "ok".to_owned()),
        }
    } else if is_at(&options.liveness_path) {
        (StatusCode::OK, "ok".to_owned())
    } else if is_at(&options.metrics_path) {
        (StatusCode::OK, server.metrics_text()?)
    } else {
        return None;
    };
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        let mut response = with_status(StatusCode::METHOD_NOT_ALLOWED, Vec::new());
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Some(response);
    }
    let (status, text) = answer;
    let mut response = with_status(status, text);
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(response)
}
