//! Types that are forms: a person fills them in, and a handler reads them.

use antiphon_wire::{FieldKind, FormField, FormSchema};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, Visitor},
    forward_to_deserialize_any,
};
use serde_json::{Error, Map, Number, Result, Value, value::RawValue};
use std::borrow::Cow;

/// A type whose values a person fills in: it has a form, and decodes from the answer with serde.
///
/// `#[derive(Form)]` implements it for flat structs. [`Ctx::elicit`](crate::Ctx::elicit) and
/// [`Ask::of`](crate::Ask::of) ask such a form. `String`, `bool` and numbers are forms of [one field](OneField). A form
/// that is known only at run time needs no type: see [`Ctx::elicit_with`](crate::Ctx::elicit_with). An `impl` by hand
/// returns the schema from whose answers the type decodes:
///
/// ```
/// use antiphon::Form;
/// use antiphon::wire::forms::{FormField, FormSchema};
///
/// #[derive(serde::Deserialize)]
/// struct Place {
///     region: String,
/// }
///
/// impl Form for Place {
///     fn schema() -> FormSchema {
///         FormSchema::new(vec![FormField::text("region").title("Region")])
///     }
/// }
/// assert_eq!(Place::schema().fields()[0].label(), "Region");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a form",
    label = "no form",
    note = "derive it: `#[derive(serde::Deserialize, antiphon::Form)]` on a flat struct",
    note = "if it is `!` or `_`, name the type of the answer: `let place: Place = ctx.elicit(..).await?`"
)]
pub trait Form {
    /// Returns the default key of the question: the type's name in snake case.
    fn key() -> Cow<'static, str> {
        let path = std::any::type_name::<Self>();
        // The name of `form::Place<'_>` is `Place`.
        let path = path.split('<').next().unwrap_or(path);
        snake_case(path.rsplit("::").next().unwrap_or(path)).into()
    }

    /// Returns the form. It must always be the same: an answer is valid only for the form with which it was asked.
    ///
    /// > form mode elicitation schemas are limited to flat objects with primitive properties only.
    fn schema() -> FormSchema;
}

/// A type with a few values, of which a person chooses one or several: the type of a field of a [`Form`].
///
/// `#[derive(Form)]` implements it for an enum without data.
///
/// ```
/// use antiphon::FormChoice;
///
/// enum Size {
///     Small,
///     Large,
/// }
///
/// impl FormChoice for Size {
///     const CHOICES: &'static [(&'static str, Option<&'static str>)] = &[("small", Some("Small, 5 EUR")), ("large", None)];
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a form",
    label = "no field of a form",
    note = "a field is a String, a number, a bool, an enum without data that derives `antiphon::Form`, a Vec of such an enum, or an Option of one of these",
    note = "for a nested answer, use an argument of the tool, or several questions"
)]
pub trait FormChoice {
    /// The choices, in display order: the value as serde reads it, and an optional title for people.
    const CHOICES: &'static [(&'static str, Option<&'static str>)];
}

/// Converts `AlternativeDate` to `alternative_date`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for (at, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// The items that derived code calls. They are not part of the API: they change with the derive.
pub(crate) mod expanded {
    use super::FormChoice;
    use antiphon_wire::{Choice, FieldKind, FormField};
    use serde_json::Number;

    /// Returns a field of any kind.
    pub fn field(
        name: &str,
        title: Option<String>,
        description: Option<String>,
        required: bool,
        kind: FieldKind,
    ) -> FormField {
        // The kind is overwritten at once: a field has no constructor for an arbitrary kind.
        let mut field = FormField::text(name);
        (field.title, field.description, field.required, field.kind) = (title, description, required, kind);
        field
    }

    /// Returns the choices in the form of a field.
    pub fn choices<T: FormChoice>() -> Vec<Choice> {
        T::CHOICES
            .iter()
            .map(|(value, title)| Choice { value: (*value).to_owned(), title: title.map(str::to_owned) })
            .collect()
    }

    /// Returns a floating-point number. The derive has checked that it is finite.
    pub fn float(value: f64) -> Option<Number> {
        Number::from_f64(value)
    }

    /// Returns whether a default is among the choices; evaluated by the compiler.
    pub const fn offers<T: FormChoice>(value: &str) -> bool {
        let mut n = 0;
        while n < T::CHOICES.len() {
            if same(T::CHOICES[n].0.as_bytes(), value.as_bytes()) {
                return true;
            }
            n += 1;
        }
        false
    }

    // `==` of slices is not yet available in constants.
    const fn same(a: &[u8], b: &[u8]) -> bool {
        let mut n = 0;
        while n < a.len() && n < b.len() && a[n] == b[n] {
            n += 1;
        }
        n == a.len() && n == b.len()
    }
}

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
