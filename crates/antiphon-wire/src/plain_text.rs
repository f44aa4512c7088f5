//! Writing of long texts that hardly ever need an escape, such as base64.
//!
//! serde_json looks at each byte of a string by itself. Here the text is searched for a byte that needs an escape in whole
//! blocks. Without such a byte, the text is written between its quotes, as raw JSON.

use crate::walk::{plain, walked};
use serde::{Serialize as _, Serializer};
use serde_json::Value;

/// Writes the text, with the same result as its own `serialize`.
pub(crate) fn write<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    if let Some(text) = text
        && plain(text.as_bytes()) == text.len()
        && let Some(raw) = walked(&quoted(text))
    {
        return raw.serialize(serializer);
    }
    text.serialize(serializer)
}

/// Appends the text as a JSON string, as serde_json writes it.
pub(crate) fn push(json: &mut String, text: &str) {
    if plain(text.as_bytes()) == text.len() {
        push_quoted(json, text);
    } else {
        json.push_str(&Value::from(text).to_string());
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    push_quoted(&mut quoted, text);
    quoted
}

fn push_quoted(json: &mut String, text: &str) {
    json.push('"');
    json.push_str(text);
    json.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Serialize;

    #[derive(Serialize)]
    struct Written {
        #[serde(serialize_with = "super::write")]
        text: Option<String>,
    }

    fn is_written_as_usual(text: Option<String>) {
        let usual = serde_json::json!({"text": text});
        let written = Written { text };
        assert_eq!(serde_json::to_string(&written).unwrap(), usual.to_string());
        assert_eq!(serde_json::to_value(&written).unwrap(), usual);
    }

    #[test]
    fn every_character_is_written_as_usual() {
        is_written_as_usual(None);
        is_written_as_usual(Some(String::new()));
        for character in (0..0x3000).filter_map(char::from_u32) {
            for before in [0, 7, 100] {
                is_written_as_usual(Some(format!("{}{character}A", "a".repeat(before))));
            }
        }
    }

    proptest! {
        #[test]
        fn texts_are_written_as_usual(text in "(?s).{0,200}") {
            is_written_as_usual(Some(text));
        }
    }
}
