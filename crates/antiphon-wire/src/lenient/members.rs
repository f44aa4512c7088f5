//! Members of another type than the specification's.

use serde::{Deserialize, Deserializer, de, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::{fmt, marker::PhantomData};

/// Reads a member that may be `null`, which counts as absent.
pub(crate) fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads a list. `null`, and an object without members, are a list without entries.
pub(crate) fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct ListVisitor<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> de::Visitor<'de> for ListVisitor<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a sequence")
        }
        fn visit_seq<A: de::SeqAccess<'de>>(self, entries: A) -> Result<Vec<T>, A::Error> {
            Vec::deserialize(de::value::SeqAccessDeserializer::new(entries))
        }
        fn visit_map<A: de::MapAccess<'de>>(self, mut members: A) -> Result<Vec<T>, A::Error> {
            match members.next_entry::<de::IgnoredAny, de::IgnoredAny>()? {
                None => Ok(Vec::new()),
                Some(_) => Err(de::Error::invalid_type(de::Unexpected::Map, &self)),
            }
        }
        fn visit_unit<E>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }
    }
    deserializer.deserialize_any(ListVisitor(PhantomData))
}

/// Reads the cursor of the next page. A number is its text.
pub(crate) fn cursor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(cursor) => Ok(Some(cursor)),
        Value::Number(number) => Ok(Some(number.to_string())),
        _ => Err(de::Error::custom("expected a cursor that is a string")),
    }
}

/// Returns the value, or an object without members in the place of an array without entries.
fn with_object(value: Value) -> Value {
    match value {
        Value::Array(entries) if entries.is_empty() => Value::Object(Map::new()),
        other => other,
    }
}

/// Reads an optional object. An array without entries is one without members.
pub(crate) fn optional_object_or_empty<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    struct ObjectVisitor<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de> + Default> de::Visitor<'de> for ObjectVisitor<T> {
        type Value = Option<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
            T::deserialize(de::value::MapAccessDeserializer::new(map)).map(Some)
        }
        fn visit_seq<A: de::SeqAccess<'de>>(self, mut entries: A) -> Result<Option<T>, A::Error> {
            match entries.next_element::<de::IgnoredAny>()? {
                None => Ok(Some(T::default())),
                Some(_) => Err(de::Error::invalid_type(de::Unexpected::Seq, &self)),
            }
        }
        fn visit_unit<E>(self) -> Result<Option<T>, E> {
            Ok(None)
        }
    }
    deserializer.deserialize_any(ObjectVisitor(PhantomData))
}

/// Reads an object. An empty array is one without members.
pub(crate) fn members_or_empty<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Map<String, Value>, D::Error> {
    match with_object(Value::deserialize(deserializer)?) {
        Value::Object(members) => Ok(members),
        _ => Err(de::Error::custom("expected an object")),
    }
}

/// Reads capabilities. A capability or an extension that is an empty array is an object without members.
pub(crate) fn capabilities<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Map<String, Value>, D::Error> {
    let mut members = members_or_empty(deserializer)?;
    for capability in members.values_mut() {
        *capability = with_object(capability.take());
    }
    if let Some(Value::Object(extensions)) = members.get_mut("extensions") {
        for extension in extensions.values_mut() {
            *extension = with_object(extension.take());
        }
    }
    Ok(members)
}

/// Reads annotations. Those that do not decode are left out: they are hints.
pub(crate) fn annotations<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Value::deserialize(deserializer).map(|value| T::deserialize(with_object(value)).ok())
}

/// Reads icons. Those that do not decode are left out: they are for display only.
pub(crate) fn icons<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Array(icons) => icons.into_iter().filter_map(|icon| T::deserialize(icon).ok()).collect(),
        _ => Vec::new(),
    })
}

/// Reads the sizes of an icon: an array of words, or the words in one text.
pub(crate) fn sizes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(Some(text.split_whitespace().map(str::to_owned).collect())),
        other => Option::deserialize(other).map_err(de::Error::custom),
    }
}

/// Reads an optional boolean. The numbers 1 and 0, and the words in a text, are booleans.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(flag)),
        Value::Number(number) if number.as_f64() == Some(1.0) => Ok(Some(true)),
        Value::Number(number) if number.as_f64() == Some(0.0) => Ok(Some(false)),
        Value::String(text) if text.eq_ignore_ascii_case("true") || text == "1" => Ok(Some(true)),
        Value::String(text) if text.eq_ignore_ascii_case("false") || text == "0" => Ok(Some(false)),
        other => Err(de::Error::custom(format_args!("expected `true` or `false`, not {}", kind_of(&other)))),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "another number",
        Value::String(_) => "another text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
