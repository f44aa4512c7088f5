//! The mistakes of a tool's author in the annotations of a schema.

use std::fmt;

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
