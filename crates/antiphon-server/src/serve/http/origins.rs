//! The origins whose pages may use the endpoint, and the headers with which a browser lets such a page read a response
//! (CORS, in the Fetch standard).
//!
//! There is no header for credentials: a page sends its token in `Authorization`, and the endpoint has no cookies.

use http::{HeaderMap, HeaderValue, header};

/// The headers of responses that a page may read, besides those that browsers always show.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "mcp-session-id, mcp-protocol-version, www-authenticate, dpop-nonce, retry-after",
);

/// The origins that were named with `HttpOptions::allow_origin`, as browsers write them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowedOrigins(Vec<HeaderValue>);

impl AllowedOrigins {
    /// Adds an origin. A text that no page has as its origin is left out, with a warning; then the result is false.
    pub(crate) fn add(&mut self, origin: &str) -> bool {
        let written = as_browsers_write_it(origin).and_then(|origin| HeaderValue::from_str(&origin).ok());
        if written.is_none() {
            tracing::warn!(
                ?origin,
                "allow_origin: not the origin of a web page, and ignored: scheme, host and port, such as \
                 https://app.example.com"
            );
        }
        let is_origin = written.is_some();
        self.0.extend(written);
        is_origin
    }

    /// Returns the allowed origin that is equal to this one, but for the case of letters.
    pub(crate) fn find(&self, origin: &HeaderValue) -> Option<&HeaderValue> {
        self.0.iter().find(|allowed| allowed.as_bytes().eq_ignore_ascii_case(origin.as_bytes()))
    }

    /// Adds the headers of CORS to a response. `page` is the origin of the page that sent the request, if it may use the endpoint.
    pub(crate) fn add_headers(&self, page: Option<HeaderValue>, headers: &mut HeaderMap) {
        // The metadata of the protected resource is for every page.
        if page.is_none() && self.0.is_empty() || headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
            return;
        }
        // Also without an origin: a cache must not give this response to a page.
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = page {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
        }
    }
}

/// Returns an origin in lower case and without the port of its scheme, as browsers send it; `None` for `null`, `*`, and
/// URLs with more than scheme, host and port. A page in a sandbox has the origin `null`, whoever made it.
fn as_browsers_write_it(origin: &str) -> Option<String> {
    let origin = origin.strip_suffix('/').unwrap_or(origin).to_ascii_lowercase();
    let (scheme, authority) = origin.split_once("://")?;
    let is_scheme = !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_authority = !authority.is_empty()
        && authority.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:[]".contains(&byte));
    let own_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    let authority = authority.strip_suffix(own_port).unwrap_or(authority);
    (is_scheme && is_authority).then(|| format!("{scheme}://{authority}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_written_as_browsers_write_it() {
        for (origin, written) in [
            ("https://app.example.com", Some("https://app.example.com")),
            ("HTTPS://App.Example.com/", Some("https://app.example.com")),
            ("https://app.example.com:443", Some("https://app.example.com")),
            ("http://app.example.com:80/", Some("http://app.example.com")),
            ("http://app.example.com:443", Some("http://app.example.com:443")),
            ("https://app.example.com:8443", Some("https://app.example.com:8443")),
            ("http://[::1]:80", Some("http://[::1]")),
            ("chrome-extension://abcdefgh", Some("chrome-extension://abcdefgh")),
            ("null", None),
            ("*", None),
            ("https://*", None),
            ("https://*.example.com", None),
            ("app.example.com", None),
            ("https://", None),
            ("https:///", None),
            ("://app.example.com", None),
            ("https://app.example.com//", None),
            ("https://app.example.com/page", None),
            ("https://app.example.com?x", None),
            ("https://user@app.example.com", None),
            ("https://app.example.com https://b.example.com", None),
            ("https://app.example.com\r\nx: y", None),
            ("", None),
        ] {
            assert_eq!(as_browsers_write_it(origin).as_deref(), written, "{origin}");
        }
    }
}
