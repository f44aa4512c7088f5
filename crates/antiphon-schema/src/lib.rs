//! Validation against JSON Schemas from untrusted peers, with a bound on the work of each validation.
//!
//! Both the schema and the validated data may come from a peer. Before a schema is compiled, it is parsed into a graph
//! (`document`), its references are resolved and replaced by local pointers (`reference`), and an upper bound on the
//! validation work is computed (`cost`). The schema that the validator compiles has one base URI, no anchors, and no
//! references to other documents.
//!
//! > Composition keywords [...] can be expensive to validate. Implementations **SHOULD** apply reasonable bounds
//!
//! Dialects: 2020-12 (the default), 2019-09, draft-07, draft-06, draft-04.

mod cost;
mod dialect;
mod document;
mod fault;
mod keywords;
mod reference;
mod work;

pub use fault::SchemaFault;

use cost::Costs;
use document::Document;
use serde_json::Value;
use work::Verdict;

/// The maximum JSON nesting of a schema. Compilation recurses along the nesting.
const MAX_SCHEMA_DEPTH: usize = 96;
/// The approximate maximum size of a schema's text, in bytes.
const MAX_SCHEMA_SIZE: usize = 512 * 1024;
/// The maximum number of subschemas.
const MAX_SUBSCHEMAS: usize = 8_192;
/// The maximum number of distinct regular expressions. Each may use up to the last of [`PATTERN_SIZES`].
const MAX_PATTERNS: usize = 128;
/// The size limits for one compiled regular expression, in bytes. The smallest sufficient one is used. The engine's time is
/// linear in the text and at worst linear in this size.
const PATTERN_SIZES: [usize; 4] = [4 << 10, 32 << 10, 256 << 10, 1 << 20];
/// The size of a compiled regular expression that costs one step per byte of text: a state has about 32 bytes, and one step
/// takes about as long as 32 states.
const PATTERN_BYTES_PER_STEP: usize = 1 << 10;
/// The maximum JSON nesting of a value.
const MAX_INSTANCE_DEPTH: usize = 128;
/// The maximum number of nested schemas in one validation, from the root. Both validation and the drop of a compiled schema
/// are recursive.
const MAX_CHAIN: u32 = 400;
/// The maximum number of nested schemas in compilation. Each takes about 5 KiB of stack in an unoptimized build.
const MAX_COMPILED: u32 = 220;
/// The number of nested reference targets that the validator compiles recursively; it defers deeper ones.
const NESTED_COMPILATIONS: u32 = 9;
/// The maximum work of one validation, in weighted visits of one schema at one value. A visit takes tens of nanoseconds.
const MAX_WORK: u64 = 8_000_000;
/// The maximum work of a validation that lists its faults, in visits. The validator collects all faults, about a hundred
/// bytes each, and repeats work that a plain verdict does once.
const MAX_WORK_WITH_FAULTS: u64 = 400_000;

/// A compiled schema.
#[derive(Debug)]
pub struct CompiledSchema {
    validator: jsonschema::Validator,
    costs: Costs,
}

impl CompiledSchema {
    /// Parses, checks and compiles a schema. References to other documents are not fetched.
    ///
    /// # Errors
    ///
    /// The schema is invalid, has an unsupported dialect, refers to another document, or could cost too much. The fault has a
    /// message for the schema's author.
    pub fn compile(schema: &Value) -> Result<Self, SchemaFault> {
        // > Schemas **MUST** be valid according to their declared or default dialect
        let dialect = dialect::of(schema)?;
        document::check_size(schema)?;
        let mut document = Document::read(schema, dialect)?;
        let references = reference::resolve(&mut document)?;
        let mut costs = Costs::of(&document, &references)?;
        let local = reference::rewrite(&document, &references)?;
        let (validator, pattern_size) = build(&local, dialect, document.has_patterns())?;
        costs.steps_per_byte = (pattern_size / PATTERN_BYTES_PER_STEP) as u64;
        Ok(Self { validator, costs })
    }

    /// Validates a value. Returns `None` if the value is valid, otherwise up to five faults as one sentence. A value that is
    /// too costly to validate is invalid.
    pub fn faults(&self, value: &Value) -> Option<String> {
        let lists_faults = match self.costs.weigh(value) {
            Verdict::TooDeep => {
                return Some(format!("the value nests deeper than {MAX_INSTANCE_DEPTH} levels"));
            }
            Verdict::TooCostly => {
                return Some("the value is too costly to check against the schema".to_owned());
            }
            Verdict::WithoutFaults => false,
            Verdict::WithFaults => true,
        };
        if self.validator.is_valid(value) {
            return None;
        }
        if !lists_faults {
            return Some(
                "the value does not match the schema; it is too large to list the faults".to_owned(),
            );
        }
        let describe = |fault: jsonschema::ValidationError<'_>| match fault.instance_path().as_str() {
            "" => fault.to_string(),
            path => format!("{}: {fault}", path.trim_start_matches('/')),
        };
        let faults: Vec<String> = self.validator.iter_errors(value).take(5).map(describe).collect();
        Some(faults.join("; "))
    }
}

/// Builds the validator. Returns it with the size limit of its regular expressions.
fn build(
    local: &Value,
    dialect: jsonschema::Draft,
    patterns: bool,
) -> Result<(jsonschema::Validator, usize), SchemaFault> {
    let with_size = |size| {
        // The engine without backtracking, which supports neither look-around nor back references.
        let patterns = jsonschema::PatternOptions::regex().size_limit(size).dfa_size_limit(size);
        jsonschema::options()
            .with_draft(dialect)
            // > Implementations **MUST NOT** automatically dereference `$ref` values that resolve to a network URI.
            .offline()
            .with_pattern_options(patterns)
            .build(local)
            .map(|validator| (validator, size))
            .map_err(|fault| SchemaFault::Invalid(fault::short(&fault.to_string())))
    };
    let [first, larger @ ..] = PATTERN_SIZES;
    let mut built = with_size(first);
    for size in larger.into_iter().filter(|_| patterns) {
        if built.is_err() {
            built = with_size(size);
        }
    }
    built
}

#[cfg(test)]
mod generated;
#[cfg(test)]
mod tests;
