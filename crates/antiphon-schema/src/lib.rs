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
mod document;
mod fault;
mod keywords;
mod patterns;
mod reference;
mod work;

pub use fault::{SchemaFault, UnsupportedPattern};

use cost::Costs;
use document::Document;
use fault::{MAX_INSTANCE_DEPTH, PATTERN_BYTES_PER_STEP};
use patterns::build;
use serde_json::Value;
use work::Verdict;

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
        Self::compile_or_ignore(schema, false).map(|(compiled, _)| compiled)
    }

    /// Compiles a schema as [`compile`](Self::compile) does, but ignores regular expressions that are not supported, such as
    /// those with look-around, and returns them. The compiled schema accepts all values that the schema accepts.
    ///
    /// # Errors
    ///
    /// The same as those of `compile`; also a regular expression that cannot be ignored, because `not`, `if`, `oneOf` or
    /// `maxContains` depends on it.
    pub fn compile_lenient(schema: &Value) -> Result<(Self, Vec<UnsupportedPattern>), SchemaFault> {
        Self::compile_or_ignore(schema, true)
    }

    fn compile_or_ignore(
        schema: &Value,
        is_lenient: bool,
    ) -> Result<(Self, Vec<UnsupportedPattern>), SchemaFault> {
        // > Schemas **MUST** be valid according to their declared or default dialect
        let dialect = keywords::of(schema).map_err(SchemaFault::unsupported_dialect)?;
        document::check_size(schema)?;
        let mut document = Document::read(schema, dialect)?;
        let references = reference::resolve(&mut document)?;
        let mut costs = Costs::of(&document, &references)?;
        let mut local = reference::rewrite(&document, &references)?;
        let mut ignored = Vec::new();
        let (validator, pattern_size) = match build(&local, dialect, document.has_patterns()) {
            Ok(built) => built,
            Err(fault) => {
                let unsupported = patterns::unsupported(&document);
                let Some(first) = unsupported.first() else { return Err(fault) };
                if !is_lenient {
                    return Err(SchemaFault::Pattern(first.describe(&document)));
                }
                patterns::ignore(&document, &references, &unsupported, &mut local)?;
                ignored.extend(unsupported.iter().map(|one| one.describe(&document)));
                build(&local, dialect, document.has_patterns())?
            }
        };
        costs.steps_per_byte = (pattern_size / PATTERN_BYTES_PER_STEP) as u64;
        Ok((Self { validator, costs }, ignored))
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

#[cfg(test)]
mod generated;
#[cfg(test)]
mod tests;
