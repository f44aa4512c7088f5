//! JSON objects: as a list of members in the order of the text, or as a type that is never read from an array.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Number, value::RawValue};
use std::{fmt, marker::PhantomData};

/// A JSON object as a list of members: in the order of the text, each value as its text, no name twice.
#[derive(Clone, Default)]
pub(crate) struct Members(pub(crate) Vec<(String, Box<RawValue>)>);

impl Members {
    pub(crate) fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> de::Visitor<'de> for MembersVisitor {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.0.push((name, value));
                }
                match name_used_twice(members.0.iter().map(|(name, _)| name.as_str())) {
                    Some(name) => Err(de::Error::custom(format_args!("the name `{name}` occurs twice"))),
                    None => Ok(members),
                }
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

/// Returns a name that occurs twice, if there is one. The function sorts, because a peer may send very many names.
pub(crate) fn name_used_twice<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// A `T` that is read from an object only. Without this type, serde also reads an array into a struct, by position.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// Returns `true` for an array without entries.
pub(crate) fn is_empty_array(value: &RawValue) -> bool {
    value.get().starts_with('[') && serde_json::from_str::<[(); 0]>(value.get()).is_ok()
}

/// Returns the value, or an object without members in the place of an array without entries.
pub(crate) fn object_or_empty(value: &RawValue) -> &RawValue {
    if is_empty_array(value) { serde_json::from_str("{}").unwrap_or(value) } else { value }
}

/// Deserializes a member that is an object.
pub(crate) fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    <Object<T>>::deserialize(deserializer).map(|Object(read)| read)
}

/// Deserializes an optional member that is an object.
pub(crate) fn optional_object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    <Option<Object<T>>>::deserialize(deserializer).map(|read| read.map(|Object(read)| read))
}

/// Deserializes a member that may be `null`, which is not the same as absent.
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Returns the whole number that `number` represents, written as `3` or as `3.0`.
pub(crate) fn whole(number: &Number) -> Option<u64> {
    // Up to 2^53 floats are exact.
    let whole_float = |float: f64| {
        (float.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&float)).then_some(float as u64)
    };
    number.as_u64().or_else(|| number.as_f64().and_then(whole_float))
}

/// Deserializes an optional member that is a whole number.
pub(crate) fn optional_whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else { return Ok(None) };
    whole(&number).map(Some).ok_or_else(|| de::Error::custom("expected a whole number from 0"))
}
