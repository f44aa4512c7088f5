//! URIs.

/// > Custom URI schemes **MUST** be in accordance with RFC3986
///
/// Returns whether the text is a scheme, followed only by characters that a URI may hold. The rest is not parsed: its
/// meaning depends on the scheme.
pub(crate) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(fits) && is_rest(rest)
}

/// Returns the template with one character in the place of each expression.
pub(crate) fn without_expressions(template: &str) -> String {
    let (mut text, mut rest) = (String::new(), template);
    while let Some((before, after)) = rest.split_once('{') {
        text = text + before + "x";
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    text + rest
}

fn is_rest(rest: &str) -> bool {
    let mut pieces = rest.split('%');
    let plain = |piece: &str| {
        piece.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte))
    };
    let escaped = |piece: &str| piece.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    pieces.next().is_none_or(plain) && pieces.all(|piece| escaped(piece) && plain(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_uri_and_what_is_not() {
        for uri in [
            "a:",
            "file:///a/b%20c",
            "a+b-c.1://x",
            "urn:isbn:0451450523",
            "h://[::1]:8/?q=1#f",
            "a:%C3%A9%41",
        ] {
            assert!(is_uri(uri), "{uri}");
        }
        for text in [
            "", ":", "a", "a/b", ":x", "1a:b", "a b:c", "a:b c", "a:é", "é:a", "a:%", "a:%4", "a:%4g",
            "a:\n", "a:<b>", "a:{b}",
        ] {
            assert!(!is_uri(text), "{text}");
        }
    }
}
