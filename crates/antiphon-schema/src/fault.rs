//! Why a schema cannot be used.

use super::{MAX_CHAIN, MAX_PATTERNS, MAX_SCHEMA_DEPTH, MAX_SCHEMA_SIZE, MAX_SUBSCHEMAS, MAX_WORK, dialect};
use std::fmt;

/// Why a schema cannot be used: a mistake of its author, or more than is checked here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaFault {
    /// The `$schema` names a dialect that is not supported.
    Dialect(String),
    /// Not valid for its dialect, or the validator refuses it.
    Invalid(String),
    /// A reference leads out of the document.
    External(String),
    /// A reference leads to nothing in the document, or to what is no schema.
    Unresolved(String),
    /// A name or an identifier is not usable.
    Identifier(String),
    /// Which schema a dynamic reference means depends on the way that led to it.
    Ambiguous(String),
    /// Deeper than the bound.
    Deep,
    /// Longer than the bound.
    Large,
    /// More subschemas than the bound.
    Many,
    /// More regular expressions than the bound.
    Patterns,
    /// A schema applies itself to the same value again.
    Endless(String),
    /// Checking one value could take more work than the bound.
    Costly,
    /// Schemas apply one another in a chain longer than the bound.
    Chain,
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
                write!(out, "the schema has more than {MAX_PATTERNS} different regular expressions")
            }
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

/// Text of a schema for a message: escaped, quoted, and not too long.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", short(text))
}

/// Escaped, and not too long.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 300;
    let mut characters = text.chars().flat_map(|character| {
        match character {
            // Quotes stay as they are; control characters and the like would upset a log.
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
