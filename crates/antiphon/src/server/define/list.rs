//! All arguments of one function: a list of types, `(A, (B, ()))`, one [`Slot`] for each parameter, so that a call is
//! read in one pass over its text into the very values that the function takes, and what does not fit is told by the
//! argument's name.

use super::arguments::{Slot, Spec};
use crate::server::{BuildError, arguments::decode_seed};
use schemars::{Schema, SchemaGenerator};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// What is known of one argument when its function is defined.
pub struct Described<'a> {
    pub(super) spec: &'a Spec,
    pub(super) required: bool,
    pub(super) schema: &'a dyn Fn(&mut SchemaGenerator) -> Schema,
}

/// The arguments of one function.
pub trait List: Send + Sync + 'static {
    /// What the function takes.
    type Values: Send + 'static;
    /// What was found so far.
    type Found: Default;

    /// Describes each to `tell`, in order. `user` is whose they are ("the tool `provision`").
    ///
    /// # Errors
    /// If a default is not of its type.
    fn each(&self, user: &str, tell: &mut dyn FnMut(Described<'_>)) -> Result<(), BuildError>;
    /// Where the argument of this name is.
    fn place(&self, name: &str) -> Option<usize>;
    /// Reads the argument at a place.
    ///
    /// # Errors
    /// If it is not of its type, or there already; names it.
    fn read<'de, M: MapAccess<'de>>(
        &self,
        place: usize,
        found: &mut Self::Found,
        map: &mut M,
    ) -> Result<(), M::Error>;
    /// All of them.
    ///
    /// # Errors
    /// Names one that is missing.
    fn values(&self, found: Self::Found) -> Result<Self::Values, String>;
}

impl List for () {
    type Values = ();
    type Found = ();

    fn each(&self, _: &str, _: &mut dyn FnMut(Described<'_>)) -> Result<(), BuildError> {
        Ok(())
    }

    fn place(&self, _: &str) -> Option<usize> {
        None
    }

    fn read<'de, M: MapAccess<'de>>(&self, _: usize, (): &mut (), map: &mut M) -> Result<(), M::Error> {
        map.next_value::<IgnoredAny>().map(|_| ())
    }

    fn values(&self, (): ()) -> Result<(), String> {
        Ok(())
    }
}

impl<S: Slot, L: List> List for (S, L) {
    type Values = (S::Value, L::Values);
    type Found = (Option<S::Value>, L::Found);

    fn each(&self, user: &str, tell: &mut dyn FnMut(Described<'_>)) -> Result<(), BuildError> {
        let spec = self.0.spec();
        let absent = self.0.absent().map_err(|fault| {
            BuildError(format!("the default of the argument `{}` of {user} is none: {fault}", spec.name))
        })?;
        let schema = |generator: &mut SchemaGenerator| self.0.schema(generator);
        tell(Described { spec, required: absent.is_none(), schema: &schema });
        self.1.each(user, tell)
    }

    fn place(&self, name: &str) -> Option<usize> {
        if self.0.spec().name == name { Some(0) } else { self.1.place(name).map(|place| place + 1) }
    }

    fn read<'de, M: MapAccess<'de>>(
        &self,
        place: usize,
        found: &mut Self::Found,
        map: &mut M,
    ) -> Result<(), M::Error> {
        if let Some(place) = place.checked_sub(1) {
            return self.1.read(place, &mut found.1, map);
        }
        let name = self.0.spec().name;
        let value = map.next_value_seed(InSlot(&self.0));
        let value = value.map_err(|fault| M::Error::custom(format!("argument `{name}`: {fault}")))?;
        match found.0.replace(value) {
            None => Ok(()),
            Some(_) => Err(M::Error::custom(format!("argument `{name}` is there twice"))),
        }
    }

    fn values(&self, (value, rest): Self::Found) -> Result<Self::Values, String> {
        let value = match value {
            Some(value) => value,
            // A default was read once already, when the function was defined.
            None => self.0.absent().ok().flatten().ok_or_else(|| {
                let name = self.0.spec().name;
                format!("argument `{name}` is missing")
            })?,
        };
        Ok((value, self.1.values(rest)?))
    }
}

struct InSlot<'a, S>(&'a S);

impl<'de, S: Slot> DeserializeSeed<'de> for InSlot<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.0.read(from)
    }
}

/// Reads all of a call's arguments; those that are not listed are passed over.
pub(super) struct Reader<'a, L>(pub(super) &'a L);

impl<L> Clone for Reader<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Reader<'_, L> {}

impl<'de, L: List> DeserializeSeed<'de> for Reader<'_, L> {
    type Value = L::Values;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<L::Values, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, L: List> Visitor<'de> for Reader<'_, L> {
    type Value = L::Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of arguments")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<L::Values, M::Error> {
        let mut found = L::Found::default();
        while let Some(place) = map.next_key_seed(Name(self.0))? {
            match place {
                Some(place) => self.0.read(place, &mut found, &mut map)?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        self.0.values(found).map_err(M::Error::custom)
    }
}

/// Reads the name of an argument as its place: without a copy of it.
struct Name<'a, L>(&'a L);

impl<'de, L: List> DeserializeSeed<'de> for Name<'_, L> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<usize>, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl<L: List> Visitor<'_> for Name<'_, L> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an argument")
    }

    fn visit_str<E>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.0.place(name))
    }
}

/// Reads the text of a call's arguments.
///
/// # Errors
/// Names the argument that does not fit.
pub(super) fn decode<L: List>(arguments: &L, text: &str) -> Result<L::Values, serde_json::Error> {
    decode_seed(Reader(arguments), text)
}
