//! JSON as editors and hosts accept it: with a byte order mark, comments and trailing commas.

/// Returns the text as plain JSON: what plain JSON does not have becomes spaces, so that an error names the same line and column.
/// What has no meaning here either, such as a comment without an end, stays, and is an error of the JSON.
pub(super) fn to_json(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut json = String::with_capacity(text.len());
    // The place of a comma after which only spaces and comments came.
    let mut comma = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '/' => comment_length(rest),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if length > 1 && first == '/' {
            json.extend(token.chars().map(|it| if it == '\n' { '\n' } else { ' ' }));
            continue;
        }
        match (first, comma) {
            ('}' | ']', Some(at)) => json.replace_range(at..=at, " "),
            (',', _) => comma = Some(json.len()),
            _ => {}
        }
        if first != ',' && !first.is_whitespace() {
            comma = None;
        }
        json.push_str(token);
    }
    json
}

/// Returns the length of the string at the beginning, up to its closing quote or to the end of the text.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of the comment at the beginning, or 1 if there is none that has an end.
fn comment_length(text: &str) -> usize {
    match text.as_bytes().get(1) {
        Some(b'/') => text.find('\n').unwrap_or(text.len()),
        Some(b'*') => text[2..].find("*/").map_or(1, |at| at + 4),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_editors_accept_is_read() {
        for (text, expected) in [
            ("\u{feff}{}", Some(json!({}))),
            ("// a\n{} // b", Some(json!({}))),
            ("/* a */ {/**/} /* , */", Some(json!({}))),
            ("{\"a\": 1, // b\n}", Some(json!({"a": 1}))),
            ("[1, /* , */ 2 , \n]", Some(json!([1, 2]))),
            ("[[1,],]\r\n", Some(json!([[1]]))),
            (
                r#"{"a": "http://b", "c": "/* d */", "e": ",]"}"#,
                Some(json!({"a": "http://b", "c": "/* d */", "e": ",]"})),
            ),
            (r#"["\"// a", "\\", "b,}" ,]"#, Some(json!(["\"// a", "\\", "b,}"]))),
            ("{\"\u{e9}\": 1, /* \u{e9}\u{1f600} */ }", Some(json!({"\u{e9}": 1}))),
            // Not JSON for an editor either.
            ("[1,,]", None),
            ("[,1]", None),
            ("{} /* a", None),
            ("{} / b", None),
            ("[\"a]", None),
            ("", None),
        ] {
            assert_eq!(serde_json::from_str::<Value>(&to_json(text)).ok(), expected, "{text}");
        }
    }

    #[test]
    fn an_error_names_the_place_in_the_file() {
        let text = "{\n  // first\n  \"a\": 1, /* b\n */ oops\n}";
        let fault = serde_json::from_str::<Value>(&to_json(text)).unwrap_err();
        assert_eq!((fault.line(), fault.column()), (4, 5));
    }
}
