//! The macros of `antiphon`. The crate `antiphon` re-exports them, so depend on that crate.

mod define;
mod errors;
mod form;
mod resolver;

use proc_macro::TokenStream;

/// Derives a form from a struct, or the choices of a field from an enum without data.
///
/// A person fills in the fields of the struct, in their order. serde reads the answer into the struct, so derive
/// `Deserialize` too:
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
/// # Types
///
/// | type | field | attributes |
/// |---|---|---|
/// | `String` | text | `min_length`, `max_length`, `format`, `default = ".."` |
/// | `u8` .. `u64`, `i8` .. `i64`, `usize`, `isize` | a whole number | `min`, `max`, `default = 1` |
/// | `f32`, `f64` | a number | `min`, `max`, `default = 0.5` |
/// | `bool` | yes or no | `default = true` |
/// | an enum that derives `Form` | one choice | `default = "value"` |
/// | `Vec` of such an enum | several choices | `min_items`, `max_items`, `default = ["value"]` |
/// | `Option` of one of these | the same field, optional | the same |
///
/// If a whole number has no `min` or `max`, the form uses the bounds of its type, for types of up to 32 bits and for 0
/// as the minimum of unsigned types. An answer that is valid for the form then also fits the type. The macro recognizes a
/// type by the last segment of its path, so it does not recognize an alias of `String`.
///
/// # Attributes
///
/// The attributes are in `#[form(..)]`.
///
/// | attribute | on | meaning |
/// |---|---|---|
/// | `title = ".."` | every field, a variant | the label, instead of the name |
/// | `description = ".."` | every field | the description. Default: the field's doc comment |
/// | `default = ..` | every field | the prefilled value; the field is then optional |
/// | `min = 1`, `max = 5` | numbers | the minimum and the maximum |
/// | `min_length = 2`, `max_length = 20` | text | the minimum and maximum length, in characters |
/// | `format = ".."` | text | `email`, `uri`, `date` (2026-07-28) or `date-time` (2026-07-28T12:00:00Z) |
/// | `min_items = 1`, `max_items = 3` | `Vec` | the minimum and maximum number of choices |
/// | `not_secret` | every field | permits a name that suggests a secret |
///
/// The doc comment of the struct is not sent: the message of the question explains the form.
///
/// # serde
///
/// The names are the names that serde reads: the macro supports `rename`, `rename_all`, `default` and `skip`, also if
/// they are only for `deserialize`. It rejects attributes that change the shape of the answer, such as `flatten`,
/// `with`, `tag` and `from`.
///
/// # Secrets
///
/// > Servers **MUST NOT** use form mode elicitation to request sensitive information
///
/// A field with `password`, `token`, `secret`, `api_key`, `card` or `cvv` in its name does not compile. Use
/// `ctx.elicit_url`, or `Ask::url` by hand, to send the person to a page of your own.
#[proc_macro_derive(Form, attributes(form))]
pub fn derive_form(input: TokenStream) -> TokenStream {
    form::expand(input.into()).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Defines a tool from an async function: the parameters are the input schema, and the doc comment is the description.
///
/// ```
/// use antiphon::{
///     server::{Ctx, Json, Server, State},
///     tool,
/// };
///
/// struct Db;
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Ordered {
///     id: String,
/// }
///
/// /// Orders a database.
/// #[tool(destructive = false, idempotent, version = 3, answer_timeout = "3d")]
/// async fn order_database(
///     ctx: &Ctx,
///     State(db): State<Db>,
///     /// The name of the database.
///     #[arg(min_length = 1, max_length = 20)]
///     name: String,
///     #[arg(default = 1, min = 1, max = 5)] replicas: u8,
///     #[arg(header = "Region")] region: Option<String>,
/// ) -> antiphon::Result<Json<Ordered>> {
///     # let _ = (ctx, db, region);
///     Ok(Json(Ordered { id: format!("{name}-{replicas}") }))
/// }
///
/// let server = Server::builder("cloud", "1.0").state(Db).tool(order_database).build();
/// # assert!(server.is_ok());
/// ```
///
/// The function stays a function: pass its path to `.tool(order_database)`, and call it in tests as any other function.
/// To define a tool from a method, use [`#[server]`](macro@server).
///
/// # Attributes
///
/// | attribute | meaning |
/// |---|---|
/// | `name = ".."` | the name for clients: 1 to 128 ASCII letters, digits, `_`, `-` and `.`. Default: the function's name |
/// | `title = ".."` | the label for people |
/// | `description = ".."` | the description for the model. Default: the doc comment |
/// | `icon = "https://.."`, `icon = large()` | an icon: its URL, or an expression for an `Icon`. It may be repeated |
/// | `meta = json!({"com.example/unit": "EUR"})` | the `_meta`: an expression for an object |
/// | `returns = Found` | the type of the structured result of a `CallToolResult` that is made by hand: the output schema |
/// | `ui = "ui://app/view.html"` | the view that hosts show beside the result: a resource of the server, without which the server does not build |
/// | `ui_visibility(app)` | who may call the tool, of `model` and `app`. Default: both |
/// | `read_only`, `destructive`, `idempotent`, `open_world` | hints for clients. Alone or with `= true` the hint is true, with `= false` it is false, and without the attribute it is not sent |
/// | `version = 3` | the version of the tool, a part of the sealed state. Default: 0 |
/// | `on_version = "reject"` | the treatment of calls that another version has begun: `"keep"` keeps the recorded entries that are still valid, `"reject"` rejects the call, `"restart"` begins it again. Default: `"keep"` |
/// | `added("audit")` | new steps, which run before recorded steps of another version |
/// | `rename("create", "create_db")` | the new key of a step that another version has recorded |
/// | `forget("warm_up", "ping")` | recorded steps or questions that the tool no longer has; they do not end the call |
/// | `keep_stale("quote")` | steps whose outcome stays valid although an answer before them has changed |
/// | `single_use`, `write_ahead`, `rerun_after_crash` | protects each state, or each step, against a second run: needs a store of calls |
/// | `task = "optional"` | whether calls become tasks, which go on while no client is connected: `"never"`, `"optional"` (where the tool awaits `ctx.into_task()`, or after `promote_after`), `"required"` (from their beginning). Default: `"never"` |
/// | `promote_after = "10s"` | the time after which a call of an optional task becomes a task by itself. Default: never |
/// | `lenient_replay` | logs a warning for recorded steps that the tool does not reach, instead of ending the call |
/// | `answer_timeout = "3d"` | the time that a person has for one round: a whole number and a unit, one of `s`, `m`, `h`, `d`, `w`. Default: the server's |
/// | `timeout = "30s"` | the maximum time of the function in one leg, without the time of people. Default: the server's |
/// | `scopes("orders:write")` | the OAuth scopes that the access token must have |
/// | `approved_by(is_manager)` | a function from a `&Principal` to a `bool`: the callers whose answers are accepted |
/// | `additional = "ignore"` | accepts and ignores arguments that the tool does not have. Default: `"refuse"` |
/// | `visible_if(is_admin)` | a function from a `&CallerInfo` to a `bool`: the callers for whom the tool exists |
/// | `listed_as(translated)` | a function of a `&CallerInfo` and a `&mut wire::Tool`, which changes the texts in the list |
/// | `needs(form, url)` | the questions that the tool always asks, of `form`, `url`, `sampling`, `sampling_tools`, `roots`. A client that does not support them is rejected before the tool runs |
///
/// `added`, `rename`, `forget` and `keep_stale` may be repeated, and apply in their order. In scopes, the key of a step
/// is its path: `alice/create`. With numbers, `charge` means all of `charge#0`, `charge#1` and so on.
///
/// # Parameters
///
/// A tool has at most sixteen parameters, in any order.
///
/// | parameter | value |
/// |---|---|
/// | `ctx: &Ctx` | the context of this leg; optional |
/// | `db: State<Db>`, `State(db): State<Db>` | a value that the server has from `.state(..)`; callers cannot see or set it |
/// | `name: String`, a number, a `bool`, a `Vec`, any owned type with `serde::Deserialize` and `schemars::JsonSchema` | an argument; the doc comment is its description |
/// | `name: &str` | an argument that is a text |
/// | `Option` of one of these | the same argument, optional |
///
/// The server validates the arguments against the schema before the function runs. It accepts `42.0` as a whole number,
/// and refuses arguments that the tool does not have, by name, unless the tool says `additional = "ignore"`.
///
/// # `#[arg(..)]`
///
/// | attribute | on | meaning |
/// |---|---|---|
/// | `name = ".."` | every argument | the name for callers. Default: the parameter's name |
/// | `title = ".."`, `description = ".."` | every argument | texts for people; `description` replaces the doc comment |
/// | `default = ..` | every argument | the value of an absent argument: a text, a number, `true`, `false` or a list of texts |
/// | `min = 1`, `max = 5` | numbers | the minimum and the maximum |
/// | `min_length = 1`, `max_length = 20` | texts | the minimum and maximum length, in characters |
/// | `min_items = 1`, `max_items = 3` | lists | the minimum and maximum number of items |
/// | `flatten` | a struct with named fields | its fields are arguments. It stands alone |
/// | `header = "Region"` | texts, whole numbers, booleans | the header in which clients repeat the argument over HTTP: `Mcp-Param-Region`. The server rejects a call whose header differs from the argument |
///
/// > Server developers **SHOULD NOT** mark sensitive parameters (passwords, API keys, tokens, PII) with
/// > `x-mcp-header`, as header values are visible to network intermediaries.
///
/// The macro recognizes a type by the last segment of its path. An argument of an unknown type may have every attribute;
/// building the server then fails if an attribute does not fit the schema of the type.
///
/// # Result
///
/// The result is any `antiphon::server::offers::IntoOutcome<CallToolResult>`: `String`, `&'static str`, `()`, `Json<T>`,
/// content blocks or `CallToolResult`; a tuple of up to four parts, such as `(Json<T>, ResourceLink)`; any of these in `Reply<..>`, to ask
/// by hand, or in `Result<.., E>`, where `E` converts to `antiphon::Error`. With `Json<T>`, also inside of the others, the tool has the output schema of `T`.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(define::function(define::Kind::Tool, attribute.into(), item.into()))
}

/// Defines a prompt from an async function. A person chooses a prompt, and its messages are sent to the model.
///
/// ```
/// use antiphon::{prompt, server::Server};
///
/// /// Asks for a review.
/// #[prompt(title = "Review")]
/// async fn review(
///     /// The code to review.
///     code: String,
///     #[arg(title = "Language", default = "Rust")] language: &str,
///     tone: Option<String>,
/// ) -> String {
///     let tone = tone.unwrap_or_else(|| "friendly".to_owned());
///     format!("Review this {language} code in a {tone} tone:\n\n{code}")
/// }
///
/// let server = Server::builder("reviews", "1.0").prompt(review).build();
/// # assert!(server.is_ok());
/// ```
///
/// Parameters `ctx: &Ctx` and `State<T>` are as on [`#[tool]`](macro@tool).
///
/// | attribute | meaning |
/// |---|---|
/// | `name`, `title`, `description`, `icon`, `meta`, `version`, `on_version`, `added`, `rename`, `forget`, `keep_stale`, `lenient_replay`, `single_use`, `write_ahead`, `rerun_after_crash`, `answer_timeout`, `scopes`, `approved_by`, `visible_if`, `listed_as`, `needs` | as on a tool |
/// | `#[arg(name = "..", title = "..", description = "..", default = "..")]` | as on an argument of a tool |
/// | `#[arg(complete = languages)]` | suggests values while the argument is typed: an `async fn(typed: Completing) -> Vec<String>`, which may have a second parameter `db: State<Db>`; or a method, as `complete = self.languages` |
///
/// The type of an argument is `String`, `&str` or `Option<String>`. The result is any `IntoOutcome<GetPromptResult>`: a
/// `String` (one message of the user), `Vec<PromptMessage>` or `GetPromptResult`, also in `Reply<..>` and
/// `Result<.., E>`.
#[proc_macro_attribute]
pub fn prompt(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(define::function(define::Kind::Prompt, attribute.into(), item.into()))
}

/// Defines a resource from an async function, or a resource template of RFC 6570 if the URI has variables.
///
/// ```
/// use antiphon::{resource, server::Server, wire::content::ResourceContents};
///
/// /// The settings of the application.
/// #[resource("config://app", mime_type = "application/json")]
/// async fn config() -> ResourceContents {
///     ResourceContents::text("config://app", "{}")
/// }
///
/// /// One report.
/// #[resource("report://{year}/{id}")]
/// async fn report(year: String, id: &str) -> antiphon::Result<ResourceContents> {
///     if id == "0" {
///         return Err(antiphon::Error::resource_not_found());
///     }
///     Ok(ResourceContents::text(format!("report://{year}/{id}"), "All is well."))
/// }
///
/// /// The log of a service.
/// #[resource("log://{service}{/path*}{?limit}")]
/// async fn log(service: &str, path: Vec<String>, limit: Option<String>) -> ResourceContents {
///     let lines = limit.as_deref().unwrap_or("100");
///     ResourceContents::text(format!("log://{service}"), format!("The last {lines} lines of {}.", path.join("/")))
/// }
///
/// let server = Server::builder("reports", "1.0").resource(config).template(report).template(log).build();
/// # assert!(server.is_ok());
/// ```
///
/// Parameters `ctx: &Ctx` and `State<T>` are as on [`#[tool]`](macro@tool).
///
/// | attribute | meaning |
/// |---|---|
/// | `"report://{year}/{id}"` | the URI, which must be the first value |
/// | `name = ".."` | the name for programs. Default: the function's name |
/// | `mime_type = ".."` | the media type of the contents |
/// | `size = 1024` | the size in bytes; not of a template |
/// | `audience(user, assistant)`, `priority = 0.5`, `last_modified = "2026-11-28T12:00:00Z"` | the annotations |
/// | `cache = CacheHint::private(MINUTE)` | how long clients may cache what was read: an expression |
/// | `#[arg(complete = days)]` | suggests values of a variable, as on a prompt |
/// | `title`, `description`, `icon`, `meta`, `version`, `on_version`, `added`, `rename`, `forget`, `keep_stale`, `lenient_replay`, `single_use`, `write_ahead`, `rerun_after_crash`, `answer_timeout`, `scopes`, `approved_by`, `visible_if`, `listed_as`, `needs` | as on a tool |
///
/// Each variable of the URI is a parameter of the same name:
///
/// | variable | type | values that it matches |
/// |---|---|---|
/// | `{id}`, `{/id}`, `{.id}`, `{x,y}` | `String` or `&str` | one or more characters other than `/`, `?` and `#` |
/// | `{+path}`, `{#path}` | `String` or `&str` | one or more characters, also `/` |
/// | `{/path*}`, `{.kind*}`, `{names*}` | `Vec<String>` | one or more values |
/// | `{?q,limit}`, `{&q}`, `{;q}` | `Option<String>`, or `String` or `&str` for one that must be there | parameters in any order |
/// | `{?tag*}` | `Vec<String>` | a parameter that may be missing, or occur several times |
///
/// A value is percent-decoded. A decoded value can contain `/` and `..`, also from `%2F`: a function that uses the value as a
/// path must check it. A URI with a parameter that the template does not name does not match. Prefixes, such as `{id:3}`, do
/// not compile. The result is any `IntoOutcome<ReadResourceResult>`:
/// `ResourceContents`, a `Vec` of them or `ReadResourceResult`, also in `Reply<..>` and `Result<.., E>`.
#[proc_macro_attribute]
pub fn resource(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(define::function(define::Kind::Resource, attribute.into(), item.into()))
}

/// Defines the tools, prompts and resources of a type from its methods, which share one value.
///
/// ```
/// use antiphon::{server, server::Server, wire::content::ResourceContents};
/// use std::{collections::BTreeMap, sync::Mutex};
///
/// #[derive(Default)]
/// struct Notes {
///     texts: Mutex<BTreeMap<String, String>>,
/// }
///
/// #[server]
/// impl Notes {
///     /// Stores a note.
///     #[tool(idempotent)]
///     async fn keep(&self, name: String, text: String) {
///         self.lock().insert(name, text);
///     }
///
///     /// One note.
///     #[resource("note://{name}")]
///     async fn note(&self, name: String) -> antiphon::Result<ResourceContents> {
///         let text = self.lock().get(&name).cloned().ok_or_else(antiphon::Error::resource_not_found)?;
///         Ok(ResourceContents::text(format!("note://{name}"), text))
///     }
///
///     fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
///         self.texts.lock().expect("the lock is not poisoned")
///     }
/// }
///
/// let server = Server::builder("notes", "1.0").with(Notes::default()).build();
/// # assert!(server.is_ok());
/// ```
///
/// A marked method takes `&self`, because calls run concurrently, or no `self`. The attributes of the marks are as on
/// functions: [`#[tool]`](macro@tool), [`#[prompt]`](macro@prompt), [`#[resource]`](macro@resource). `#[server]` reads
/// the marks, so they need no import. Marked methods can still be called, and methods without a mark are unchanged. The
/// impl may be generic: `impl<D: Db> Files<D>`. A type has at most one impl with `#[server]`, and must be `Send`,
/// `Sync` and `'static`.
#[proc_macro_attribute]
pub fn server(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(define::service(attribute.into(), item.into()))
}

#[doc = include_str!("resolver.md")]
#[proc_macro_attribute]
pub fn resolver(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(resolver::expand(attribute.into(), item.into()))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(|error| error.into_compile_error()).into()
}
