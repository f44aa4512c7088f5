//! The HTTP status of a reply.

use crate::reply::{ReplyKind, ReplyMessage};
use antiphon_wire::ErrorCode;
use http::StatusCode;

impl ReplyMessage {
    /// Returns the HTTP status of a response with this body.
    ///
    /// `-32603` and codes of an author's own are 200, as are errors in legacy sessions: proxies would send a request again
    /// after a 5xx.
    pub fn http_status(&self) -> StatusCode {
        match self.kind() {
            ReplyKind::Error(code) => status_of(*code),
            // > `HTTP 403 Forbidden` status code (per RFC 6750 Section 3.1)
            ReplyKind::InsufficientScope(_) => StatusCode::FORBIDDEN,
            // HTTP has no status for an error in a session.
            ReplyKind::Result | ReplyKind::SessionError(_) => StatusCode::OK,
        }
    }
}

fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        // > it MUST respond with `404 Not Found` and a JSON-RPC error with code `-32601`
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        // > On HTTP, the response status MUST be `400 Bad Request`.
        ErrorCode::PARSE_ERROR
        | ErrorCode::INVALID_REQUEST
        | ErrorCode::INVALID_PARAMS
        | ErrorCode::HEADER_MISMATCH
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
