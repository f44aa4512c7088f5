//! The fields of a head: their names, their values, found in one walk, the kinds of responses that `Accept` lists, and the origins whose
//! pages may use the endpoint, with the fields by which a browser lets such a page read a response (CORS, in the Fetch standard).
//!
//! There is no header for credentials: a page sends its token in `Authorization`, and the endpoint has no cookies.

use antiphon_wire::header;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header as name};

/// Returns whether a request with this head is a preflight.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(name::ORIGIN)
        && headers.contains_key(name::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The values of one field.
#[derive(Clone, Copy, Default)]
pub(crate) struct Field<'h> {
    first: Option<&'h HeaderValue>,
    is_repeated: bool,
}

/// Finds these fields.
pub(crate) fn find<'h, const N: usize>(headers: &'h HeaderMap, names: [&HeaderName; N]) -> [Field<'h>; N] {
    let mut fields = [Field::default(); N];
    for (name, value) in headers {
        if let Some(field) = names.iter().position(|wanted| *wanted == name).and_then(|at| fields.get_mut(at))
        {
            field.is_repeated = field.first.is_some();
            field.first.get_or_insert(value);
        }
    }
    fields
}

impl<'h> Field<'h> {
    /// Returns the first value.
    pub(crate) fn first(self) -> Option<&'h HeaderValue> {
        self.first
    }

    /// Returns the only value; `Err` if there are several.
    pub(crate) fn single(self) -> Result<Option<&'h HeaderValue>, Repeated> {
        if self.is_repeated { Err(Repeated) } else { Ok(self.first) }
    }

    /// Returns whether all values have this property. `name` is that of the field.
    pub(crate) fn all(
        self,
        headers: &'h HeaderMap,
        name: &HeaderName,
        has_it: impl Fn(&'h HeaderValue) -> bool,
    ) -> bool {
        if self.is_repeated {
            headers.get_all(name).iter().all(has_it)
        } else {
            self.first.is_none_or(has_it)
        }
    }
}

/// A field that has more than one value.
#[derive(Debug, PartialEq)]
pub(crate) struct Repeated;

pub(crate) static MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static(header::MCP_PROTOCOL_VERSION);
pub(crate) static MCP_METHOD: HeaderName = HeaderName::from_static(header::MCP_METHOD);
pub(crate) static MCP_NAME: HeaderName = HeaderName::from_static(header::MCP_NAME);

// Those that the checks look for, as statics: a constant is made anew where it is used.
pub(crate) static ACCEPT: HeaderName = name::ACCEPT;
pub(crate) static CONTENT_ENCODING: HeaderName = name::CONTENT_ENCODING;
pub(crate) static CONTENT_LENGTH: HeaderName = name::CONTENT_LENGTH;
pub(crate) static CONTENT_TYPE: HeaderName = name::CONTENT_TYPE;
pub(crate) static HOST: HeaderName = name::HOST;
pub(crate) static ORIGIN: HeaderName = name::ORIGIN;
pub(crate) static TRANSFER_ENCODING: HeaderName = name::TRANSFER_ENCODING;

/// The session that a message belongs to. Of the revisions up to 2025-11-25.
pub(crate) static MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The event after which a stream is resumed.
pub(crate) static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Has a proxy pass on each event at once.
pub(crate) static X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// The kinds of responses that a client reads.
///
/// > The client **MUST** include an `Accept` header listing both `application/json` and `text/event-stream`
///
/// A client that lists one of them gets that one. Without messages before the reply, one JSON text is the whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepts {
    pub(crate) json: bool,
    pub(crate) events: bool,
}

impl Accepts {
    pub(crate) const ALL: Self = Self { json: true, events: true };

