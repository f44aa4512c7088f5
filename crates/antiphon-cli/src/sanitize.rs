//! Texts of servers for a terminal, printed by [`ForeignText`]: a text must not move the cursor, change colours or the
//! title, change the direction of other text, or show less than it has.

use antiphon::wire::text::{ForeignText, escaped, is_escaped};

/// Returns the text as one line.
pub(crate) fn line(text: &str) -> String {
    one_line(text).whole().to_string()
}

/// Returns the text with its line breaks and tabs.
pub(crate) fn lines(text: &str) -> String {
    escaped(text).whole().multiline(true).to_string()
}

/// Returns the lines of the text, indented by two spaces, so that they cannot imitate the output of this program.
pub(crate) fn indented(text: &str) -> String {
    lines(text).lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Returns the same JSON with unsafe characters escaped. Outside of strings, JSON contains only line breaks and tabs.
pub(crate) fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.push(' '),
            c if is_escaped(c) => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")))
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Returns the text as one line of at most `limit` characters, because a prompt is drawn again at every key.
pub(crate) fn truncated(text: &str, limit: usize) -> String {
    one_line(text).limit(limit).to_string()
}

/// Replaces line breaks and tabs by spaces: they separate words.
fn one_line(text: &str) -> ForeignText<String> {
    ForeignText::new(
        text.replace("\r\n", " ")
            .replace(['\n', '\r', '\t', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'], " "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_characters_are_escaped() {
        for (text, one, several) in [
            ("plain, é, 日本", "plain, é, 日本", "plain, é, 日本"),
            ("a\nb\tc\r\nd", "a b c d", "a\nb\tc\nd"),
            ("\u{1b}[31mred", r"\u{1b}[31mred", r"\u{1b}[31mred"),
            ("\u{9b}2Jx\u{8}\u{7f}", r"\u{9b}2Jx\u{8}\u{7f}", r"\u{9b}2Jx\u{8}\u{7f}"),
            (
                "a\u{202e}b\u{3164}c\u{200b}d",
                r"a\u{202e}b\u{3164}c\u{200b}d",
                r"a\u{202e}b\u{3164}c\u{200b}d",
            ),
            ("a\u{2028}b", "a b", r"a\u{2028}b"),
        ] {
            assert_eq!((line(text).as_str(), lines(text).as_str()), (one, several), "{text:?}");
        }
        assert_eq!(indented("a\n? b"), "  a\n  ? b");
    }

    #[test]
    fn escaped_json_is_equal() {
        let value = serde_json::json!({"a\u{9b}2J": "\u{1b}[31m\u{202e}\u{7f}\u{e0041}é\u{3164}\n日本"});
        let shown = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!shown.contains(is_escaped), "{shown:?}");
        assert!(shown.contains(r"\u202e\u007f\udb40\udc41é\u3164\n日本"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn long_texts_are_truncated() {
        assert_eq!(
            (truncated("a\nbé", 4), truncated("a\nbéc", 4)),
            ("a bé".into(), "a bé… (6 bytes)".into())
        );
    }
}
