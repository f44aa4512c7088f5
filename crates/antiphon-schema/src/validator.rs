//! The validator of other authors, with the options that bound it.

use super::{
    fault::{SchemaFault, short},
    limits::PATTERN_SIZES,
};
use serde_json::Value;

/// Builds the validator. Returns it with the size limit of its regular expressions.
pub(super) fn build(
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
            .map_err(|fault| SchemaFault::Invalid(short(&fault.to_string())))
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
