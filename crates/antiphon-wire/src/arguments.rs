//! Typed arguments of tools: decoding from their text, and the [rules](Rules) of their schema that decoding does not enforce.

mod params;
mod rules;

pub use params::decode_params;
pub use rules::{Rules, Uncovered};

use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::{Deserializer, Number, Value};
use std::marker::PhantomData;

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

#[cfg(test)]
mod tests {
    use super::*;
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
}
