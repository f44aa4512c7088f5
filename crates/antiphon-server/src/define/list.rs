//! All arguments of one function: a list of types, `(A, (B, ()))`, and its input schema.

use crate::{
    define::arguments::{Flat, Slot, Spec},
    errors::BuildError,
    offer::check::advertised,
};
use antiphon_wire::JsonSchema;
use schemars::{Schema, SchemaGenerator};
use serde::{
    Serialize, Serializer,
    de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};
use std::fmt;

/// The description of one parameter, for the schema of its function.
pub enum Described<'a> {
    /// One argument.
    One {
        /// The description.
        spec: &'a Spec,
        /// True if the argument must be there.
        required: bool,
        /// Makes the schema.
        schema: fn(&mut SchemaGenerator) -> Schema,
    },
    /// The fields of a struct, each of which is an argument.
    Fields {
        /// The name of the parameter.
        parameter: &'static str,
        /// Makes the schema of the struct.
        schema: fn(&mut SchemaGenerator) -> Schema,
    },
}

/// Receives the description of each parameter.
pub(crate) type Describe<'d> = dyn FnMut(Described<'_>) -> Result<(), BuildError> + 'd;

/// The arguments of one function.
pub trait List: Send + Sync + 'static {
    /// The types of the parameters.
    type Values;
    /// The texts that were found in a call.
    type Found<'t>: Default;

    /// Passes the description of each argument to `describe`, in order. `user` names the owner ("the tool
    /// `provision`").
    ///
    /// # Errors
    /// If a default does not fit its type, or `describe` fails.
    fn each(&self, user: &str, describe: &mut Describe<'_>) -> Result<(), BuildError>;
    /// Returns the slot for the text of the argument with this name.
    fn place<'f, 't>(
        &self,
        name: &str,
        found: &'f mut Self::Found<'t>,
    ) -> Option<&'f mut Option<&'t RawValue>>;
    /// Decodes all arguments.
    ///
    /// # Errors
    /// Names an argument that is missing or does not fit its type.
    fn values(&self, found: &Self::Found<'_>) -> Result<Self::Values, String>;
}

impl List for () {
    type Values = ();
    type Found<'t> = ();

    fn each(&self, _: &str, _: &mut Describe<'_>) -> Result<(), BuildError> {
        Ok(())
    }

    fn place<'f, 't>(&self, _: &str, (): &'f mut ()) -> Option<&'f mut Option<&'t RawValue>> {
        None
    }

    fn values(&self, (): &()) -> Result<(), String> {
        Ok(())
    }
}

impl<T: 'static, L: List> List for (Slot<T>, L) {
    type Values = (T, L::Values);
    type Found<'t> = (Option<&'t RawValue>, L::Found<'t>);

    fn each(&self, user: &str, describe: &mut Describe<'_>) -> Result<(), BuildError> {
        let (Slot { spec, schema, .. }, rest) = self;
        let absent = self.0.absent().map_err(|fault| {
            BuildError(format!(
                "the default of the argument `{}` of {user} does not fit its type: {fault}",
                spec.name
            ))
        })?;
        describe(Described::One { spec, required: absent.is_none(), schema: *schema })?;
        rest.each(user, describe)
    }

    fn place<'f, 't>(
        &self,
        name: &str,
        found: &'f mut Self::Found<'t>,
    ) -> Option<&'f mut Option<&'t RawValue>> {
        if self.0.spec.name == name { Some(&mut found.0) } else { self.1.place(name, &mut found.1) }
    }

    fn values(&self, (text, rest): &Self::Found<'_>) -> Result<Self::Values, String> {
        let value = match text {
            Some(text) => self.0.read(text.get())?,
            // The default was decoded once before, when the function was defined.
            None => self.0.absent().ok().flatten().ok_or_else(|| {
                let name = self.0.spec.name;
                format!("argument `{name}` is missing")
            })?,
        };
        Ok((value, self.1.values(rest)?))
    }
}

impl<T: 'static, L: List> List for (Flat<T>, L) {
    type Values = (T, L::Values);
    /// One place for each field, as soon as one of them is there.
    type Found<'t> = (Vec<Option<&'t RawValue>>, L::Found<'t>);

    fn each(&self, user: &str, describe: &mut Describe<'_>) -> Result<(), BuildError> {
        let (Flat { parameter, schema, .. }, rest) = self;
        describe(Described::Fields { parameter, schema: *schema })?;
        rest.each(user, describe)
    }

    fn place<'f, 't>(
        &self,
        name: &str,
        found: &'f mut Self::Found<'t>,
    ) -> Option<&'f mut Option<&'t RawValue>> {
        match self.0.names.iter().position(|field| field == name) {
            Some(field) => {
                found.0.resize(self.0.names.len(), None);
                found.0.get_mut(field)
            }
            None => self.1.place(name, &mut found.1),
        }
    }

    fn values(&self, (fields, rest): &Self::Found<'_>) -> Result<Self::Values, String> {
        Ok((self.0.read(fields)?, self.1.values(rest)?))
    }
}

/// Decodes the arguments of a call from the text of an object. Unknown members are ignored: the schema refuses them, unless it allows them.
///
/// # Errors
/// Names the argument that does not fit.
pub(crate) fn decode<L: List>(arguments: &L, text: &str) -> Result<L::Values, serde_json::Error> {
    let found = Reader(arguments).deserialize(&mut serde_json::Deserializer::from_str(text))?;
    arguments.values(&found).map_err(serde_json::Error::custom)
}

