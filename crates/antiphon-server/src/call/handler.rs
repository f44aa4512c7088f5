//! Async functions as handlers, and the conversion of their return values to outcomes. Tuples of contents are the result of one tool.

use crate::{
    call::{
        ask::{InputRequired, Reply},
        ctx::Ctx,
    },
    errors::{Error, awaited::AskError},
};
use antiphon_wire::{
    AudioContent, CallToolResult, ContentBlock, GetPromptResult, ImageContent, PromptMessage,
    ReadResourceResult, ResourceContents, ResourceLink, TextContent,
};
use schemars::JsonSchema as HasSchema;
use serde::Serialize;
use serde_json::Value;
use std::future::Future;

/// An async function with the context and, usually, arguments: `async fn provision(ctx: &Ctx, args: Args) -> R`.
///
/// Implemented for functions, for async closures that capture nothing, and for [`with_state`], which adds a value to either
/// of them. No other type needs to implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler here",
    note = "a handler is an `async fn(ctx: &Ctx, args: A) -> R` (tools, prompts, templates) or `async fn(ctx: &Ctx) -> R` (resources)",
    note = "an async closure that captures a value is no handler: write `with_state(value, async |value, ctx: &Ctx, args: A| ..)`",
    note = "its future must be Send: hold no Rc, RefCell or lock guard across an `.await`"
)]
pub trait Handler<'a, A>: Send + Sync + 'static {
    /// The function's output.
    type Output;
    /// The function's future.
    type Future: Future<Output = Self::Output> + Send + 'a;
    /// Calls the function.
    fn call(&self, ctx: &'a Ctx, arguments: A) -> Self::Future;
}

impl<'a, F, Fut, A> Handler<'a, (A,)> for F
where
    F: Fn(&'a Ctx, A) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'a,
{
    type Output = Fut::Output;
    type Future = Fut;
    fn call(&self, ctx: &'a Ctx, (arguments,): (A,)) -> Fut {
        self(ctx, arguments)
    }
}

impl<'a, F, Fut> Handler<'a, ()> for F
where
    F: Fn(&'a Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'a,
{
    type Output = Fut::Output;
    type Future = Fut;
    fn call(&self, ctx: &'a Ctx, (): ()) -> Fut {
        self(ctx)
    }
}

/// A handler with a value. See [`with_state`].
#[derive(Clone, Debug)]
pub struct WithState<S, F> {
    state: S,
    handler: F,
}

/// Returns a handler that receives a clone of this value before the context: a connection pool, an `Arc`, a name.
///
/// An async closure that captures a value lends the value to its future, and cannot be a handler of many calls at once. This
/// function gives each call a clone instead:
///
/// ```
/// use antiphon::{client::Client, memory, server::{Ctx, Server, Tool, offers::with_state}};
/// use std::{collections::BTreeMap, sync::Arc};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Lookup {
///     word: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let words = Arc::new(BTreeMap::from([("one".to_owned(), 1)]));
/// let ask = async |words: Arc<BTreeMap<String, u32>>, ctx: &Ctx, args: Lookup| -> antiphon::Result<String> {
///     if !ctx.confirm(format!("Look up {}?", args.word)).await? {
///         return Ok("Nothing was looked up.".to_owned());
///     }
///     Ok(format!("{:?}", words.get(&args.word)))
/// };
/// let lookup = Tool::new("lookup", with_state(words, ask));
/// let server = Server::builder("words", "1.0").tool(lookup).build()?;
///
/// let client = Client::builder("example", "1.0").on_elicit_form(async |ask| Ok(ask.accept(serde_json::json!({"value": true}))?));
/// let client = memory::connect(server, client);
/// let result = client.call_tool("lookup", serde_json::json!({"word": "one"})).await?;
/// assert_eq!(result.first_text(), Some("Some(1)"));
/// # Ok(()) }
/// ```
///
/// For functions with `#[tool]`, a parameter of the type [`State`](crate::State) does the same.
pub fn with_state<S, F>(state: S, handler: F) -> WithState<S, F> {
    WithState { state, handler }
}

impl<'a, S, F, Fut, A> Handler<'a, (A,)> for WithState<S, F>
where
    S: Clone + Send + Sync + 'static,
    F: Fn(S, &'a Ctx, A) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'a,
{
    type Output = Fut::Output;
    type Future = Fut;
    fn call(&self, ctx: &'a Ctx, (arguments,): (A,)) -> Fut {
        (self.handler)(self.state.clone(), ctx, arguments)
    }
}

impl<'a, S, F, Fut> Handler<'a, ()> for WithState<S, F>
where
    S: Clone + Send + Sync + 'static,
    F: Fn(S, &'a Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'a,
{
    type Output = Fut::Output;
    type Future = Fut;
    fn call(&self, ctx: &'a Ctx, (): ()) -> Fut {
        (self.handler)(self.state.clone(), ctx)
    }
}

/// The outcome of a handler; `T` is the result on the wire.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandlerOutcome<T> {
    /// The final result.
    Complete(T),
    /// Questions or state: the handler is not finished.
    InputRequired(InputRequired),
    /// The handler failed, with a text for the caller.
    UserFacing(String),
    /// The handler ended with a refusal: a person declined a question, or did not answer. The text is for the caller.
    Refused(String),
    /// The handler failed. The text is for the log.
    Failed(String),
    /// The handler failed because of a limit. The text is for the caller.
    OverLimit {
        /// The name of the limit.
        name: &'static str,
        /// The text.
        text: String,
    },
    /// The resource does not exist.
    NotFound,
}

/// The outcome of a handler that asks nothing: as [`HandlerOutcome`], which has the meaning of each case.
#[derive(Debug)]
pub(crate) enum FinalOutcome<T> {
    Complete(T),
    UserFacing(String),
    Refused(String),
    Failed(String),
    OverLimit { name: &'static str, text: String },
    NotFound,
}

impl<T> HandlerOutcome<T> {
    /// Returns the final outcome, or else the questions of a handler that is not finished.
    pub(crate) fn into_final(self) -> Result<FinalOutcome<T>, InputRequired> {
        Ok(match self {
            Self::Complete(result) => FinalOutcome::Complete(result),
            Self::InputRequired(required) => return Err(required),
            Self::UserFacing(text) => FinalOutcome::UserFacing(text),
            Self::Refused(text) => FinalOutcome::Refused(text),
            Self::Failed(cause) => FinalOutcome::Failed(cause),
            Self::OverLimit { name, text } => FinalOutcome::OverLimit { name, text },
            Self::NotFound => FinalOutcome::NotFound,
        })
    }
}

/// A return type of a handler that becomes a `T` on the wire.
///
/// For tools (`T = CallToolResult`): `String`, `&str`, `()`, [`Json`], content blocks, `CallToolResult`, and tuples of up to four parts, of
/// which the first may be a [`Json`]: `(Json<Found>, ResourceLink)`; see [`IntoContent`](crate::IntoContent). For prompts
/// (`GetPromptResult`): `String` (one message of the user), a list of messages, `GetPromptResult`. For resources
/// (`ReadResourceResult`): `ResourceContents`, a list of them, `ReadResourceResult`. Around each: [`Reply`], which may
/// also ask, and `Result` with any error that converts to [`Error`].
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}` here",
    note = "a tool returns String, Json<T>, Vec<ContentBlock>, CallToolResult or a tuple such as (Json<T>, ResourceLink); a prompt String, Vec<PromptMessage> or GetPromptResult; a resource ResourceContents, Vec<ResourceContents> or ReadResourceResult",
    note = "each may stand inside Reply<..> (to ask) and Result<.., E> (to fail)"
)]
pub trait IntoOutcome<T> {
    /// Returns the outcome.
    fn into_outcome(self) -> HandlerOutcome<T>;

    /// Returns the JSON Schema of the structured result, if the type has one: a tool from a function marked `#[tool]`
    /// declares it as its output schema. Default: none.
    fn output_schema() -> Option<Value> {
        None
    }
}

/// Returns the schema of a serialized `T`, always an object.
pub(crate) fn schema_of_result<T: HasSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of a Rust type is not a useful title.
    schema.remove("title");
    // The schema of an unrestricted type is `true`; it must be an object.
    schema.ensure_object();
    schema.to_value()
}

/// A structured result: `structuredContent`, and the same JSON as text for clients that do not read it.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T, R: IntoOutcome<T>> IntoOutcome<T> for Reply<R> {
    fn into_outcome(self) -> HandlerOutcome<T> {
        match self {
            Self::Complete(result) => result.into_outcome(),
            Self::InputRequired(required) => HandlerOutcome::InputRequired(required),
        }
    }

    fn output_schema() -> Option<Value> {
        R::output_schema()
    }
}

impl<T> IntoOutcome<T> for InputRequired {
    fn into_outcome(self) -> HandlerOutcome<T> {
        HandlerOutcome::InputRequired(self)
    }
}

/// An error that a handler may return: any type that converts to [`Error`].
#[diagnostic::on_unimplemented(
    message = "a handler cannot fail with `{Self}`",
    label = "it does not convert to `antiphon::Error`",
    note = "return `antiphon::Result<..>`: `?` takes every `std::error::Error` into it",
    note = "or implement `std::error::Error` for `{Self}` (its text is logged), or `From<{Self}> for antiphon::Error`"
)]
pub trait Failure: Into<Error> {}

