//! The fingerprint of a leg: a digest of the answers that its state asked for.

use antiphon_engine::Record;
use antiphon_seal::{CallSecret, canonical::canonical};
use antiphon_store::Fingerprint;
use antiphon_wire::InputResponses;
use serde_json::{Map, Value, value::RawValue};

/// Returns the digest of the answers to the questions of the last round. Other members of `inputResponses`, and the
/// `_meta` of an answer, do not count. Late answers are dropped, so they do not count either.
pub(crate) fn fingerprint(
    secret: &CallSecret,
    record: &Record,
    responses: Option<&InputResponses>,
) -> Fingerprint {
    let mut bytes = Vec::new();
    // Those that the client was asked: this version may not ask all of them any more.
    for path in record.asked_paths() {
        write(&mut bytes, path.as_bytes());
        match responses.and_then(|responses| responses.get(path)) {
            Some(answer) => {
                bytes.push(1);
                write(&mut bytes, &without_meta(answer));
            }
            None => bytes.push(0),
        }
    }
    Fingerprint::from_bytes(secret.fingerprint(&bytes).to_bytes())
}

fn write(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.extend_from_slice(&(field.len() as u64).to_be_bytes());
    bytes.extend_from_slice(field);
}

/// Returns the canonical form of an answer, without its `_meta`. An answer without a canonical form counts as written.
fn without_meta(answer: &RawValue) -> Vec<u8> {
    let text = answer.get();
    let canonical = |text: &str| canonical(text).unwrap_or_else(|_| text.as_bytes().to_vec());
    if !text.contains("_meta") {
        return canonical(text);
    }
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(mut members) => {
            members.remove("_meta");
            canonical(&Value::Object(members).to_string())
        }
        Err(_) => canonical(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(answer: &str) -> Vec<u8> {
        without_meta(&RawValue::from_string(answer.to_owned()).unwrap())
    }

    #[test]
    fn an_answer_is_the_same_in_another_order_and_with_another_meta() {
        let plain = of(r#"{"action":"accept","content":{"a":1,"b":2}}"#);
        assert_eq!(plain, of(r#"{"content":{"b":2,"a":1.0},"action":"accept"}"#));
        assert_eq!(plain, of(r#"{"action":"accept","_meta":{"n":1},"content":{"a":1,"b":2}}"#));
        assert_ne!(plain, of(r#"{"action":"accept","content":{"a":1,"b":3}}"#));
        assert_ne!(plain, of(r#"{"action":"decline"}"#));
    }
}
