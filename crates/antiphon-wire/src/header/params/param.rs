//! One parameter that is mirrored into a header, and the comparison of the header with the body.

use super::number;
use crate::{foreign_text::escaped, header::decode};
use serde_json::Value;
use std::{borrow::Cow, fmt};

/// One parameter, and the header that mirrors it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParamHeader {
    /// The part of the header name after `Mcp-Param-`, in the schema's spelling: an HTTP token. Header names
    /// are not case-sensitive.
    pub name: String,
    /// The names of the properties that lead from the arguments to the value; never empty.
    pub path: Vec<String>,
    /// The declared type.
    pub kind: ParamKind,
}

/// The types of parameters that can be mirrored.
///
/// > **MUST** only be applied to parameters with primitive types (integer, string, boolean). Parameters with
/// > type `number` are not permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// `"type": "integer"`.
    Integer,
    /// `"type": "string"`.
    String,
    /// `"type": "boolean"`.
    Boolean,
}

/// The reason why a header and the body do not agree: a mistake of the caller, or of an intermediary between
/// caller and server. Never quotes a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamMismatch {
    header: String,
    what: Disagreement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disagreement {
    Missing,
    Unexpected,
    Different,
    Characters,
    Encoding,
    Unsafe,
}

/// The content of a header for the arguments.
pub(super) enum Mirrored<'a> {
    Absent,
    /// An object or an array, which has no text.
    Compound,
    /// An integer outside of the safe range.
    Unsafe,
    Text(Cow<'a, str>),
    /// A number in decimal digits, compared by value.
    Number(Cow<'a, str>),
}

impl ParamHeader {
    /// Returns the full name of the header, for example `Mcp-Param-Region`.
    pub fn header_name(&self) -> String {
        format!("Mcp-Param-{}", self.name)
    }

    /// Checks that this header of a request agrees with the arguments of the request's body. `None` means
    /// that the request has no such header.
    ///
    /// > Any server that processes the message body **MUST** validate that encoded header values, after
    /// > decoding if Base64-encoded, match the corresponding values in the request body.
    ///
    /// A value of another type than the declared one is compared by its own type. An object or array has no
    /// text, so only an absent header agrees with it. The tool's schema later rejects both, with a better
    /// message.
    ///
    /// # Errors
    ///
    /// An error if the header is missing, is present without a value in the body, has another value, or
    /// cannot be read. Also an error if the value is an integer beyond ±(2^53 - 1), with or without a header:
    ///
    /// > Integer values **MUST** be within the safe range for JavaScript (−2<sup>53</sup>+1 to
    /// > 2<sup>53</sup>−1)
    ///
    /// A router that reads the header may take two such integers for the same integer, while the tool
    /// separates them. Such integers are therefore not compared.
    pub fn check(&self, arguments: &Value, header: Option<&str>) -> Result<(), ParamMismatch> {
        let differ = |what| ParamMismatch { header: self.header_name(), what };
        // White space around a value is no part of it (RFC 9110, section 5.5); a value with its own is
        // base64.
        let header = header.map(|header| header.trim_matches([' ', '\t']));
        match (self.text(arguments), header) {
            (Mirrored::Unsafe, _) => Err(differ(Disagreement::Unsafe)),
            // > Parameter value is `null` [or] not in arguments: Server MUST NOT expect the header
            (Mirrored::Absent | Mirrored::Compound, None) => Ok(()),
            (Mirrored::Absent | Mirrored::Compound, Some(_)) => Err(differ(Disagreement::Unexpected)),
            // > Client omits header but value is in body: Server MUST reject the request
            (Mirrored::Text(_) | Mirrored::Number(_), None) => Err(differ(Disagreement::Missing)),
            (Mirrored::Text(text), Some(header)) => {
                let said = read_value(header).map_err(differ)?;
                if said == text { Ok(()) } else { Err(differ(Disagreement::Different)) }
            }
            // > servers **SHOULD** compare the header value and the body value numerically
            (Mirrored::Number(text), Some(header)) => {
                let said = read_value(header).map_err(differ)?;
                if number::equal(&said, &text) { Ok(()) } else { Err(differ(Disagreement::Different)) }
            }
        }
    }

    /// Returns the text of the parameter's value in the arguments.
    ///
    /// > Header extraction is defined as reading the instance value at the exact property path of the
    /// > annotated property [...]. If no value is present at that path in the call arguments, the header is
    /// > omitted.
    pub(super) fn text<'a>(&self, arguments: &'a Value) -> Mirrored<'a> {
        let mut value = arguments;
        for name in &self.path {
            match value.as_object().and_then(|object| object.get(name)) {
                Some(inner) => value = inner,
                None => return Mirrored::Absent,
            }
        }
        match value {
            // > Parameter value is `null`: Client MUST omit the header
            Value::Null => Mirrored::Absent,
            Value::Array(_) | Value::Object(_) => Mirrored::Compound,
            // > `string`: Use the value as-is
            Value::String(text) => Mirrored::Text(Cow::Borrowed(text)),
            // > `boolean`: Convert to lowercase `"true"` or `"false"`
            Value::Bool(true) => Mirrored::Text(Cow::Borrowed("true")),
            Value::Bool(false) => Mirrored::Text(Cow::Borrowed("false")),
            // > `integer`: Convert to decimal string representation (e.g., `42`, `-7`)
            Value::Number(number) => match number::decimal(number) {
                Some(text) => Mirrored::Number(Cow::Owned(text)),
                None => Mirrored::Unsafe,
            },
        }
    }
}

/// Returns the decoded value of a header.
///
/// > Servers **MUST** reject requests with a recognized `Mcp-Param-{Name}` header that contains invalid
/// > characters
fn read_value(header: &str) -> Result<Cow<'_, str>, Disagreement> {
    // > visible ASCII characters (0x21-0x7E), space (0x20), and horizontal tab (0x09)
    if !header.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) {
        return Err(Disagreement::Characters);
    }
    decode(header).ok_or(Disagreement::Encoding)
}

impl ParamMismatch {
    /// Returns the full name of the header.
    pub fn header_name(&self) -> &str {
        &self.header
    }
}

impl fmt::Display for ParamMismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.what {
            Disagreement::Missing => "is missing, but the argument that it mirrors is in the body",
            Disagreement::Unexpected => "has no value in the body that it could mirror",
            Disagreement::Different => "does not match the argument in the body",
            Disagreement::Characters => "contains characters other than visible ASCII, space and tab",
            Disagreement::Encoding => "is marked as base64, but is not the base64 of a text",
            Disagreement::Unsafe => {
                "mirrors an integer of the body that is beyond 2^53 - 1 in size; such an integer cannot be mirrored"
            }
        };
        write!(out, "Header mismatch: {} {why}", escaped(&self.header))
    }
}

impl std::error::Error for ParamMismatch {}
