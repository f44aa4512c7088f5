//! One argument of a function: its description, its decoding, and the completer that `#[arg(complete = ..)]` names.

use crate::{
    define::{State, States},
    errors::{BuildError, Error},
    offer::completion::{Completing, Completions, IntoCompletions},
};
use antiphon_wire::arguments::decode;
use futures_util::future::BoxFuture;
use schemars::{JsonSchema as HasSchema, Schema, SchemaGenerator};
use serde::{
    de::{DeserializeOwned, Deserializer, Error as _, Visitor, value::Error as PlainError},
    forward_to_deserialize_any,
};
use serde_json::{Value, value::RawValue};
use std::fmt::Write as _;

/// A type for an argument.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument",
    label = "not read from JSON, or without a schema",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for it",
    note = "a value of the server, which no caller sends, is a `State<{Self}>`"
)]
pub trait Argument: DeserializeOwned + HasSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + HasSchema + Send + 'static> Argument for T {}

/// A type for an argument of a prompt.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a prompt",
    label = "not a text",
    note = "arguments of prompts are texts: `String`, `&str` or `Option<String>`"
)]
pub trait Text: Argument {}
impl Text for String {}
impl Text for Option<String> {}

/// A type for a variable of a template.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a variable of a URI template",
    label = "not a text",
    note = "variables are parts of a URI: `String` or `&str`"
)]
pub trait Variable: Argument {}
impl Variable for String {}

/// A type for a parameter of a template, such as `{?q}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a URI template",
    label = "not a text",
    note = "parameters may be missing: `Option<String>`, or `String` or `&str` for one that must be there"
)]
pub trait QueryVariable: Argument {}
impl QueryVariable for String {}
impl QueryVariable for Option<String> {}

/// A type for a variable with `*` of a template, such as `{/path*}`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a variable with `*` of a URI template",
    label = "not a list of texts",
    note = "a variable with `*` is a list of parts of a URI: `Vec<String>`"
)]
pub trait ListVariable: Argument {}
impl ListVariable for Vec<String> {}

/// The description of one argument, besides its type.
#[derive(Debug)]
pub struct Spec {
    pub(crate) name: &'static str,
    pub(crate) title: Option<&'static str>,
    pub(crate) description: Option<&'static str>,
    pub(crate) default: Option<Value>,
    pub(crate) keywords: Vec<(&'static str, Value)>,
}

impl Spec {
    /// Returns a description with the name only.
    pub fn new(name: &'static str) -> Self {
        Self { name, title: None, description: None, default: None, keywords: Vec::new() }
    }

    /// Sets the title for people.
    #[must_use]
    pub fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: &'static str) -> Self {
        self.description = Some(description);
        self
    }

    /// Sets the value of a missing argument.
    #[must_use]
    pub fn default_value(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// Adds a keyword to the argument's schema.
    #[must_use]
    pub fn keyword(mut self, keyword: &'static str, value: impl Into<Value>) -> Self {
        self.keywords.push((keyword, value.into()));
        self
    }
}

/// One parameter that is an argument: its description, and its decoding.
///
/// It holds functions instead of bounds, so that the compiler reports an unsuitable type once, at the call of one of
/// the three functions below.
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

    /// Decodes the argument's text.
    ///
    /// # Errors
    /// If the text does not fit the type; the error names the argument.
    pub(crate) fn read(&self, text: &str) -> Result<T, String> {
        (self.read)(text).map_err(|fault| {
            format!("argument `{}`: {}", self.spec.name, without_position(&fault.to_string()))
        })
    }

    /// Returns the value of a missing argument; `None` if it is required.
    ///
    /// # Errors
    /// If the default does not fit the type.
    pub(crate) fn absent(&self) -> serde_json::Result<Option<T>> {
        match &self.spec.default {
            Some(default) => (self.read_default)(default).map(Some),
            None => Ok((self.absent)()),
        }
    }
}

/// Returns the slot of an argument of a tool.
pub fn argument<T: Argument>(spec: Spec) -> Slot<T> {
    Slot::new(spec)
}

/// Returns the slot of an argument of a prompt.
pub fn text<T: Text>(spec: Spec) -> Slot<T> {
    Slot::new(spec)
}

/// Returns the slot of a variable of a template.
pub fn variable<T: Variable>(spec: Spec) -> Slot<T> {
    Slot::new(spec)
}

/// Returns the slot of a parameter of a template, which may be missing.
pub fn query_variable<T: QueryVariable>(spec: Spec) -> Slot<T> {
    Slot::new(spec)
}

/// Returns the slot of a variable with `*` of a template.
pub fn list_variable<T: ListVariable>(spec: Spec) -> Slot<T> {
    Slot::new(spec)
}

