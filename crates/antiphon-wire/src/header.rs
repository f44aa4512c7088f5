//! The HTTP headers that mirror members of the body, and the encoding of their values.

pub mod params;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::borrow::Cow;

/// The name of the header that repeats the protocol version.
pub const MCP_PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The name of the header that repeats `method`.
pub const MCP_METHOD: &str = "mcp-method";
/// The name of the header that repeats `params.name` or `params.uri`.
pub const MCP_NAME: &str = "mcp-name";

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Returns a value in the encoding of `Mcp-Name` and `Mcp-Param-*`.
///
/// > When a value cannot be safely represented as a plain ASCII header value (e.g., it contains non-ASCII
/// > characters, control characters, or has leading/trailing whitespace), clients **MUST** use Base64
/// > encoding
///
/// ```
/// use antiphon_wire::header::{decode, encode};
/// assert_eq!(encode("us-west1"), "us-west1");
/// assert_eq!(encode("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
/// assert_eq!(decode("=?base64?SGVsbG8sIOS4lueVjA==?=").as_deref(), Some("Hello, 世界"));
/// ```
pub fn encode(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && value.trim_matches([' ', '\t']) == value
        && !value.is_empty()
        // > clients **MUST** also Base64-encode any plain-ASCII value that matches the sentinel pattern
        && sentinel(value).is_none();
    if plain {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(value)))
    }
}

/// Returns the decoded value; `None` if a sentinel contains anything other than base64 of UTF-8.
pub fn decode(header: &str) -> Option<Cow<'_, str>> {
    match sentinel(header) {
        None => Some(Cow::Borrowed(header)),
        Some(encoded) => {
            let bytes = STANDARD.decode(encoded).ok()?;
            String::from_utf8(bytes).ok().map(Cow::Owned)
        }
    }
}

fn sentinel(value: &str) -> Option<&str> {
    value.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_specification() {
        for (value, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", "=?base64??="),
        ] {
            assert_eq!(encode(value), header);
            assert_eq!(decode(header).as_deref(), Some(value));
        }
    }

    #[test]
    fn what_is_no_base64_of_text_is_no_value() {
        for header in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "=?base64?/w==?=", "=?base64?YR==?="] {
            assert_eq!(decode(header), None, "{header}");
        }
        // The markers are case-sensitive: anything else is a literal.
        for header in ["=?BASE64?SGVsbG8=?=", "=?base64?SGVsbG8=", "SGVsbG8=?="] {
            assert_eq!(decode(header).as_deref(), Some(header));
        }
    }
}
