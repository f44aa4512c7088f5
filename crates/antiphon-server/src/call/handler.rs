//! Async functions as handlers.

use crate::call::ctx::Ctx;
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