/// One parameter whose fields are arguments.
pub struct Flat<T> {
    pub(crate) parameter: &'static str,
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
    /// The names of the fields.
    pub(crate) names: Vec<String>,
    read: fn(&str) -> serde_json::Result<T>,
}

impl<T> Flat<T> {
    /// Decodes the fields that a call has. `found` has one place for each name, and may be shorter.
    ///
    /// # Errors
    /// Names a field that is missing or does not fit.
    pub(crate) fn read(&self, found: &[Option<&RawValue>]) -> Result<T, String> {
        let mut text = String::from("{");
        // Each name, with the end of its value in the text.
        let mut ends = Vec::new();
        for (name, value) in self.names.iter().zip(found).filter_map(|(name, value)| Some((name, (*value)?)))
        {
            let separator = if ends.is_empty() { "" } else { "," };
            let _ = write!(text, "{separator}{}:{}", Value::from(name.as_str()), value.get());
            ends.push((text.len(), name));
        }
        text.push('}');
        (self.read)(&text).map_err(|fault| {
            let cause = fault.to_string();
            let cause = without_position(&cause);
            // An error at the end is about the whole, and names what is missing.
            let place = place_in(&text, &fault);
            match ends.iter().find(|(end, _)| place <= *end) {
                Some((_, name)) if !cause.contains(&format!("`{name}`")) => {
                    format!("argument `{name}`: {cause}")
                }
                _ => cause.to_owned(),
            }
        })
    }
}

/// Returns the slots of the fields of a struct.
pub fn flat<T: Argument>(parameter: &'static str) -> Flat<T> {
    let schema = T::json_schema(&mut SchemaGenerator::default());
    let names = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let names = names.map(|(name, _)| name.clone()).collect();
    Flat { parameter, schema: T::json_schema, names, read: decode::<T> }
}

/// Returns the number of bytes of the text up to the position of an error.
fn place_in(text: &str, fault: &serde_json::Error) -> usize {
    let before = fault.line().saturating_sub(1);
    text.split_inclusive('\n').take(before).map(str::len).sum::<usize>() + fault.column()
}

/// Returns the text of an error without the position in the argument's text, because the caller does not see this text alone.
fn without_position(fault: &str) -> &str {
    fault.rsplit_once(" at line ").map_or(fault, |(fault, _)| fault)
}

/// A missing value: it decodes to `None` for an `Option`, and to an error for other types. This also makes aliases of
/// `Option` optional.
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

/// The suggestions of one completer.
type Suggestions = BoxFuture<'static, Result<Completions, Error>>;

/// A function that suggests values of an argument. The shape is its parameters.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot complete an argument",
    label = "not a completer",
    note = "a completer is an `async fn(typed: Completing) -> Vec<String>`, or with a state of the server: `async fn(typed: Completing, db: State<Db>) -> Vec<String>`"
)]
pub trait Completer<Shape>: Send + Sync + 'static {
    /// Returns the function with its state. `user` names the owner ("the prompt `review`").
    ///
    /// # Errors
    /// If the server does not have the state.
    fn bind(
        self,
        states: &States,
        user: &str,
    ) -> Result<impl Fn(Completing) -> Suggestions + Send + Sync + 'static, BuildError>;
}

impl<F, Fut> Completer<(Completing,)> for F
where
    F: Fn(Completing) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoCompletions> + Send + 'static,
{
    fn bind(
        self,
        _: &States,
        _: &str,
    ) -> Result<impl Fn(Completing) -> Suggestions + Send + Sync + 'static, BuildError> {
        Ok(move |typed| -> Suggestions { suggestions(self(typed)) })
    }
}

impl<F, Fut, T> Completer<(Completing, State<T>)> for F
where
    F: Fn(Completing, State<T>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoCompletions> + Send + 'static,
    T: Send + Sync + 'static,
{
    fn bind(
        self,
        states: &States,
        user: &str,
    ) -> Result<impl Fn(Completing) -> Suggestions + Send + Sync + 'static, BuildError> {
        let state = states.get::<T>(user)?;
        Ok(move |typed| -> Suggestions { suggestions(self(typed, state.clone())) })
    }
}

fn suggestions(made: impl Future<Output: IntoCompletions> + Send + 'static) -> Suggestions {
    Box::pin(async move { made.await.into_completions() })
}

/// Returns the function of an argument, with its state.
///
/// # Errors
/// If the server does not have the state.
pub fn completer<Shape>(
    function: impl Completer<Shape>,
    states: &States,
    user: &str,
) -> Result<impl Fn(Completing) -> Suggestions + Send + Sync + 'static, BuildError> {
    function.bind(states, user)
}

/// Returns the suggestions that a method of a service returned.
///
/// # Errors
/// The reason for which there are none.
pub fn completions(made: impl IntoCompletions) -> Result<Completions, Error> {
    made.into_completions()
}
