//! Request ids.

use crate::foreign_text::escaped;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// The id of a request: a string or an integer, chosen by the side that sends the request.
///
/// > Requests **MUST** include a string or integer ID. Unlike base JSON-RPC, the ID **MUST NOT** be `null`.
///
/// Integers between `i64::MIN` and `u64::MAX` are kept exactly; anything else is not an id.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Signed(i64),
    /// A number above `i64::MAX`. No other number is stored here, so that equal numbers are equal ids.
    Unsigned(u64),
    Text(Box<str>),
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self(Repr::Signed(number))
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self(i64::try_from(number).map_or(Repr::Unsigned(number), Repr::Signed))
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self(Repr::Text(text.into()))
    }
}

impl RequestId {
    /// Returns the number, if the id is an integer from 0.
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Signed(number) => number.try_into().ok(),
            Repr::Unsigned(number) => Some(number),
            Repr::Text(_) => None,
        }
    }

    /// Returns the number that this text writes, if the id is such a text: `"1"` is 1. A peer may repeat a number as text.
    pub fn text_as_number(&self) -> Option<Self> {
        let Repr::Text(text) = &self.0 else { return None };
        text.parse::<u64>().ok().filter(|number| number.to_string() == **text).map(Self::from)
    }

    /// Returns the id as a JSON value. Progress tokens are the same strings and integers.
    pub(crate) fn into_value(self) -> serde_json::Value {
        match self.0 {
            Repr::Signed(number) => number.into(),
            Repr::Unsigned(number) => number.into(),
            Repr::Text(text) => String::from(text).into(),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Signed(number) => write!(f, "{number}"),
            Repr::Unsigned(number) => write!(f, "{number}"),
            Repr::Text(text) => write!(f, "{:?}", escaped(text)),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Repr::Signed(number) => serializer.serialize_i64(*number),
            Repr::Unsigned(number) => serializer.serialize_u64(*number),
            Repr::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl de::Visitor<'_> for IdVisitor {
            type Value = RequestId;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an integer")
            }
            fn visit_i64<E>(self, number: i64) -> Result<RequestId, E> {
                Ok(number.into())
            }
            fn visit_u64<E>(self, number: u64) -> Result<RequestId, E> {
                Ok(number.into())
            }
            fn visit_str<E>(self, text: &str) -> Result<RequestId, E> {
                Ok(text.into())
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}
