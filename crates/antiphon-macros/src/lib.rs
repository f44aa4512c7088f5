//! The macros of `antiphon`, which re-exports them: depend on that crate, not on this one.

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
/// A field with `password`, `token`, `secret`, `api_key`, `card` or `cvv` in its name does not compile: `ctx.elicit_url`
/// leads the person to a page of yours instead, and `Ask::url` where one asks by hand.
#[proc_macro_derive(Form, attributes(form))]
pub fn derive_form(input: TokenStream) -> TokenStream {
    form::expand(input.into()).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// A tool from an async function: its signature is the input schema, its doc comment the description.
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
/// /// Order a database.
/// #[tool(destructive = false, idempotent, version = 3, answer_within = "3d")]
/// async fn order_database(
///     ctx: &Ctx,
///     State(db): State<Db>,
///     /// What to call it.
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
/// The function stays a function: `.tool(order_database)` takes it by its path, and a test calls and awaits it like any
/// other. A method is a tool in an impl with [`#[server]`](macro@server).
///
/// # Attributes
///
/// | attribute | meaning |
/// |---|---|
/// | `name = ".."` | what clients call it; without it, the function's name. 1 to 128 ASCII letters, digits, `_`, `-`, `.` |
/// | `title = ".."` | what people read instead of the name |
/// | `description = ".."` | what it does, for the model; without it, the doc comment |
/// | `read_only`, `destructive`, `idempotent`, `open_world` | hints: alone or `= true` it is so, `= false` it is not, absent nothing is said |
/// | `version = 3` | sealed into its state. Default 0 |
/// | `on_version = "reject"` | what becomes of a call that another version has begun: `"keep"` keeps what still fits, which is the default; `"reject"` refuses it; with `"restart"` it begins again by itself |
/// | `added("audit")` | these steps are new, and run before steps that another version has recorded |
/// | `rename("create", "create_db")` | a step that another version has recorded has a new key |
/// | `forget("warm_up", "ping")` | these recorded steps are no more, or these questions: that does not end the call |
/// | `keep_stale("quote")` | what these steps came to counts though an answer before them has changed |
/// | `lenient_replay` | recorded steps that are not come to any more are a warning in the log, not the end of the call |
/// | `answer_within = "3d"` | how long the person may take for one round: a whole number and one of `s`, `m`, `h`, `d`, `w`. Default: the server's |
/// | `needs(form, url)` | what will surely be asked, of `form`, `url`, `sampling`, `sampling_tools`, `roots`: a client without it is refused before the first line |
///
/// `added`, `rename`, `forget` and `keep_stale` may be there several times, and are done in their order. In scopes, a step's key is
/// its path: `alice/create`. With numbers, `charge` stands for all of `charge#0`, `charge#1` and so on.
///
/// # Parameters
///
/// At most sixteen, in any order.
///
/// | parameter | what it is |
/// |---|---|
/// | `ctx: &Ctx` | the context of this leg; may be left out |
/// | `db: State<Db>`, `State(db): State<Db>` | what the server was given with `.state(..)`: no caller sees or sets it |
/// | `name: String`, a number, a `bool`, a `Vec`, any owned type with `serde::Deserialize` and `schemars::JsonSchema` | an argument. Its doc comment is its description |
/// | `name: &str` | an argument, read as a text |
/// | `Option` of these | the same, may be left out |
///
/// Arguments are checked against the schema before the function runs. `42.0` is taken for a whole number; what was not
/// asked for is passed over.
///
/// # `#[arg(..)]`
///
/// | attribute | on | meaning |
/// |---|---|---|
/// | `name = ".."` | every argument | what callers write; without it, the parameter's name |
/// | `title = ".."`, `description = ".."` | every argument | for people; a description overrules the doc comment |
/// | `default = ..` | every argument | what it is if it is left out: a text, a number, `true`, `false` or a list of texts |
/// | `min = 1`, `max = 5` | numbers | the least and the most allowed |
/// | `min_length = 1`, `max_length = 20` | texts | in characters |
/// | `min_items = 1`, `max_items = 3` | lists | the fewest and the most |
/// | `header = "Region"` | texts, whole numbers, yes or no | over HTTP, clients repeat it in `Mcp-Param-Region`, and a call in which the two differ is refused |
///
/// > Server developers **SHOULD NOT** mark sensitive parameters (passwords, API keys, tokens, PII) with
/// > `x-mcp-header`, as header values are visible to network intermediaries.
///
/// Types are known by the last part of their path. On a type that is not known so, every attribute may stand; what does
/// not fit it is told when the server is built.
///
/// # Result
///
/// Any `antiphon::server::IntoOutcome<CallToolResult>`: `String`, `&'static str`, `()`, `Json<T>`, content blocks,
/// `CallToolResult`; in `Reply<..>`, to ask by hand; in `Result<.., E>`, whose `E` need only implement `Display`. With
/// `Json<T>`, also inside the others, the output schema is that of `T`.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(define::function(define::Kind::Tool, attribute.into(), item.into()))
}

