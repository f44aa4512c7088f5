//! Parts of the envelope: request ids, and error objects with their codes.

use crate::{foreign_text::escaped, members::present};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};
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
    pub(crate) fn into_value(self) -> Value {
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

/// The maximum number of characters of a message that `Display` prints.
const MESSAGE_LIMIT: usize = 1000;

/// The code of an error. Unknown codes are kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(pub i64);

impl ErrorCode {
    /// The message is not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The message is JSON, but not a request.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method does not exist on this server.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The params do not fit the method.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// The server failed.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// The HTTP headers do not match the body.
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The request needs a capability that the client did not declare.
    pub const MISSING_REQUIRED_CLIENT_CAPABILITY: Self = Self(-32021);
    /// The server does not support the requested protocol version.
    pub const UNSUPPORTED_PROTOCOL_VERSION: Self = Self(-32022);

    /// The resource does not exist. Used in legacy versions.
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// The URLs must be opened before the request is sent again. Used in 2025-11-25.
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The `error` member of an error response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorObject {
    /// The code: the kind of the error.
    pub code: ErrorCode,
    /// One sentence for a person.
    pub message: String,
    /// The details for a program.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ErrorObject {
    /// Returns an error without `data`.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Returns the same error with `data`.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Returns an invalid params error (`-32602`).
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// Returns an invalid request error (`-32600`).
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, message)
    }

    /// Returns a method not found error (`-32601`) with the method in `data`.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(ErrorCode::METHOD_NOT_FOUND, "Method not found").with_data(json!({ "method": method }))
    }

    /// Returns an internal error (`-32603`) without details: the details belong in the server's log.
    pub fn internal() -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, "Internal error")
    }

    /// Returns an unsupported version error (`-32022`) with the supported versions and the requested version
    /// in `data`.
    pub fn unsupported_version<'a>(supported: impl IntoIterator<Item = &'a str>, requested: &str) -> Self {
        let supported: Vec<&str> = supported.into_iter().collect();
        let message = format!(
            "Unsupported protocol version {:?}: this server speaks {}",
            escaped(requested),
            supported.join(", ")
        );
        Self::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, message)
            .with_data(json!({ "supported": supported, "requested": requested }))
    }

    /// Returns a missing capability error (`-32021`). `required` is a `ClientCapabilities` object with the
    /// missing capabilities.
    pub fn missing_capability(message: impl Into<String>, required: Value) -> Self {
        Self::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, message)
            .with_data(json!({ "requiredCapabilities": required }))
    }

    /// Returns `data.reason`, if the error has one.
    pub fn reason(&self) -> Option<&str> {
        self.data.as_ref()?.get("reason")?.as_str()
    }
}

impl fmt::Display for ErrorObject {
    /// Writes the message, escaped and cut, and the code. [`message`](Self::message) is the text as it was sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", escaped(&self.message).limit(MESSAGE_LIMIT), self.code)
    }
}

impl std::error::Error for ErrorObject {}
