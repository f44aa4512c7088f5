//! The health route: it says whether this instance should get requests, and nothing else.

use crate::serve::http::{HttpOptions, body::ReplyBody, reply::with_status};
use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};

/// Returns the answer to a request of the health path: 200 while the server serves, 503 while it drains. `None` for
/// another path. A load balancer sends neither a token nor the right `Host`.
pub(crate) fn health(parts: &Parts, options: &HttpOptions, is_draining: bool) -> Option<Response<ReplyBody>> {
    if options.health_path.as_deref()? != parts.uri.path() {
        return None;
    }
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        let mut response = with_status(StatusCode::METHOD_NOT_ALLOWED, Vec::new());
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Some(response);
    }
    let (status, text) =
        if is_draining { (StatusCode::SERVICE_UNAVAILABLE, "draining") } else { (StatusCode::OK, "ok") };
    let mut response = with_status(status, text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(response)
}
