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

/// A resolver from an async function: what fills in a parameter that no caller gives.
///
/// A parameter of a tool, a prompt or a resource that is marked `#[resolve(confirm_delete)]` takes what the resolver of
/// that name gives. It is no argument: clients are not told of it, and what they send for it is not read.
///
/// ```
/// use antiphon::{Form, Result, resolver, server::{Answer, Ctx, Server}, tool};
///
/// #[derive(Clone, serde::Deserialize, Form)]
/// struct Confirm {
///     delete: bool,
/// }
///
/// /// Removes a folder.
/// #[tool]
/// async fn delete_folder(
///     path: String,
///     #[resolve(confirm_delete)] confirm: Answer<Confirm>,
/// ) -> Result<String> {
///     match confirm {
///         Answer::Accept(Confirm { delete: true }) => Ok(format!("{path} is gone.")),
///         _ => Ok(format!("{path} is kept.")),
///     }
/// }
///
/// /// Asks only when the folder is not empty.
/// #[resolver]
/// async fn confirm_delete(
///     ctx: &Ctx,
///     path: &str,
///     #[resolve(files)] files: usize,
/// ) -> Result<Answer<Confirm>> {
///     if files == 0 {
///         return Ok(Answer::Accept(Confirm { delete: true }));
///     }
///     Ok(ctx.elicit(format!("{path} holds {files} files. Delete it?")).outcome().await?)
/// }
///
/// #[resolver]
/// async fn files(path: &str) -> Result<usize> {
///     Ok(if path.ends_with("empty") { 0 } else { 3 })
/// }
///
/// let server = Server::builder("files", "1.0").tool(delete_folder).build();
/// # assert!(server.is_ok());
/// ```
///
/// # What it takes
///
/// | parameter | is |
/// |---|---|
/// | `ctx: &Ctx` | the context of the call, as a scope of the resolver's name |
/// | `path: &str`, `count: u32`, `filter: &Filter` | the argument of that name: a text lent, a copy, any type lent |
/// | `#[resolve(files)] files: usize` | what another resolver gives |
/// | `db: State<Db>` | what the server has |
///
/// The argument is called as the parameter of the tool is, whatever name callers know it by, and is of its type. A tool
/// that lacks it does not compile, nor do resolvers that wait for each other:
///
/// ```text
/// resolver `files` takes `path`, but tool `delete_folder` has no such argument; it has: `folder` `force`
/// resolvers wait for each other: `confirm_delete` -> `files` -> `confirm_delete`
/// ```
///
/// # What it gives
///
/// It returns a `Result`. An error ends the call as the handler's own would, before the handler runs. A value is taken,
/// by the handler and by other resolvers,
///
/// | as | if |
/// |---|---|
/// | `V` | it is `Clone`: each has its own |
/// | `&V`, `Arc<V>` | always: all share it |
/// | `T`, where `V` is `Answer<T>` | it is `Clone`. One who declines or goes away ends the call, which then says who refused what |
///
/// # How it runs
///
/// Each resolver runs at most once a leg, however many take its value, and those that do not wait for each other run
/// together, so that their questions leave in one round. It may ask and run steps. All its keys stand below its name: the
/// question above is `confirm_delete/confirm` on the wire. The name is that of the function; as the keys live on in calls
/// that are under way, a function that is renamed keeps it with `#[resolver(name = "confirm_delete")]`.
///
/// The function stays a function, which tests and other functions call. Beside it is a type of the same name, which is
/// what `#[resolve(..)]` names: an import of the one is an import of both. What a public resolver gives is public too.
#[proc_macro_attribute]
pub fn resolver(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(resolver::expand(attribute.into(), item.into()))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(|error| error.into_compile_error()).into()
}
