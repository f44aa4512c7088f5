//! Async functions as handlers.

use crate::Ctx;
use std::future::Future;

/// An async function with the context and, usually, arguments: `async fn provision(ctx: &Ctx, args: Args) -> R`.
///
/// Implemented for functions and async closures. No other type needs to implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler here",
    note = "a handler is an `async fn(ctx: &Ctx, args: A) -> R` (tools, prompts, templates) or `async fn(ctx: &Ctx) -> R` (resources)",
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
