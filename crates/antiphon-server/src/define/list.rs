//! All arguments of one function: a list of types, `(A, (B, ()))`, one [`Slot`] for each parameter, so that a call is
//! read into the very values that the function takes, and what does not fit is told by the argument's name.

use crate::{
    BuildError,
    define::arguments::{Slot, Spec},
};
use schemars::{Schema, SchemaGenerator};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// What is known of one argument when its function is defined.
pub struct Described<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) required: bool,
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
}

/// The arguments of one function.
pub trait List: Send + Sync + 'static {
    /// What the function takes.
    type Values;
    /// The texts that were found so far.
    type Found<'t>: Default;

    /// Describes each to `tell`, in order. `user` is whose they are ("the tool `provision`").
    ///
    /// # Errors
    /// If a default is not of its type.
    fn each(&self, user: &str, describe: &mut dyn FnMut(Described<'_>)) -> Result<(), BuildError>;
    /// Where the text of the argument of this name goes.
    fn place<'f, 't>(
        &self,
        name: &str,
        found: &'f mut Self::Found<'t>,
    ) -> Option<&'f mut Option<&'t RawValue>>;
    /// All of them.
    ///
    /// # Errors
    /// Names one that is missing or not of its type.
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
            BuildError(format!("the default of the argument `{}` of {user} is none: {fault}", spec.name))
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
            // A default was read once already, when the function was defined.
            None => self.0.absent().ok().flatten().ok_or_else(|| {
                let name = self.0.spec.name;
                format!("argument `{name}` is missing")
            })?,
        };
        Ok((value, self.1.values(rest)?))
    }
}

/// Reads the text of a call's arguments, an object; those that are not listed are passed over.
///
/// # Errors
/// Names the argument that does not fit.
pub(crate) fn decode<L: List>(arguments: &L, text: &str) -> Result<L::Values, serde_json::Error> {
    let found = Reader(arguments).deserialize(&mut serde_json::Deserializer::from_str(text))?;
    arguments.values(&found).map_err(serde_json::Error::custom)
}

/// Finds the texts of arguments.
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
                return Err(M::Error::custom("an argument is there twice"));
            }
        }
        Ok(found)
    }
}

/// Reads the name of an argument as its place: without a copy of it.
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
