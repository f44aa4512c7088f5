//! JSON Schema: what a foreign schema may say, and what it may cost.
//!
//! A schema may come from a peer, and so may the data it is held against. So before a schema is compiled it is read as a
//! graph ([`document`]), its references are resolved and written again as local pointers ([`reference`]), and a bound on
//! the work it can cause is computed ([`cost`]). What the validator sees has one base URI, no anchors, and nothing that
//! leads outside.
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

/// JSON nesting of a schema. Compiling recurses along it.
const MAX_SCHEMA_DEPTH: usize = 96;
/// Of a schema, in bytes of its text, roughly.
const MAX_SCHEMA_SIZE: usize = 512 * 1024;
/// Places at which a schema stands.
const MAX_SUBSCHEMAS: usize = 8_192;
/// Different regular expressions; each may take the last of [`PATTERN_SIZES`].
const MAX_PATTERNS: usize = 128;
/// Of one compiled regular expression, in bytes: as few of these as will do. The engine is linear in the text, and at worst
/// in this too.
const PATTERN_SIZES: [usize; 4] = [4 << 10, 32 << 10, 256 << 10, 1 << 20];
/// Of a compiled regular expression, what costs one step for each byte of text: a state takes some 32 bytes, and a step of
/// ours as long as some 32 of them.
const PATTERN_BYTES_PER_STEP: usize = 1 << 10;
/// JSON nesting of an instance.
const MAX_INSTANCE_DEPTH: usize = 128;
/// Schemas that are entered inside of one another, the whole way from the root of schema and instance. Validating recurses,
/// and so does dropping what was compiled.
const MAX_CHAIN: u32 = 400;
/// The same for compiling, which takes some 5 KiB of stack for each in a build that is not optimised.
const MAX_COMPILED: u32 = 220;
/// How many targets of references the validator compiles inside of one another; it leaves further ones for later.
const NESTED_COMPILATIONS: u32 = 9;
/// Visits of one schema at one value, weighed. A visit takes some tens of nanoseconds.
const MAX_WORK: u64 = 8_000_000;
/// Visits in one validation for its faults to be told: the validator collects all of them, some hundred bytes each, and
/// repeats work that a verdict does once.
const MAX_TOLD_WORK: u64 = 400_000;

/// A schema, ready to be held against values.
#[derive(Debug)]
pub struct CompiledSchema {
    validator: jsonschema::Validator,
    costs: Costs,
}

impl CompiledSchema {
    /// Reads, checks and compiles a schema. Nothing is fetched.
    ///
    /// # Errors
    ///
    /// The schema is not valid for its dialect, of a dialect that is not known, refers outside of itself, or could cost too
    /// much. The fault says which, for the schema's author.
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

    /// What the schema says against the value: up to five faults as one sentence, or `None` if it is valid. A value that
    /// would cost too much to check is not valid.
    pub fn faults(&self, value: &Value) -> Option<String> {
        let told = match self.costs.weigh(value) {
            Verdict::TooDeep => {
                return Some(format!("the value nests deeper than {MAX_INSTANCE_DEPTH} levels"));
            }
            Verdict::TooCostly => {
                return Some("the value is too costly to check against the schema".to_owned());
            }
            Verdict::Silent => false,
            Verdict::Told => true,
        };
        if self.validator.is_valid(value) {
            return None;
        }
        if !told {
            return Some("the value does not match the schema; it is too large to say where".to_owned());
        }
        let told = |fault: jsonschema::ValidationError<'_>| match fault.instance_path().as_str() {
            "" => fault.to_string(),
            path => format!("{}: {fault}", path.trim_start_matches('/')),
        };
        let faults: Vec<String> = self.validator.iter_errors(value).take(5).map(told).collect();
        Some(faults.join("; "))
    }
}

/// The validator, and how large its regular expressions may be.
fn build(
    local: &Value,
    dialect: jsonschema::Draft,
    patterns: bool,
) -> Result<(jsonschema::Validator, usize), SchemaFault> {
    let with_size = |size| {
        // The engine without backtracking; it knows neither look-around nor back references.
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