#[diagnostic::do_not_recommend]
impl<E: Into<Error>> Failure for E {}

impl<T, R: IntoOutcome<T>, E: Failure> IntoOutcome<T> for Result<R, E> {
    fn into_outcome(self) -> HandlerOutcome<T> {
        let error: Error = match self {
            Ok(result) => return result.into_outcome(),
            Err(error) => error.into(),
        };
        if error.is_resource_not_found() {
            return HandlerOutcome::NotFound;
        }
        match (error.user_facing_text(), error.over_limit()) {
            (Some(text), _) if error.has_cause(|cause| cause.is::<AskError>()) => {
                HandlerOutcome::Refused(text.to_owned())
            }
            (Some(text), _) => HandlerOutcome::UserFacing(text.to_owned()),
            (None, Some((name, text))) => HandlerOutcome::OverLimit { name, text },
            (None, None) => HandlerOutcome::Failed(error.to_string()),
        }
    }

    fn output_schema() -> Option<Value> {
        R::output_schema()
    }
}

macro_rules! complete {
    ($result:ty: $($from:ty, $value:ident => $made:expr;)*) => { $(
        impl IntoOutcome<$result> for $from {
            fn into_outcome(self) -> HandlerOutcome<$result> {
                let $value = self;
                HandlerOutcome::Complete($made)
            }
        }
    )* };
}

