//! One parameter that is mirrored into a header, and the comparison of the header with the body.

use crate::{foreign_text::escaped, header::decode};
use serde_json::{Number, Value};
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
                if equal(&said, &text) { Ok(()) } else { Err(differ(Disagreement::Different)) }
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
            Value::Number(number) => match decimal(number) {
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

// Numbers in headers: decimal text, compared by value and without rounding.

/// The maximum safe integer, 2^53 - 1: every integer up to it has a double of its own.
const SAFE: u64 = (1 << 53) - 1;

/// Returns the number in decimal digits; `None` for an integer outside of the safe range.
fn decimal(number: &Number) -> Option<String> {
    if let Some(whole) = number.as_i64() {
        return (whole.unsigned_abs() <= SAFE).then(|| whole.to_string());
    }
    let float = number.as_f64()?;
    if float.fract() != 0.0 {
        // Not an integer at all, so the range does not speak of it.
        return Some(number.to_string());
    }
    // The cast is exact: the float is whole, and below 2^53. It turns -0 into 0.
    (float.abs() <= SAFE as f64).then(|| (float as i64).to_string())
}

/// Returns true if both texts are JSON numbers of the same value: `42.0` and `42`, `1e2` and `100`, `-0` and
/// `0`.
pub(super) fn equal(one: &str, other: &str) -> bool {
    match (Decimal::read(one), Decimal::read(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// A decimal number, `digits * 10^exponent`. The digits are a whole number without zeros at either end. Zero
/// has no digits.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    fn read(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, power) = match text.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, Some(power)),
            None => (text, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let power_digits = power.map(|power| power.strip_prefix(['+', '-']).unwrap_or(power));
        let parts = [Some(whole), fraction, power_digits];
        if !parts.into_iter().flatten().all(is_digits) || (whole.len() > 1 && whole.starts_with('0')) {
            return None;
        }
        let fraction = fraction.unwrap_or_default();
        let mut digits: Vec<u8> =
            whole.bytes().chain(fraction.bytes()).skip_while(|&digit| digit == b'0').collect();
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        // A power that no i64 holds is no number that anything here equals.
        let power: i64 = power.map_or(Ok(0), str::parse).ok()?;
        let mut exponent = power.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent = exponent.checked_add(1)?;
        }
        Some(Self { negative, digits, exponent })
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The schema keyword that names the header of a property.
pub(super) const KEYWORD: &str = "x-mcp-header";

/// The reason why the `x-mcp-header` annotations of a schema cannot be used: a mistake of the tool's author.
/// Contains the place in the schema, and never quotes the content at that place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeaderFault {
    /// A JSON pointer, escaped and cut to a length fit for a log.
    place: String,
    what: Misuse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misuse {
    NotText,
    Empty,
    NotToken,
    Taken,
    NotPrimitive,
    OffChain,
}

impl ParamHeaderFault {
    pub(super) fn at(place: String, what: Misuse) -> Self {
        Self { place, what }
    }
}

impl fmt::Display for ParamHeaderFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.what {
            Misuse::NotText => "must be a string",
            Misuse::Empty => "must not be empty",
            Misuse::NotToken => "must be an HTTP token: letters, digits and !#$%&'*+-.^_`|~ only",
            Misuse::Taken => "is used twice in the schema; upper and lower case are the same",
            Misuse::NotPrimitive => "needs a property whose `type` is \"integer\", \"string\" or \"boolean\"",
            Misuse::OffChain => {
                "is only for properties that are reached from the root of the schema by `properties` alone"
            }
        };
        write!(out, "the `{KEYWORD}` at `{}` {why}", self.place)
    }
}

impl std::error::Error for ParamHeaderFault {}