/// Collects the texts of the arguments.
struct Reader<'a, L>(&'a L);

impl<'de, L: List> DeserializeSeed<'de> for Reader<'_, L> {
    type Value = L::Found<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<L::Found<'de>, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, L: List> Visitor<'de> for Reader<'_, L> {
    type Value = L::Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of arguments")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<L::Found<'de>, M::Error> {
        let mut found = L::Found::default();
        while let Some(place) = map.next_key_seed(Name(self.0, &mut found))? {
            let Some(place) = place else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if place.replace(map.next_value()?).is_some() {
                return Err(M::Error::custom("an argument occurs twice"));
            }
        }
        Ok(found)
    }
}

/// Reads the name of an argument as its slot, without copying the name.
struct Name<'a, 'f, 't, L: List>(&'a L, &'f mut L::Found<'t>);

impl<'de, 'f, 't: 'f, L: List> DeserializeSeed<'de> for Name<'_, 'f, 't, L> {
    type Value = Option<&'f mut Option<&'t RawValue>>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl<'f, 't: 'f, L: List> Visitor<'_> for Name<'_, 'f, 't, L> {
    type Value = Option<&'f mut Option<&'t RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an argument")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.place(name, self.1))
    }
}

/// The treatment of arguments that a function does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Additional {
    /// The call is refused.
    Refuse,
    /// They are ignored.
    Ignore,
}

/// The input schema of a tool, in two forms.
pub(crate) struct Schemas {
    /// The schema against which arguments are checked.
    pub(crate) checked: Value,
    /// The schema in `tools/list`: the arguments are in the order of the signature.
    pub(crate) advertised: JsonSchema,
}

impl Schemas {
    /// # Errors
    /// If a default does not fit its type, if two arguments have one name, or if a flattened type is not a struct.
    pub(crate) fn of(arguments: &impl List, user: &str, additional: Additional) -> Result<Self, BuildError> {
        let (mut generator, mut members) = (SchemaGenerator::default(), Members::default());
        arguments.each(user, &mut |described| match described {
            Described::One { spec, required, schema } => {
                members.add(user, spec.name, property(spec, schema(&mut generator)), required)
            }
            Described::Fields { parameter, schema } => {
                members.flatten(user, parameter, schema(&mut generator).to_value())
            }
        })?;
        let Members { names, properties, required } = members;
        let mut checked = serde_json::json!({"type": "object", "properties": properties});
        if let Some(dialect) = &generator.settings().meta_schema {
            checked["$schema"] = Value::from(&**dialect);
        }
        if !required.is_empty() {
            checked["required"] = Value::from(required);
        }
        if additional == Additional::Refuse {
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

/// Returns the schema of one argument.
fn property(spec: &Spec, mut property: Schema) -> Value {
    let Spec { title, description, default, keywords, .. } = spec;
    for (keyword, text) in [("title", title), ("description", description)] {
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
    property.to_value()
}

/// The arguments of an input schema.
#[derive(Default)]
struct Members {
    /// The names in the order of the signature.
    names: Vec<String>,
    properties: Map<String, Value>,
    required: Vec<String>,
}

/// The keywords of a struct that can be flattened, besides those that describe it.
const STRUCT: [&str; 4] = ["type", "properties", "required", "additionalProperties"];

impl Members {
    fn add(&mut self, user: &str, name: &str, property: Value, required: bool) -> Result<(), BuildError> {
        if self.properties.insert(name.to_owned(), property).is_some() {
            return Err(BuildError(format!("{user} has two arguments named `{name}`: rename one")));
        }
        self.names.push(name.to_owned());
        if required {
            self.required.push(name.to_owned());
        }
        Ok(())
    }

    /// Adds the fields of a struct.
    fn flatten(&mut self, user: &str, parameter: &str, mut schema: Value) -> Result<(), BuildError> {
        let unfit = schema.as_object().and_then(|members| {
            let describes = ["$schema", "title", "description", "default", "examples", "deprecated"];
            let mut keywords = members.iter();
            keywords.find_map(|(keyword, value)| {
                let is_closed = keyword != "additionalProperties" || *value == Value::Bool(false);
                let is_known = STRUCT.contains(&&**keyword) || describes.contains(&&**keyword);
                (!is_known || !is_closed).then(|| keyword.clone())
            })
        });
        if unfit.is_some() || schema.get("type").and_then(Value::as_str) != Some("object") {
            let has = unfit.map(|keyword| format!(" (its schema has `{keyword}`)")).unwrap_or_default();
            return Err(BuildError(format!(
                "the argument `{parameter}` of {user} cannot be flattened: its type is not a struct with named fields{has}"
            )));
        }
        let required = schema["required"].take();
        let is_required =
            |name: &str| required.as_array().is_some_and(|names| names.iter().any(|known| known == name));
        if let Value::Object(properties) = schema["properties"].take() {
            for (name, property) in properties {
                self.add(user, &name, property, is_required(&name))?;
            }
        }
        Ok(())
    }
}

/// A schema whose properties are written in this order.
struct InOrder<'a> {
    schema: &'a Value,
    names: &'a [String],
}

impl Serialize for InOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Properties<'a>(&'a Value, &'a [String]);
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
