//! Types that are forms: a person fills them in, and a handler reads them.

mod one_field;

pub use one_field::OneField;
pub(crate) use one_field::{VALUE, read_map, read_raw};

use antiphon_wire::FormSchema;
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
