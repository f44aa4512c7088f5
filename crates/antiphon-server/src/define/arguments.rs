//! One argument as a signature has it: what is told of it, and how it is read.

use crate::offer::arguments::decode;
use schemars::{JsonSchema as HasSchema, Schema, SchemaGenerator};
use serde::{
    de::{DeserializeOwned, Deserializer, Error as _, Visitor, value::Error as PlainError},
    forward_to_deserialize_any,
};
use serde_json::Value;

/// A type that a caller's argument can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument",
    label = "not read from JSON, or without a schema",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for it",
    note = "what the server has and no caller gives is a `State<{Self}>`"
)]
pub trait Argument: DeserializeOwned + HasSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + HasSchema + Send + 'static> Argument for T {}

/// A type that an argument of a prompt can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a prompt",
    label = "not a text",
    note = "arguments of prompts are texts: `String`, `&str` or `Option<String>`"
)]
pub trait Text: Argument {}
impl Text for String {}
impl Text for Option<String> {}

/// A type that a variable of a template can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a variable of a URI template",
    label = "not a text",
    note = "variables are parts of a URI: `String` or `&str`"
)]
pub trait Variable: Argument {}
impl Variable for String {}

/// What is told of one argument besides its type.
#[derive(Debug)]
pub struct Spec {
    pub(crate) name: &'static str,
    pub(crate) title: Option<&'static str>,
    pub(crate) description: Option<&'static str>,
    pub(crate) default: Option<Value>,
    pub(crate) keywords: Vec<(&'static str, Value)>,
}

impl Spec {
    /// By its name alone.
    pub fn new(name: &'static str) -> Self {
        Self { name, title: None, description: None, default: None, keywords: Vec::new() }
    }

    /// What people read.
    #[must_use]
    pub fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    /// What it is for.
    #[must_use]
    pub fn description(mut self, description: &'static str) -> Self {
        self.description = Some(description);
        self
    }

    /// What it is if it is not given.
    #[must_use]
    pub fn default_value(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// A keyword of its schema.
    #[must_use]
    pub fn keyword(mut self, keyword: &'static str, value: impl Into<Value>) -> Self {
        self.keywords.push((keyword, value.into()));
        self
    }
}

/// One parameter that is an argument: what is told of it, and how it is read.
///
/// Functions, not bounds: a type that cannot be an argument is told once, where one of the three below is called.
pub struct Slot<T> {
    pub(crate) spec: Spec,
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
    read: fn(&str) -> serde_json::Result<T>,
    read_default: fn(&Value) -> serde_json::Result<T>,
    absent: fn() -> Option<T>,
}

impl<T> Slot<T> {
    fn new(spec: Spec) -> Self
    where
        T: Argument,
    {
        Self {
            spec,
            schema: SchemaGenerator::subschema_for::<T>,
            read: decode::<T>,
            read_default: |default| T::deserialize(default),
            absent: || T::deserialize(Absent).ok(),
        }
    }

    /// Reads its text.
    ///
    /// # Errors
    /// If it is not of its type; names it.
    pub(crate) fn read(&self, text: &str) -> Result<T, String> {
        (self.read)(text).map_err(|fault| {
            let fault = fault.to_string();
            // Where in the argument's text, which nobody sees by itself.
            let fault = fault.rsplit_once(" at line ").map_or(&*fault, |(fault, _)| fault);
            format!("argument `{}`: {fault}", self.spec.name)
        })
    }

    /// What it is if it is not given; `None` if it must be.
    ///
    /// # Errors
    /// If the default is not of its type.
    pub(crate) fn absent(&self) -> serde_json::Result<Option<T>> {
        match &self.spec.default {
            Some(default) => (self.read_default)(default).map(Some),
            None => Ok((self.absent)()),
        }
    }
}

/// An argument of a tool.
pub fn argument<T: Argument>(spec: Spec) -> Slot<T> {
    Slot::new(spec)
}

/// An argument of a prompt.
pub fn text<T: Text>(spec: Spec) -> Slot<T> {
    Slot::new(spec)
}

/// A variable of a template.
pub fn variable<T: Variable>(spec: Spec) -> Slot<T> {
    Slot::new(spec)
}

/// What is not there: `None` to an `Option`, an error to all else. So aliases of `Option` are optional too.
struct Absent;

impl<'de> Deserializer<'de> for Absent {
    type Error = PlainError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, PlainError> {
        Err(PlainError::custom("it is missing"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PlainError> {
        visitor.visit_none()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
