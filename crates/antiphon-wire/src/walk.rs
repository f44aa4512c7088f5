//! A walk over JSON text: from one byte to the next, without a value for each part.
//!
//! A walk makes no errors. What is wrong or unusual ends it, and is left to serde.

mod grammar;

pub(crate) use grammar::{Walk, plain};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, Visitor, value::BorrowedStrDeserializer},
    forward_to_deserialize_any,
};
use serde_json::value::RawValue;

/// Returns the members of an object by their names, each value as its text. `None` for anything unusual, such as a name with an
/// escape or a name that the object has twice.
pub(crate) fn walked_members(text: &str) -> Option<Vec<(String, Box<RawValue>)>> {
    let (mut walk, mut members) = (Walk::new(text), Vec::new());
    walk.object(|walk, name| {
        let start = walk.begin()?;
        walk.skip()?;
        members.push((name.to_owned(), walked(walk.since(start)?)?.to_owned()));
        Some(())
    })?;
    walk.end()?;
    Some(members)
}

// Text that was walked, as the `RawValue` of serde_json.
//
// `RawValue` is made by `Deserialize` only, and serde_json would walk the text again for that. A deserializer gives the
// text to `RawValue` in a map of one entry, under a name that `RawValue` itself asks for. The deserializer here does so
// with text that was walked before. If a later `RawValue` expects something else, there is no value, and the message is
// read without this reader; a test of the reader fails then.

type Fault = serde::de::value::Error;

/// Makes a raw value of the text of one JSON value without white space around it.
pub(crate) fn walked(text: &str) -> Option<&RawValue> {
    <&RawValue>::deserialize(Walked(text)).ok()
}

struct Walked<'de>(&'de str);

impl<'de> Deserializer<'de> for Walked<'de> {
    type Error = Fault;

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_map(Entry { name: Some(name), text: self.0 })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Fault> {
        Err(Fault::custom("only for raw values"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A map of one entry.
struct Entry<'de> {
    name: Option<&'static str>,
    text: &'de str,
}

impl<'de> MapAccess<'de> for Entry<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.name.take().map(|name| seed.deserialize(BorrowedStrDeserializer::new(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        seed.deserialize(BorrowedStrDeserializer::new(self.text))
    }
}
