//! All arguments of one function: a list of types, `(A, (B, ()))`, and its input schema.

use crate::{
    define::arguments::{Slot, Spec},
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

/// The description of one argument, for the schema of its function.
pub struct Described<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) required: bool,
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
}

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
    /// If a default does not fit its type.
    fn each(&self, user: &str, describe: &mut dyn FnMut(Described<'_>)) -> Result<(), BuildError>;
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

    fn each(&self, _: &str, _: &mut dyn FnMut(Described<'_>)) -> Result<(), BuildError> {
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

    fn each(&self, user: &str, describe: &mut dyn FnMut(Described<'_>)) -> Result<(), BuildError> {
        let (Slot { spec, schema, .. }, rest) = self;
        let absent = self.0.absent().map_err(|fault| {
            BuildError(format!(
                "the default of the argument `{}` of {user} does not fit its type: {fault}",
                spec.name
            ))
        })?;
        describe(Described { spec, required: absent.is_none(), schema: *schema });
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
    /// If a default does not fit its type.
    pub(crate) fn of(arguments: &impl List, user: &str, additional: Additional) -> Result<Self, BuildError> {
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