    /// Reads the field. `accept` is what was found of it in the headers.
    pub(crate) fn of(headers: &HeaderMap, accept: Field<'_>) -> Self {
        // Nearly every request.
        if accept.first().is_some_and(|accept| accept == "application/json, text/event-stream") {
            return Self::ALL;
        }
        let values = || headers.get_all(&ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let ranges =
            || values().flat_map(|value| value.split(',')).map(str::trim).filter(|it| !it.is_empty());
        // > A request without any Accept header field implies that the user agent will accept any media type in response.
        // > (RFC 9110, section 12.5.1)
        if ranges().next().is_none() {
            return Self::ALL;
        }
        Self { json: is_acceptable(ranges(), JSON), events: is_acceptable(ranges(), EVENTS) }
    }
}

/// Returns whether the ranges accept this type.
///
/// > Media ranges can be overridden by more specific media ranges or specific media types. If more than one media range applies
/// > to a given type, the most specific reference has precedence. (RFC 9110, section 12.5.1)
fn is_acceptable<'a>(ranges: impl Iterator<Item = &'a str>, wanted: &str) -> bool {
    let kind = wanted.split('/').next().unwrap_or(wanted);
    let (mut best, mut accepted) = (0, false);
    for range in ranges {
        let (name, parameters) = range.split_once(';').unwrap_or((range, ""));
        let name = name.trim();
        let precision = match name.strip_suffix("/*") {
            _ if name.eq_ignore_ascii_case(wanted) => 3,
            Some(of) if of.eq_ignore_ascii_case(kind) => 2,
            Some("*") => 1,
            _ => continue,
        };
        let has_weight = !parameters.split(';').any(is_zero_weight);
        if precision > best {
            (best, accepted) = (precision, has_weight);
        } else if precision == best {
            accepted |= has_weight;
        }
    }
    accepted
}

/// Returns whether a parameter of a range is `q=0`.
///
/// > a value of 0 means "not acceptable" (RFC 9110, section 12.4.2)
fn is_zero_weight(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    let value = value.trim();
    name.trim().eq_ignore_ascii_case("q")
        && value.starts_with('0')
        && value.bytes().all(|c| b"0.".contains(&c))
}

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
        if page.is_none() && self.0.is_empty() || headers.contains_key(name::ACCESS_CONTROL_ALLOW_ORIGIN) {
            return;
        }
        // Also without an origin: a cache must not give this response to a page.
        headers.append(name::VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = page {
            headers.insert(name::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(name::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
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
    use http::{
        HeaderValue,
        header::{ACCEPT, HOST, ORIGIN},
    };

    #[test]
    fn fields_are_found_with_their_values() {
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, "a"), (ACCEPT, "b"), (ACCEPT, "c"), (ACCEPT, "d")] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let [accept, origin, host] = find(&headers, [&ACCEPT, &ORIGIN, &HOST]);
        assert_eq!(host.single(), Ok(Some(&HeaderValue::from_static("a"))));
        assert_eq!((origin.single(), origin.first()), (Ok(None), None));
        assert_eq!((accept.single(), accept.first()), (Err(Repeated), headers.get(ACCEPT)));
        for (field, name, last, all) in [
            (accept, ACCEPT, "d", true),
            (accept, ACCEPT, "c", false),
            (host, HOST, "a", true),
            (origin, ORIGIN, "", true),
        ] {
            assert_eq!(
                field.all(&headers, &name, |value| value.as_bytes() <= last.as_bytes()),
                all,
                "{name} {last}"
            );
        }
    }

    fn check(values: &[&'static str], json: bool, events: bool) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&ACCEPT, HeaderValue::from_static(value));
        }
        let [accept] = find(&headers, [&ACCEPT]);
        assert_eq!(Accepts::of(&headers, accept), Accepts { json, events }, "{values:?}");
    }

    #[test]
    fn a_client_names_what_it_reads() {
        check(&["application/json, text/event-stream"], true, true);
        check(&["text/event-stream,application/json"], true, true);
        check(&["text/event-stream", "application/json"], true, true);
        check(&["Application/JSON; charset=utf-8"], true, false);
        check(&["text/event-stream"], false, true);
        check(&["text/*"], false, true);
        check(&["application/*"], true, false);
        check(&["*/*"], true, true);
        check(&["text/html, image/png"], false, false);
        check(&["application/jsonp"], false, false);
        check(&["*"], false, false);
        // Without a range, everything is accepted.
        check(&[], true, true);
        check(&[""], true, true);
        check(&[" , "], true, true);
    }

    #[test]
    fn a_weight_of_zero_is_not_acceptable() {
        check(&["application/json, text/event-stream;q=0"], true, false);
        check(&["application/json;q=0, text/event-stream"], false, true);
        check(&["application/json; Q=0.000, text/event-stream; q=0.001"], false, true);
        check(&["application/json;charset=utf-8;q=0, */*"], false, true);
        check(&["*/*;q=0"], false, false);
        check(&["text/*;q=0, text/event-stream, */*;q=0.1"], true, true);
        check(&["*/*, text/*;q=0"], true, false);
        check(&["application/json;q=0", "application/json;q=0.5"], true, false);
        // No weights.
        check(&["application/json;q=, text/event-stream;quality=0"], true, true);
        check(&["application/json;q=1, text/event-stream;q=0.5"], true, true);
    }

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
