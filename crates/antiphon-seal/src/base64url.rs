//! Base64url without padding. Each byte string has exactly one spelling.
//!
//! Decoding rejects padding, white space, the other alphabet and set trailing bits, so a text that opens is
//! the text that was sealed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn push(text: &mut String, bytes: &[u8]) {
    URL_SAFE_NO_PAD.encode_string(bytes, text);
}

/// Returns the length of the text for `bytes` bytes.
pub(crate) fn encoded_len(bytes: usize) -> usize {
    bytes / 3 * 4 + [0, 2, 3][bytes % 3]
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
