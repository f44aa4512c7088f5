//! Sanitizes texts of servers for a terminal. A text must not move the cursor, change colours or the title, or change
//! the direction of other text.

/// Returns the text as one line.
pub(crate) fn line(text: &str) -> String {
    text.chars().map(|c| if is_break(c) { ' ' } else { c }).filter(|c| !is_unsafe(*c)).collect()
}

/// Returns the text with its line breaks and tabs.
pub(crate) fn lines(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_unsafe(*c)).collect()
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
            c if is_unsafe(c) => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")))
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Returns the text as one line of at most `limit` characters, because a prompt is drawn again at every key.
pub(crate) fn truncated(text: &str, limit: usize) -> String {
    let mut shown: String = line(text);
    if let Some((at, _)) = shown.char_indices().nth(limit) {
        shown.truncate(at);
        shown.push('…');
    }
    shown
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns `true` for control characters, C1 included, and for characters that are invisible or change the direction of
/// text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_characters_are_removed() {
        for (text, one, several) in [
            ("plain, é, 日本", "plain, é, 日本", "plain, é, 日本"),
            ("a\nb\tc\r\nd", "a b c  d", "a\nb\tc\nd"),
            ("\u{1b}[31mred\u{1b}[0m", "[31mred[0m", "[31mred[0m"),
            ("\u{1b}]0;title\u{7}x", "]0;titlex", "]0;titlex"),
            ("\u{9b}2Jx\u{8}\u{7f}", "2Jx", "2Jx"),
            ("a\u{202e}b\u{2066}c\u{200b}d", "abcd", "abcd"),
            ("a\u{2028}b", "a b", "ab"),
        ] {
            assert_eq!((line(text).as_str(), lines(text).as_str()), (one, several), "{text:?}");
        }
        assert_eq!(indented("a\n? b"), "  a\n  ? b");
    }

    #[test]
    fn escaped_json_is_equal() {
        let value = serde_json::json!({"a\u{9b}2J": "\u{1b}[31m\u{202e}\u{7f}\u{e0041}é\n日本"});
        let shown = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!shown.contains(is_unsafe), "{shown:?}");
        assert!(shown.contains(r"\u202e\u007f\udb40\udc41é\n日本"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn long_texts_are_truncated() {
        assert_eq!((truncated("a\nbé", 4), truncated("a\nbéc", 4)), ("a bé".into(), "a bé…".into()));
    }
}
