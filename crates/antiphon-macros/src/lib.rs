//! The derives of `antiphon`, which re-exports them: depend on that crate, not on this one.

mod define;
mod form;
mod resolver;

use proc_macro::TokenStream;

/// A form from a struct, or the choices of one from an enum without data.
///
/// The struct's fields, in their order, are what a person fills in; serde reads the answer into it. So both are derived:
///
/// ```
/// use antiphon::server::Ask;
///
/// #[derive(serde::Deserialize, antiphon::Form)]
/// struct Place {
///     /// Close to your users.
///     #[form(title = "Region", default = "eu-west-1", min_length = 2, max_length = 20)]
///     region: String,
///     #[form(format = "email")]
///     contact: Option<String>,
///     #[form(min = 1, max = 5)]
///     replicas: u8,
///     size: Size,
///     #[form(min_items = 1)]
///     zones: Vec<Zone>,
///     #[form(default = true)]
///     backup: bool,
/// }
///
/// #[derive(serde::Deserialize, antiphon::Form)]
/// #[serde(rename_all = "lowercase")]
/// enum Size {
///     #[form(title = "Small, 5 EUR a month")]
///     Small,
///     Large,
/// }
///
/// #[derive(serde::Deserialize, antiphon::Form)]
/// enum Zone {
///     A,
///     B,
/// }
///
/// let ask = Ask::of::<Place>("place", "Where should the database live?");
/// # assert_eq!(ask.key(), "place");
/// ```
///
/// # Fields
///
/// | type | in the form | attributes |
/// |---|---|---|
/// | `String` | text | `min_length`, `max_length`, `format`, `default = ".."` |
/// | `u8` .. `u64`, `i8` .. `i64`, `usize`, `isize` | a whole number | `min`, `max`, `default = 1` |
/// | `f32`, `f64` | a number | `min`, `max`, `default = 0.5` |
/// | `bool` | yes or no | `default = true` |
/// | an enum that derives `Form` | one of its choices | `default = "value"` |
/// | `Vec` of such an enum | several of its choices | `min_items`, `max_items`, `default = ["value"]` |
/// | `Option` of any of these | the same, may be left empty | the same |
///
/// Whole numbers of up to 32 bits, and all without a sign, are bounded by their type where `min` or `max` do not bound
/// them: an answer that fits the form should fit the type. Types are known by the last part of their path: an alias of
/// `String` is not seen through.
///
/// # Attributes
///
/// All stand in `#[form(..)]`.
///
/// | attribute | on | meaning |
/// |---|---|---|
/// | `title = ".."` | every field, a variant | what people read instead of the name |
/// | `description = ".."` | every field | what to fill in; without it, the field's doc comment |
/// | `default = ..` | every field | filled in beforehand; the field need not be |
/// | `min = 1`, `max = 5` | numbers | the least and the most allowed |
/// | `min_length = 2`, `max_length = 20` | text | in characters |
/// | `format = ".."` | text | `email`, `uri`, `date` (2026-07-28) or `date-time` (2026-07-28T12:00:00Z) |
/// | `min_items = 1`, `max_items = 3` | `Vec` | the fewest and the most choices |
/// | `not_secret` | every field | the name sounds like a secret, and is none |
///
/// The doc comment of the struct is not sent: what is asked says the message.
///
/// # serde
///
/// The names are those that serde reads: `rename`, `rename_all`, `default` and `skip` are honoured, also where they are
/// only for `deserialize`. What changes the shape of the answer (`flatten`, `with`, `tag`, `from` ..) is refused.
///
/// # Secrets
///
/// > Servers **MUST NOT** use form mode elicitation to request sensitive information
///
/// A field with `password`, `token`, `secret`, `api_key`, `card` or `cvv` in its name does not compile: `Ask::url` leads
/// the person to a page of yours instead.
#[proc_macro_derive(Form, attributes(form))]
pub fn derive_form(input: TokenStream) -> TokenStream {
    form::expand(input.into()).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// A tool from an async function.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(define::function(define::Kind::Tool, attribute.into(), item.into()))
}

/// A prompt from an async function.
#[proc_macro_attribute]
pub fn prompt(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(define::function(define::Kind::Prompt, attribute.into(), item.into()))
}

/// A resource, or a template of some, from an async function.
#[proc_macro_attribute]
pub fn resource(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(define::function(define::Kind::Resource, attribute.into(), item.into()))
}

/// Tools, prompts and resources from the methods of a type.
#[proc_macro_attribute]
pub fn server(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(define::service(attribute.into(), item.into()))
}

/// A resolver from an async function.
#[proc_macro_attribute]
pub fn resolver(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(resolver::expand(attribute.into(), item.into()))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(|error| error.into_compile_error()).into()
}
