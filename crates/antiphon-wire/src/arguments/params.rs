//! Params of any method, without `_meta`, and the path of a member that does not fit.

use super::decode;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeMap;

/// Decodes `params` without their `_meta`, as [`decode`](super::decode) does.
///
/// # Errors
/// The path of the member that does not fit, and the reason, for the sender: `params.filters[1].year: invalid type: ..`.
pub fn decode_params<P: DeserializeOwned>(text: &RawValue) -> Result<P, String> {
    let mut members: BTreeMap<String, &RawValue> =
        serde_json::from_str(text.get()).map_err(|_fault| "params must be an object".to_owned())?;
    members.remove("_meta");
    let text = to_raw_value(&members).map_err(|fault| format!("params: {fault}"))?;
    decode(text.get()).map_err(|fault| {
        let place = offset(text.get(), fault.line(), fault.column());
        let words = fault.to_string();
        // The position is one in the text without `_meta`, which the caller has not sent.
        let words = words.rsplit_once(" at line ").map_or(&*words, |(words, _)| words);
        format!("{}: {words}", path(&text, place))
    })
}

/// Returns the offset of a line and column, both from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    before + column
}

/// Returns the path of the innermost value in which this offset is. A fault is found at the last byte of a value.
fn path(text: &RawValue, offset: usize) -> String {
    let (mut path, mut inside, mut offset) = ("params".to_owned(), text.get(), offset);
    loop {
        let members = || {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(inside).ok()?;
            Some(members.into_iter().map(|(name, value)| (format!(".{name}"), value)).collect())
        };
        let items = || {
            let items: Vec<&RawValue> = serde_json::from_str(inside).ok()?;
            Some(items.into_iter().enumerate().map(|(at, value)| (format!("[{at}]"), value)).collect())
        };
        let parts: Vec<(String, &RawValue)> = members().or_else(items).unwrap_or_default();
        let found = parts.into_iter().find_map(|(name, value)| {
            // The value is a part of the text.
            let start = value.get().as_ptr().addr() - inside.as_ptr().addr();
            let is_here = (start..=start + value.get().len()).contains(&offset);
            is_here.then_some((name, value.get(), start))
        });
        let Some((name, value, start)) = found else { return path };
        path.push_str(&name);
        (inside, offset) = (value, offset - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::Value;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only decoded")]
    struct Query {
        text: String,
        #[serde(default)]
        most: Option<u32>,
        #[serde(default)]
        parts: Vec<Part>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only decoded")]
    struct Part {
        name: String,
    }

    #[test]
    fn a_fault_names_its_member() {
        for (text, expected) in [
            (r#"{"text":"a","_meta":{"x":1}}"#, None),
            (r#"{"text":"a","most":2.0}"#, None),
            (r#"{"_meta":{}}"#, Some("params: missing field `text`")),
            (r#"{"text":7}"#, Some("params.text: invalid type: integer `7`, expected a string")),
            (
                "{\"text\":\"a\",\n \"most\" : \"many\"}",
                Some(r#"params.most: invalid type: string "many", expected u32"#),
            ),
            (r#"{"text":"a","parts":[{"name":"b"},{}]}"#, Some("params.parts[1]: missing field `name`")),
            (
                "{\"parts\":[{\"name\":\"b\"},{\n\n\"name\":null}],\"text\":\"a\"}",
                Some("params.parts[1].name: invalid type: null, expected a string"),
            ),
            ("[]", Some("params must be an object")),
        ] {
            let text: Box<RawValue> = serde_json::from_str(text).unwrap();
            let fault = decode_params::<Query>(&text).err();
            assert_eq!(fault.as_deref(), expected, "{text}");
        }
        let unknown: Box<RawValue> = serde_json::from_str(r#"{"text":"a","more":1}"#).unwrap();
        assert!(decode_params::<Query>(&unknown).unwrap_err().contains("unknown field `more`"));
        assert!(decode_params::<Value>(&unknown).is_ok());
    }
}
