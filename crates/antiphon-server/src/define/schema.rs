//! The input schema of a function's arguments.

use crate::{
    define::{arguments::Spec, list::List},
    errors::build_error::BuildError,
    offer::advertised::advertised,
};
use antiphon_wire::JsonSchema;
use schemars::SchemaGenerator;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// The input schema of a tool, in two forms.
pub(crate) struct Schemas {
    /// The schema against which arguments are checked.
    pub(crate) checked: Value,
    /// The schema in `tools/list`: the arguments are in the order of the signature.
    pub(crate) advertised: JsonSchema,
}

impl Schemas {
    /// # Errors
    /// If a default does not fit its type.
    pub(crate) fn of(arguments: &impl List, user: &str) -> Result<Self, BuildError> {
        let mut generator = SchemaGenerator::default();
        let (mut names, mut properties, mut required) = (Vec::new(), Map::new(), Vec::new());
        arguments.each(user, &mut |described| {
            let Spec { name, title, description, default, keywords } = described.spec;
            let mut property = (described.schema)(&mut generator);
            let advertised = [("title", title), ("description", description)];
            for (keyword, text) in advertised {
                if let Some(text) = text {
                    property.insert(keyword.to_owned(), Value::from(*text));
                }
            }
            if let Some(default) = default {
                property.insert("default".to_owned(), default.clone());
            }
            for (keyword, value) in keywords {
                property.insert((*keyword).to_owned(), value.clone());
            }
            names.push(*name);
            properties.insert((*name).to_owned(), property.to_value());
            if described.required {
                required.push(*name);
            }
        })?;
        let mut checked = serde_json::json!({"type": "object", "properties": properties});
        if let Some(dialect) = &generator.settings().meta_schema {
            checked["$schema"] = Value::from(&**dialect);
        }
        if !required.is_empty() {
            checked["required"] = Value::from(required);
        }
        if names.is_empty() {
            // > For tools with no parameters, use one of these valid approaches: [...] `additionalProperties: false`
            checked["additionalProperties"] = Value::Bool(false);
        }
        let definitions = generator.take_definitions(true);
        if !definitions.is_empty() {
            checked["$defs"] = Value::Object(definitions);
        }
        let shown = advertised(&checked);
        let advertised = JsonSchema::new(&InOrder { schema: &shown, names: &names })
            .map_err(|fault| BuildError(fault.to_string()))?;
        Ok(Self { checked, advertised })
    }
}

/// A schema whose properties are written in this order.
struct InOrder<'a> {
    schema: &'a Value,
    names: &'a [&'static str],
}

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Properties<'a>(&'a Value, &'a [&'static str]);
        impl Serialize for Properties<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_map(self.1.iter().map(|name| (name, &self.0[name])))
            }
        }
        enum Member<'a> {
            Properties(Properties<'a>),
            Other(&'a Value),
        }
        impl Serialize for Member<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    Self::Properties(properties) => properties.serialize(serializer),
                    Self::Other(value) => value.serialize(serializer),
                }
            }
        }
        let members =
            self.schema.as_object().into_iter().flatten().map(|(name, value)| match name.as_str() {
                "properties" => (name, Member::Properties(Properties(value, self.names))),
                _ => (name, Member::Other(value)),
            });
        serializer.collect_map(members)
    }
}