complete! { CallToolResult:
    CallToolResult, result => result;
    String, text => CallToolResult::text(text);
    &'static str, text => CallToolResult::text(text);
    (), nothing => { let () = nothing; CallToolResult::new(Vec::new()) };
    ContentBlock, block => CallToolResult::new(vec![block]);
    Vec<ContentBlock>, blocks => CallToolResult::new(blocks);
    ImageContent, image => CallToolResult::new(vec![image.into()]);
    AudioContent, audio => CallToolResult::new(vec![audio.into()]);
    ResourceLink, link => CallToolResult::new(vec![link.into()]);
}

complete! { GetPromptResult:
    GetPromptResult, result => result;
    String, text => GetPromptResult::new(vec![PromptMessage::user(text)]);
    Vec<PromptMessage>, messages => GetPromptResult::new(messages);
}

complete! { ReadResourceResult:
    ReadResourceResult, result => result;
    ResourceContents, contents => ReadResourceResult::new(vec![contents]);
    Vec<ResourceContents>, contents => ReadResourceResult::new(contents);
}

/// A type that can be a structured result.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a structured result",
    label = "not written as JSON, or without a schema",
    note = "derive `serde::Serialize` and `schemars::JsonSchema` for it"
)]
pub trait Structured: Serialize + HasSchema {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + HasSchema> Structured for T {}

impl<T: Structured> IntoOutcome<CallToolResult> for Json<T> {
    fn into_outcome(self) -> HandlerOutcome<CallToolResult> {
        match serde_json::to_value(&self.0) {
            Ok(value) => {
                let mut result = CallToolResult::text(value.to_string());
                result.structured_content = Some(value);
                HandlerOutcome::Complete(result)
            }
            Err(fault) => HandlerOutcome::Failed(format!("the result cannot be written as JSON: {fault}")),
        }
    }

