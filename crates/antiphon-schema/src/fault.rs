//! Errors of schemas.

use super::{
    dialect,
    limits::{
        MAX_CHAIN, MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_SCHEMA_DEPTH, MAX_SCHEMA_SIZE, MAX_SUBSCHEMAS,
        MAX_WORK,
    },
};
use serde_json::Value;
use std::fmt;

/// An error that makes a schema unusable: a mistake of its author, or a limit of this crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaFault {
    /// The `$schema` names a dialect that is not supported.
    Dialect(String),
    /// The schema is invalid for its dialect, or the validator rejects it.
    Invalid(String),
    /// A reference points to another document.
    External(String),
    /// A reference points to a place in the document where there is no schema.
    Unresolved(String),
    /// An identifier is malformed or used twice.
    Identifier(String),
    /// A dynamic reference has several targets, depending on the path of evaluation.
    Ambiguous(String),
    /// The schema is nested too deeply.
    Deep,
    /// The schema is too large.
    Large,
    /// The schema has too many subschemas.
    Many,
    /// The schema has too many distinct regular expressions, or too long ones.
    Patterns,
    /// A regular expression cannot be compiled by the engine.
    Pattern(UnsupportedPattern),
    /// A schema applies itself to the same value without end.
    Endless(String),
    /// The validation of one value could take more work than the limit.
    Costly,
    /// The chain of schemas that apply one another is longer than the limit.
    Chain,
}

/// A regular expression of a schema that the engine does not support, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnsupportedPattern {
    /// The keyword: `pattern` or `patternProperties`.
    pub keyword: &'static str,
    /// The regular expression, quoted, escaped and shortened.
    pub pattern: String,
    /// The schema that has the keyword, as a JSON pointer.
    pub place: String,
}

impl fmt::Display for UnsupportedPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keyword, pattern, place } = self;
        write!(out, "the keyword `{keyword}` at `{place}` ({pattern})")
    }
}

impl SchemaFault {
    /// Returns the fault of a `$schema` that no supported dialect has.
    pub(super) fn unsupported_dialect(named: &Value) -> Self {
        Self::Dialect(named.as_str().map_or_else(|| "(not a string)".to_owned(), quoted))
    }
}

impl fmt::Display for SchemaFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // > They **MUST** handle unsupported dialects gracefully by returning an appropriate error indicating the
            // > dialect is not supported.
            Self::Dialect(named) => write!(
                out,
                "the schema's dialect {named} is not supported; supported are {}",
                dialect::SUPPORTED.map(|(uri, _)| uri).join(", ")
            ),
            Self::Invalid(fault) => write!(out, "the schema is not valid: {fault}"),
            // > Schemas that fail to validate due to an unresolved external `$ref` **SHOULD** be rejected
            Self::External(reference) => write!(
                out,
                "the schema refers to {reference}, outside of itself; nothing is fetched, so put it under `$defs`"
            ),
            Self::Unresolved(reference) => {
                write!(out, "the schema refers to {reference}, where no schema is")
            }
            Self::Identifier(text) => {
                write!(out, "the schema's identifier {text} is malformed or used twice")
            }
            Self::Ambiguous(reference) => {
                write!(
                    out,
                    "the schema's dynamic reference {reference} has more than one target, which is not supported"
                )
            }
            Self::Deep => write!(out, "the schema nests deeper than {MAX_SCHEMA_DEPTH} levels"),
            Self::Large => write!(out, "the schema is larger than {MAX_SCHEMA_SIZE} bytes"),
            Self::Many => write!(out, "the schema has more than {MAX_SUBSCHEMAS} subschemas"),
            Self::Patterns => {
                write!(
                    out,
                    "the schema has more than {MAX_PATTERNS} different regular expressions, or more than \
                     {MAX_PATTERN_BYTES} bytes of them"
                )
            }
            Self::Pattern(pattern) => write!(
                out,
                "{pattern} cannot be used: the regular expression has a mistake, or look-around, back references or escapes such as \\Z, or \
                 takes more than 1 MiB when compiled"
            ),
            Self::Endless(pointer) => {
                write!(out, "the schema at `{pointer}` applies itself to the same value without end")
            }
            Self::Costly => {
                write!(out, "one value could take more than {MAX_WORK} steps to check against the schema")
            }
            Self::Chain => {
                write!(out, "schemas apply one another in a chain of more than {MAX_CHAIN} to one value")
            }
        }
    }
}

impl std::error::Error for SchemaFault {}

/// Quotes text of a schema for a message, escaped and shortened.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", short(text))
}

/// Escapes and shortens a text for a message.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 300;
    let mut characters = text.chars().flat_map(|character| {
        match character {
            // Quotes stay as they are. Control characters are escaped because they could corrupt a log.
            '"' | '\'' | '\\' => character.to_string(),
            other => other.escape_debug().to_string(),
        }
        .chars()
        .collect::<Vec<_>>()
    });
    let mut short: String = characters.by_ref().take(MOST).collect();
    if characters.next().is_some() {
        short.push_str("...");
    }
    short
}
