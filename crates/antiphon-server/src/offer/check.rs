//! The checks of a tool's arguments and results.

use crate::errors::build_error::BuildError;
#[cfg(feature = "schema")]
use antiphon_schema::CompiledSchema;
#[cfg(feature = "schema")]
use antiphon_wire::escaped;
use antiphon_wire::{CallToolResult, arguments::Rules};
use serde_json::Value;

/// The origin of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaOrigin {
    /// The type that is decoded, or serialized.
    Type,
    /// The author of the tool.
    Author,
}

/// The check of arguments before they are decoded.
pub(crate) enum InputCheck {
    /// The schema and the decoder come from the same type: only the rules are left to check.
    Rules(Box<Rules>),
    #[cfg(feature = "schema")]
    Schema(Box<CompiledSchema>),
}

impl InputCheck {
    /// # Errors
    /// If the schema is not valid, or needs the validator in a build without feature `schema`.
    pub(crate) fn new(tool: &str, schema: &Value, origin: SchemaOrigin) -> Result<Self, BuildError> {
        let need = match origin {
            SchemaOrigin::Type => match Rules::of(schema) {
                Ok(rules) => return Ok(Self::Rules(Box::new(rules))),
                Err(uncovered) => format!("`{}` in {}", uncovered.keyword, uncovered.place),
            },
            SchemaOrigin::Author => "an input schema that is written by hand".to_owned(),
        };
        Self::validated(tool, schema, &need)
    }

    #[cfg(feature = "schema")]
    fn validated(tool: &str, schema: &Value, _: &str) -> Result<Self, BuildError> {
        compiled(tool, "input", schema).map(|compiled| Self::Schema(Box::new(compiled)))
    }

    #[cfg(not(feature = "schema"))]
    fn validated(tool: &str, _: &Value, need: &str) -> Result<Self, BuildError> {
        Err(BuildError(format!(
            "the tool `{tool}` needs the JSON Schema validator for {need}: turn on the feature `schema` of antiphon"
        )))
    }

    /// Returns the faults of the arguments, in words.
    pub(crate) fn faults(&self, arguments: &str) -> Option<String> {
        match self {
            Self::Rules(rules) => rules.fault(arguments),
            #[cfg(feature = "schema")]
            Self::Schema(schema) => match serde_json::from_str(arguments) {
                Ok(value) => schema.faults(&value),
                Err(fault) => Some(fault.to_string()),
            },
        }
    }
}

/// The check of structured results.
pub(crate) struct OutputCheck {
    #[cfg(feature = "schema")]
    schema: CompiledSchema,
}

impl OutputCheck {
    /// # Errors
    /// If the schema is not valid, or is written by hand in a build without feature `schema`.
    pub(crate) fn new(tool: &str, schema: &Value, origin: SchemaOrigin) -> Result<Self, BuildError> {
        if !schema.is_object() {
            return Err(BuildError(format!("the output schema of the tool `{tool}` must be an object")));
        }
        #[cfg(feature = "schema")]
        {
            let _ = origin;
            compiled(tool, "output", schema).map(|schema| Self { schema })
        }
        #[cfg(not(feature = "schema"))]
        match origin {
            SchemaOrigin::Type => Ok(Self {}),
            SchemaOrigin::Author => Err(BuildError(format!(
                "the tool `{tool}` needs the JSON Schema validator for an output schema that is written by hand: turn on \
                 the feature `schema` of antiphon, or declare the type with `returns`"
            ))),
        }
    }

    /// Returns the faults of a result.
    ///
    /// > Servers **MUST** provide structured results that conform to this schema.
    ///
    /// A tool that failed has no such result.
    pub(crate) fn faults(&self, result: &CallToolResult) -> Option<String> {
        if result.failed() {
            return None;
        }
        match &result.structured_content {
            #[cfg(feature = "schema")]
            Some(content) => self.schema.faults(content),
            #[cfg(not(feature = "schema"))]
            Some(_) => None,
            None => Some("it has no structuredContent".to_owned()),
        }
    }
}

/// Compiles a schema. Regular expressions that the validator does not support are ignored, each with a warning.
#[cfg(feature = "schema")]
fn compiled(tool: &str, kind: &'static str, schema: &Value) -> Result<CompiledSchema, BuildError> {
    let (compiled, ignored) = CompiledSchema::compile_lenient(schema).map_err(|fault| {
        BuildError(format!("the {kind} schema of the tool `{tool}` cannot be used: {fault}"))
    })?;
    for pattern in ignored {
        tracing::warn!(tool, schema = kind, ignored = %escaped(&pattern), "a regular expression is ignored: look-around and back references are not supported");
    }
    Ok(compiled)
}

#[cfg(test)]
mod tests;