    fn output_schema() -> Option<Value> {
        let schema = schema_of_result::<T>();
        // The schema of an unrestricted type has no content to declare.
        let tells = |keyword: &String| keyword != "$schema";
        schema.as_object().is_some_and(|members| members.keys().any(tells)).then_some(schema)
    }
}

/// A part of a tool's result: a text, an image, a link to a resource, the contents of a resource; a list of blocks; or an `Option` of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a part of a tool's result here",
    note = "a part is a String, ImageContent, AudioContent, ResourceLink, ResourceContents, ContentBlock, Vec<ContentBlock>, or an Option of these; a Json<T> comes first"
)]
pub trait IntoContent {
    /// Adds the blocks of this part.
    fn add_to(self, content: &mut Vec<ContentBlock>);
}

impl<C: IntoContent> IntoContent for Option<C> {
    fn add_to(self, content: &mut Vec<ContentBlock>) {
        if let Some(part) = self {
            part.add_to(content);
        }
    }
}

impl IntoContent for Vec<ContentBlock> {
    fn add_to(mut self, content: &mut Vec<ContentBlock>) {
        content.append(&mut self);
    }
}

macro_rules! one_block {
    ($($part:ty)*) => { $(
        impl IntoContent for $part {
            fn add_to(self, content: &mut Vec<ContentBlock>) {
                content.push(self.into());
            }
        }
    )* };
}

one_block! {
    String &'static str ContentBlock TextContent ImageContent AudioContent ResourceLink ResourceContents
}

/// The first part of a result.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the first part of a tool's result",
    note = "the first part is a Json<T>, String, ImageContent, AudioContent, ResourceLink, ResourceContents, ContentBlock, Vec<ContentBlock>, or an Option of one of these blocks"
)]
pub trait Begins {
    /// Returns the result with this part only.
    fn begin(self) -> HandlerOutcome<CallToolResult>;

    /// Returns the schema of the structured result, if this is one.
    fn schema() -> Option<Value> {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<C: IntoContent> Begins for C {
    fn begin(self) -> HandlerOutcome<CallToolResult> {
        let mut content = Vec::new();
        self.add_to(&mut content);
        HandlerOutcome::Complete(CallToolResult::new(content))
    }
}

/// Its text is the first block, for clients that do not read structured results.
impl<T: Structured> Begins for Json<T> {
    fn begin(self) -> HandlerOutcome<CallToolResult> {
        self.into_outcome()
    }

    fn schema() -> Option<Value> {
        Self::output_schema()
    }
}

macro_rules! tuples {
    ($(($($part:ident)*))*) => { $(
        #[diagnostic::do_not_recommend]
        impl<First: Begins, $($part: IntoContent),*> IntoOutcome<CallToolResult> for (First, $($part),*) {
            fn into_outcome(self) -> HandlerOutcome<CallToolResult> {
                #[allow(non_snake_case, reason = "the variables have the names of their types")]
                let (first, $($part),*) = self;
                let mut outcome = first.begin();
                if let HandlerOutcome::Complete(result) = &mut outcome {
                    $( $part.add_to(&mut result.content); )*
                }
                outcome
            }

            fn output_schema() -> Option<Value> {
                First::schema()
            }
        }
    )* };
}

tuples! { (A) (A B) (A B C) }
