//! The rejection of a request before its message is read.

use http::{HeaderValue, StatusCode};

/// The status, the text and the headers of a rejection.
#[derive(Debug, PartialEq)]
pub(crate) struct Rejection {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    /// True if the rest of the body may still arrive.
    pub(crate) unread: bool,
    /// The value of `WWW-Authenticate`.
    pub(crate) challenge: Option<HeaderValue>,
    /// True if the same request may succeed a moment later.
    pub(crate) retry_after: bool,
}

impl Rejection {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), unread: true, challenge: None, retry_after: false }
    }
}
