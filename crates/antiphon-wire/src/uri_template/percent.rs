//! Percent-encoding (RFC 3986).

use std::fmt::Write as _;

/// Percent-encodes what is not unreserved. `is_reserved` keeps reserved characters and the percent-encoding that the text has.
pub(super) fn encoded(text: &str, is_reserved: bool) -> String {
    let (mut out, bytes) = (String::with_capacity(text.len()), text.as_bytes());
    for (at, &byte) in bytes.iter().enumerate() {
        let is_kept = match byte {
            b'-' | b'.' | b'_' | b'~' => true,
            b'%' => {
                is_reserved
                    && bytes.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
            }
            _ => byte.is_ascii_alphanumeric() || is_reserved && b":/?#[]@!$&'()*+,;=".contains(&byte),
        };
        if is_kept {
            out.push(char::from(byte));
        } else {
            // A `String` can always be written to.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Decodes percent-encoding; `None` if a percent sign is not followed by two hexadecimal digits, or if the bytes are not UTF-8.
pub(super) fn decoded(text: &[u8]) -> Option<String> {
    let (mut bytes, mut input) = (Vec::with_capacity(text.len()), text.iter());
    while let Some(&byte) = input.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(*input.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}