/// A prompt from an async function: what a person chooses to have said to the model.
///
/// ```
/// use antiphon::{prompt, server::Server};
///
/// /// Asks for a review.
/// #[prompt(title = "Review")]
/// async fn review(
///     /// What to review.
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
/// It is to prompts what [`#[tool]`](macro@tool) is to tools, and takes `ctx: &Ctx` and `State<T>` in the same way.
///
/// | attribute | meaning |
/// |---|---|
/// | `name`, `title`, `description`, `version`, `on_version`, `added`, `rename`, `forget`, `keep_stale`, `lenient_replay`, `answer_within`, `needs` | as on a tool |
/// | `#[arg(name = "..", title = "..", description = "..", default = "..")]` | on an argument, as there |
///
/// Arguments are texts: `String`, `&str` or `Option<String>`. The result is any `IntoOutcome<GetPromptResult>`: a
/// `String` (one message of the user), `Vec<PromptMessage>`, `GetPromptResult`, also in `Reply<..>` and `Result<.., E>`.
#[proc_macro_attribute]
pub fn prompt(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(define::function(define::Kind::Prompt, attribute.into(), item.into()))
}

/// A resource from an async function; with variables in its URI, a template of resources.
///
/// ```
/// use antiphon::{resource, server::Server, wire::ResourceContents};
///
/// /// How the application is set up.
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
/// let server = Server::builder("reports", "1.0").resource(config).template(report).build();
/// # assert!(server.is_ok());
/// ```
///
/// It is to resources what [`#[tool]`](macro@tool) is to tools, and takes `ctx: &Ctx` and `State<T>` in the same way.
///
/// | attribute | meaning |
/// |---|---|
/// | `"report://{year}/{id}"` | the URI; stands first |
/// | `name = ".."` | for programs; without it, the function's name |
/// | `mime_type = ".."` | the media type |
/// | `title`, `description`, `version`, `on_version`, `added`, `rename`, `forget`, `keep_stale`, `lenient_replay`, `answer_within`, `needs` | as on a tool |
///
/// Each variable of the URI is a parameter of that name, `String` or `&str`, percent-decoded; it stands for one or more
/// characters other than `/`. A decoded value may well hold `/` and `..`, from `%2F`: a function that makes a path of it
/// must check. The result is any `IntoOutcome<ReadResourceResult>`: `ResourceContents`, a `Vec` of them,
/// `ReadResourceResult`, also in `Reply<..>` and `Result<.., E>`.
#[proc_macro_attribute]
pub fn resource(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(define::function(define::Kind::Resource, attribute.into(), item.into()))
}

/// Tools, prompts and resources from the methods of a type, which share its value.
///
/// ```
/// use antiphon::{server, server::Server, wire::ResourceContents};
/// use std::{collections::BTreeMap, sync::Mutex};
///
/// #[derive(Default)]
/// struct Notes {
///     texts: Mutex<BTreeMap<String, String>>,
/// }
///
/// #[server]
/// impl Notes {
///     /// Keeps a note.
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
///         self.texts.lock().expect("nobody panics with the notes in hand")
///     }
/// }
///
/// let server = Server::builder("notes", "1.0").with(Notes::default()).build();
/// # assert!(server.is_ok());
/// ```
///
/// A marked method takes `&self`, for calls run at the same time, or no `self` at all. All else is as on functions:
/// [`#[tool]`](macro@tool), [`#[prompt]`](macro@prompt), [`#[resource]`](macro@resource). Methods without a mark stay
/// what they are, and marked ones can be called like any other. The marks in it need no import: `#[server]` reads them.
/// The impl may be generic: `impl<D: Db> Files<D>`. A type has one such impl, and is `Send`, `Sync` and `'static`.
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
/// | `&V`, `Arc<V>` | always: all share it. `&str` of a `String` too |
/// | `T`, where `V` is `Answer<T>` | it is `Clone`. One who declines or goes away ends the call, which then says who refused what |
///
/// # How it runs
///
/// Each resolver runs at most once a leg, however many take its value, and those that do not wait for each other run
/// together, so that their questions leave in one round. It may ask and run steps. All its keys stand below its name: the
/// question above is `confirm_delete/confirm` on the wire. The name is that of the function; as the keys live on in calls
/// that are under way, a function that is renamed keeps it with `#[resolver(name = "confirm_delete")]`.
///
/// It asks with `await`. A function that takes the value may also return questions, as an `InputRequired` or a `Reply<..>`.
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
