//! Typed arguments of tools: decoding from their text, and the [rules](Rules) of their schema that decoding does not enforce.

mod rules;

pub use rules::{Rules, Uncovered};

use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::{
    Deserializer, Number, Value,
    value::{RawValue, to_raw_value},
};
use std::{collections::BTreeMap, marker::PhantomData};

/// The largest absolute value up to which a floating-point number represents exactly one integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Decodes arguments that fit their schema.
///
/// In JSON Schema `42.0` and `4.2e1` are integers, and some clients send them; Rust integers accept neither. So, if
/// decoding fails, it is tried once more with such numbers written as integers.
///
/// # Errors
/// If the text is no JSON, or no value of the type.
pub fn decode<A: DeserializeOwned>(text: &str) -> serde_json::Result<A> {
    decode_seed(PhantomData::<A>, text)
}

/// Decodes arguments into a type that needs a seed.
fn decode_seed<T, S>(seed: S, text: &str) -> serde_json::Result<T>
where
    S: for<'de> DeserializeSeed<'de, Value = T> + Copy,
{
    let mut deserializer = Deserializer::from_str(text);
    let read = seed.deserialize(&mut deserializer);
    read.and_then(|value| deserializer.end().map(|()| value)).or_else(|fault| {
        let mut value: Value = serde_json::from_str(text)?;
        if !make_whole(&mut value) {
            return Err(fault);
        }
        seed.deserialize(value).map_err(|_| fault)
    })
}

/// Writes all whole numbers as integers. Returns true if one was changed.
fn make_whole(value: &mut Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() <= EXACT => {
                // Exact, because the number is whole and small enough.
                #[allow(clippy::cast_possible_truncation, reason = "bounded above")]
                let whole = float as i64;
                *number = Number::from(whole);
                true
            }
            _ => false,
        },
        Value::Array(items) => items.iter_mut().fold(false, |found, item| make_whole(item) | found),
        Value::Object(members) => {
            members.values_mut().fold(false, |found, member| make_whole(member) | found)
        }
        _ => false,
    }
}

/// Decodes `params` without their `_meta`, as [`decode`] does.
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
    use std::fmt::Debug;

    fn check<A: DeserializeOwned + PartialEq + Debug>(text: &str, expected: Option<A>) {
        assert_eq!(decode::<A>(text).ok(), expected, "{text}");
    }

    #[test]
    fn whole_numbers_decode_however_they_are_written() {
        check("42.0", Some(42_u8));
        check("4.2e1", Some(42_i64));
        check("[-7.0, 8, 9e0]", Some(vec![-7_i32, 8, 9]));
        check("-0.0", Some(0_i32));
        check("9007199254740992.0", Some(1_u64 << 53));
        check("1e30", None::<u64>);
        check("1.5", None::<u64>);
        check("300.0", None::<u8>);
        check("42.0", Some(42.0_f64));
        check("[1.5, \"a\"]", None::<Vec<u8>>);
        // A value that decodes unchanged stays unchanged.
        check("{\"a\":1.0}", Some(serde_json::json!({"a": 1.0})));
        assert!(decode::<u8>("[1.0]").unwrap_err().to_string().contains("line 1"));
    }

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
