//! From the future that a function returns to what a server runs.

use crate::server::{
    Ctx, HandlerOutcome, IntoOutcome,
    round::{Ran, drive_with},
};
use futures_util::future::BoxFuture;
use serde_json::Value;

/// A handler that was called.
pub struct Running<T>(pub(super) BoxFuture<'static, Ran<T>>);

/// What one leg of a handler came to.
pub struct Handled<T>(Ran<T>);

/// How an `R` becomes a `T`: proof that it does, so that this is asked, and complained of, in one place.
pub struct Outcome<T, R> {
    make: fn(R) -> HandlerOutcome<T>,
    pub(super) schema: fn() -> Option<Value>,
}

impl<T, R> Clone for Outcome<T, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, R> Copy for Outcome<T, R> {}

/// The function returns `R`.
pub fn outcome<T, R: IntoOutcome<T>>() -> Outcome<T, R> {
    Outcome { make: R::into_outcome, schema: R::output_schema }
}

/// Runs a handler for one leg. The one place where that happens.
pub async fn run<T, R>(ctx: &Ctx, outcome: Outcome<T, R>, handler: impl Future<Output = R>) -> Handled<T> {
    Handled(drive_with(ctx, handler, outcome.make).await)
}

/// The one allocation of a call.
pub fn boxed<T: 'static>(handler: impl Future<Output = Handled<T>> + Send + 'static) -> Running<T> {
    Running(Box::pin(async move { handler.await.0 }))
}
