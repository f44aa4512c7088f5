//! The limits on schemas, on values and on the work of a validation, and the errors of schemas.

use super::keywords;
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
                keywords::SUPPORTED.map(|(uri, _)| uri).join(", ")
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

/// The maximum JSON nesting of a schema. Compilation recurses along the nesting.
pub(super) const MAX_SCHEMA_DEPTH: usize = 96;
/// The approximate maximum size of a schema's text, in bytes.
pub(super) const MAX_SCHEMA_SIZE: usize = 512 * 1024;
/// The maximum number of subschemas.
pub(super) const MAX_SUBSCHEMAS: usize = 8_192;
/// The maximum number of distinct regular expressions. Each may use up to the last of [`PATTERN_SIZES`].
pub(super) const MAX_PATTERNS: usize = 128;
/// The maximum length of all regular expressions of one schema, in bytes. Compilation takes up to a microsecond for each byte
/// and state, and the validator compiles an expression for each of [`PATTERN_SIZES`] until one suffices.
pub(super) const MAX_PATTERN_BYTES: usize = 16 * 1024;
/// The size limits for one compiled regular expression, in bytes. The smallest sufficient one is used. The engine's time is
/// linear in the text and at worst linear in this size.
pub(super) const PATTERN_SIZES: [usize; 4] = [4 << 10, 32 << 10, 256 << 10, 1 << 20];
/// The size of a compiled regular expression that costs one step per byte of text: a state has about 32 bytes, and one step
/// takes about as long as 32 states.
pub(super) const PATTERN_BYTES_PER_STEP: usize = 1 << 10;
/// The maximum JSON nesting of a value.
pub(super) const MAX_INSTANCE_DEPTH: usize = 128;
/// The maximum number of nested schemas in one validation, from the root. Both validation and the drop of a compiled schema
/// are recursive.
pub(super) const MAX_CHAIN: u32 = 400;
/// The maximum number of nested schemas in compilation. Each takes about 5 KiB of stack in an unoptimized build.
pub(super) const MAX_COMPILED: u32 = 220;
/// The number of nested reference targets that the validator compiles recursively; it defers deeper ones.
pub(super) const NESTED_COMPILATIONS: u32 = 9;
/// The maximum work of one validation, in weighted visits of one schema at one value. A visit takes tens of nanoseconds.
pub(super) const MAX_WORK: u64 = 8_000_000;
/// The maximum work of a validation that lists its faults, in visits. The validator collects all faults, about a hundred
/// bytes each, and repeats work that a plain verdict does once.
pub(super) const MAX_WORK_WITH_FAULTS: u64 = 400_000;
