//! Answers of one field: a text, a boolean, a number.

use crate::form::Form;
use antiphon_wire::{FieldKind, FormField, FormSchema};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, Visitor},
    forward_to_deserialize_any,
};
use serde_json::{Error, Map, Number, Result, Value, value::RawValue};
use std::borrow::Cow;

/// The name of the field.
pub(crate) const VALUE: &str = "value";

/// A type that is an answer by itself: `String`, `bool`, `f64`, and the integers of up to 64 bits. No other type
/// implements it.
///
/// Its [`Form`] has one required field with the name `value`, and the answer is the value of that field:
///
/// | the answer | default key | the field |
/// |---|---|---|
/// | `String` | `text` | a text |
/// | `bool` | `yes_no` | yes or no |
/// | an integer | `number` | a whole number, with the bounds of the type up to 32 bits, and for `u64` and `usize` 0 as the least |
/// | `f64` | `number` | a number |
///
/// The bounds are those that `#[derive(Form)]` gives to a field of the type. A number that fits the form and not the type
/// is asked again.
///
/// [`Elicit::title`](crate::Elicit::title) sets the title of the field.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an answer of one field: the question has no title",
    label = "not a String, a bool or a number",
    note = "each field of a form has a title of its own: `#[form(title = \"..\")]`, or `FormField::title`"
)]
pub trait OneField: Form + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! one_field {
    ($($type:ty, $key:literal, $field:expr;)+) => {$(
        impl Form for $type {
            fn key() -> Cow<'static, str> {
                $key.into()
            }

            fn schema() -> FormSchema {
                FormSchema::new(vec![$field])
            }
        }

        impl OneField for $type {}
        impl sealed::Sealed for $type {}
    )+};
}

macro_rules! whole_numbers {
    ($($type:ty)+) => {
        one_field! { $($type, "number", whole_number(<$type>::MIN as i128, <$type>::MAX as i128);)+ }
    };
}

one_field! {
    String, "text", FormField::text(VALUE);
    bool, "yes_no", FormField::boolean(VALUE);
    f64, "number", FormField::number(VALUE);
}
whole_numbers! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

/// Returns a field with the bounds that `#[derive(Form)]` writes. Greater bounds are beyond the numbers of JavaScript:
/// clients would round them.
fn whole_number(least: i128, most: i128) -> FormField {
    let exact =
        |bound: i128| i64::try_from(bound).ok().filter(|_| bound.abs() <= u32::MAX.into()).map(Number::from);
    let mut field = FormField::integer(VALUE);
    field.kind =
        FieldKind::Number { integer: true, minimum: exact(least), maximum: exact(most), default: None };
    field
}

/// Reads the content of an answer: an answer of one field from `value`, any other type from all the fields.
pub(crate) fn read_raw<T: DeserializeOwned>(content: &RawValue) -> Result<T> {
    #[derive(Deserialize)]
    struct One<'a> {
        #[serde(borrow)]
        value: &'a RawValue,
    }
    let value = || serde_json::from_str(content.get()).map(|One { value }| value);
    T::deserialize(Content { all: content, value })
}

/// Reads the content of an answer that is already parsed.
pub(crate) fn read_map<T: DeserializeOwned>(content: &Map<String, Value>) -> Result<T> {
    let value = || content.get(VALUE).ok_or_else(|| Error::missing_field(VALUE));
    T::deserialize(Content { all: content, value })
}

/// The content of an answer; a plain value is in its field `value`.
struct Content<A, F> {
    all: A,
    value: F,
}

macro_rules! plain {
    ($($method:ident)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            (self.value)()?.$method(visitor)
        }
    )+};
}

impl<'de, A, B, F> Deserializer<'de> for Content<A, F>
where
    A: Deserializer<'de, Error = Error>,
    B: Deserializer<'de, Error = Error>,
    F: FnOnce() -> Result<B>,
{
    type Error = Error;

    plain! {
        deserialize_bool deserialize_str deserialize_string deserialize_f32 deserialize_f64
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.all.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.all.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.all.deserialize_option(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.all.deserialize_ignored_any(visitor)
    }

    // The content is an object, which these methods read unchanged.
    forward_to_deserialize_any! {
        char bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
    }
}
