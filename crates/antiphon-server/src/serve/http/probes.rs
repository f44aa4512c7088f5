//! The routes for operators: readiness, liveness and metrics. A load balancer sends neither a token nor the right `Host`.

use crate::{
    serve::http::{HttpOptions, body::ReplyBody, reply::with_status},
    server::message_service::MessageService,
};
use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};

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
