//! Helpers of the test files.

#![allow(clippy::unwrap_used, reason = "a test stops where its setup fails")]

use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A JSON text with its members sorted and its spaces gone. Numbers stay the text they are: 1 is not 1.0.
pub(crate) fn exact(text: &str) -> String {
    let text = text.trim();
    match text.as_bytes()[0] {
        b'{' => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap();
            let members = members.iter().map(|(name, value)| format!("{name:?}:{}", exact(value.get())));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        b'[' => {
            let entries: Vec<&RawValue> = serde_json::from_str(text).unwrap();
            let entries = entries.iter().map(|entry| exact(entry.get()));
            format!("[{}]", entries.collect::<Vec<_>>().join(","))
        }
        b'"' => format!("{:?}", serde_json::from_str::<String>(text).unwrap()),
        _ => text.to_owned(),
    }
}
