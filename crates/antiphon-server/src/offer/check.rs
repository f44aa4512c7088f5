//! The checks of a tool's arguments and results, and the schemas of Rust types in the form in which lists show them.

use crate::errors::BuildError;
#[cfg(feature = "schema")]
use antiphon_schema::CompiledSchema;
#[cfg(feature = "schema")]
use antiphon_wire::escaped;
use antiphon_wire::{CallToolResult, arguments::Rules};
use serde_json::{Value, json};

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

/// The formats of numbers that Rust types have and JSON Schema does not define. Hosts pass schemas on to the interfaces of
/// models, and some of these refuse a format that they do not know. The bounds of the numbers stay.
const NUMBER_FORMATS: [&str; 14] = [
    "int8", "int16", "int32", "int64", "int128", "int", "uint8", "uint16", "uint32", "uint64", "uint128",
    "uint", "float", "double",
];

/// Returns the schema of a Rust type as lists show it. Arguments and results are checked against the schema itself.
pub(crate) fn advertised(schema: &Value) -> Value {
    let mut shown = schema.clone();
    without_null(&mut shown);
    without_number_formats(&mut shown);
    without_booleans(&mut shown);
    shown
}

/// Replaces schemas that are a boolean, at every place where a schema of a value may stand: `true` by `{}`, and `false` by `{"not":{}}`,
/// which mean the same. Hosts refuse a list with a tool that has a boolean there. They know it as the value of `additionalProperties`.
fn without_booleans(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
                Value::Object(schemas),
            ) => schemas.values_mut().for_each(without_boolean),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(without_boolean);
            }
            ("items" | "contains" | "not" | "if" | "then" | "else" | "propertyNames", schema) => {
                without_boolean(schema);
            }
            ("additionalProperties" | "unevaluatedProperties" | "unevaluatedItems", schema) => {
                without_booleans(schema);
            }
            _ => {}
        }
    }
}

fn without_boolean(schema: &mut Value) {
    match schema {
        Value::Bool(true) => *schema = json!({}),
        Value::Bool(false) => *schema = json!({ "not": {} }),
        _ => without_booleans(schema),
    }
}

/// Removes `null` from the types of optional arguments that are repeated in headers: the advertised schema omits it,
/// although `null` is accepted.
///
/// > **MUST** only be applied to parameters with primitive types (integer, string, boolean).
fn without_null(schema: &mut Value) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|properties| properties.values_mut()) {
        if property.get("x-mcp-header").is_some()
            && let Some(Value::Array(types)) = property.get_mut("type")
        {
            types.retain(|kind| kind != "null");
            if let [Value::String(only)] = types.as_slice() {
                property["type"] = only.clone().into();
            }
        }
        without_null(property);
    }
}

/// Removes the formats of numbers at every place where a schema may stand.
fn without_number_formats(schema: &mut Value) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(without_number_formats),
        Value::Object(members) => {
            // A property of the name `format` is a schema, not a text.
            let format = members.get("format").and_then(Value::as_str);
            if format.is_some_and(|format| NUMBER_FORMATS.contains(&format)) {
                members.remove("format");
            }
            for (keyword, value) in members {
                if !matches!(keyword.as_str(), "const" | "default" | "enum" | "examples") {
                    without_number_formats(value);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::JsonSchema;
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Numbers {
        port: u16,
        count: usize,
        offset: Option<i64>,
        shares: Vec<f64>,
        format: Format,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    enum Format {
        Wide { width: u32 },
    }

    #[test]
    fn formats_of_numbers_are_not_shown() {
        let schema = schemars::schema_for!(Numbers).to_value();
        for format in ["uint16", "uint", "int64", "double", "uint32"] {
            assert!(schema.to_string().contains(&format!("\"format\":\"{format}\"")), "{format}: {schema}");
        }
        let shown = advertised(&schema);
        assert!(!shown.to_string().contains("\"format\":\""), "{shown}");
        let properties = &shown["properties"];
        assert_eq!(properties["port"], json!({"type": "integer", "minimum": 0, "maximum": 65535}));
        assert_eq!(properties["count"], json!({"type": "integer", "minimum": 0}));
        assert_eq!(properties["offset"], json!({"type": ["integer", "null"]}));
        assert!(properties["format"].is_object(), "{shown}");
    }

    #[test]
    fn no_schema_of_a_value_is_a_boolean() {
        for (schema, shown) in [
            (
                json!({"properties": {"any": true, "none": false}}),
                json!({"properties": {"any": {}, "none": {"not": {}}}}),
            ),
            (json!({"items": true}), json!({"items": {}})),
            (json!({"items": [true, {"items": false}]}), json!({"items": [{}, {"items": {"not": {}}}]})),
            (json!({"anyOf": [true, {"not": true}]}), json!({"anyOf": [{}, {"not": {}}]})),
            (
                json!({"$defs": {"a": {"properties": {"b": true}}}}),
                json!({"$defs": {"a": {"properties": {"b": {}}}}}),
            ),
            (
                json!({"additionalProperties": {"properties": {"a": true}}}),
                json!({"additionalProperties": {"properties": {"a": {}}}}),
            ),
        ] {
            assert_eq!(advertised(&schema), shown, "{schema}");
        }
        // Values, and a property of such a name, are no schemas.
        for schema in [
            json!({"properties": {"items": {"type": "boolean", "default": true, "enum": [true]}}}),
            json!({"additionalProperties": false}),
            json!({"const": {"items": true}, "examples": [{"properties": {"a": true}}]}),
        ] {
            assert_eq!(advertised(&schema), schema);
        }
    }

    #[test]
    fn other_formats_and_values_stay() {
        for schema in [
            json!({"type": "string", "format": "date-time"}),
            json!({"default": {"format": "int32"}, "const": {"format": "uint"}, "enum": [{"format": "uint"}]}),
            json!({"properties": {"format": {"type": "string", "format": "uri"}}}),
            json!(true),
        ] {
            assert_eq!(advertised(&schema), schema);
        }
    }
}

/// Tests of a build without the validator.
#[cfg(all(test, not(feature = "schema")))]
mod tests_without_validator {
    use crate::{call::ctx::Ctx, offer::tool::Tool, server::Server};
    use schemars::JsonSchema;
    use serde_json::{Map, Value, json};

    #[derive(serde::Deserialize, JsonSchema)]
    struct Plain {
        #[schemars(length(min = 1, max = 3))]
        code: String,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    struct Patterned {
        #[schemars(extend("pattern" = "^[a-z]+$"))]
        code: String,
    }

    fn fault(tool: Tool) -> Option<String> {
        Server::builder("s", "1").tool(tool).build().err().map(|error| error.to_string())
    }

    /// A server without the validator refuses what it could not check, and names the keyword and the feature.
    #[test]
    fn a_tool_that_needs_the_validator_does_not_build() {
        let plain = Tool::new("plain", async |_: &Ctx, plain: Plain| plain.code);
        assert_eq!(fault(plain), None);

        let patterned = Tool::new("patterned", async |_: &Ctx, patterned: Patterned| patterned.code);
        let text = fault(patterned).unwrap_or_default();
        for part in ["`patterned`", "`pattern`", "code", "feature `schema`"] {
            assert!(text.contains(part), "{part} in {text:?}");
        }

        let by_hand = async |_: &Ctx, _: Map<String, Value>| "";
        let text =
            fault(Tool::with_schema("by_hand", json!({"type": "object"}), by_hand)).unwrap_or_default();
        assert!(text.contains("written by hand") && text.contains("feature `schema`"), "{text:?}");
    }
}
