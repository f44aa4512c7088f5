//! The head of an HTTP request, which the contexts of handlers share.

use http::{Extensions, HeaderMap};

/// The headers of a request, and the values that tower layers in front of the server have added.
#[derive(Clone)]
pub(crate) struct RequestHead {
    pub(crate) headers: HeaderMap,
    pub(crate) extensions: Extensions,
}

impl RequestHead {
    /// Takes the head of a request.
    #[cfg(feature = "http")]
    pub(crate) fn taken(parts: &mut http::request::Parts) -> Self {
        use std::mem::take;
        Self { headers: take(&mut parts.headers), extensions: take(&mut parts.extensions) }
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}
