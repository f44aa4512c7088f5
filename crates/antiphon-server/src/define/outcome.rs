//! From the future that a function returns to what a server runs.

use crate::{
    Ctx, Error, HandlerOutcome, IntoOutcome,
    call::{DriveResult, drive},
};
use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::Value;

/// How an `R` becomes a `T`: proof that it does, so that this is asked, and complained of, in one place.
pub struct Outcome<T, R> {
    make: fn(R) -> HandlerOutcome<T>,
    pub(crate) schema: fn() -> Option<Value>,
}

impl<T, R> Clone for Outcome<T, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, R> Copy for Outcome<T, R> {}

/// The function returns `R`.
pub const fn outcome<T, R: IntoOutcome<T>>() -> Outcome<T, R> {
    Outcome { make: R::into_outcome, schema: R::output_schema }
}

/// Runs a handler to its outcome. The one place where that happens.
///
/// No async function, nor an async block: each would hold the handler's future twice.
pub fn run<T, R>(
    ctx: &Ctx,
    outcome: Outcome<T, R>,
    handler: impl Future<Output = R>,
) -> impl Future<Output = HandlerRun<T>> {
    drive(ctx, handler.map(move |value| HandlerOutput { value, make: outcome.make })).map(HandlerRun)
}

/// Runs a handler that takes what resolvers give: one of them may end the call before it.
pub fn run_resolved<T, R>(
    ctx: &Ctx,
    outcome: Outcome<T, R>,
    handler: impl Future<Output = Result<R, Error>>,
) -> impl Future<Output = HandlerRun<T>> {
    drive(ctx, handler.map(move |value| value.map(|value| HandlerOutput { value, make: outcome.make })))
        .map(HandlerRun)
}

/// What running it came to.
pub struct HandlerRun<T>(DriveResult<T>);

/// What a handler returned, with what makes an outcome of it.
struct HandlerOutput<T, R> {
    value: R,
    make: fn(R) -> HandlerOutcome<T>,
}

impl<T, R> IntoOutcome<T> for HandlerOutput<T, R> {
    fn into_outcome(self) -> HandlerOutcome<T> {
        (self.make)(self.value)
    }
}

/// A handler that was called.
pub struct BoxedHandler<T>(pub(crate) BoxFuture<'static, DriveResult<T>>);

/// The one allocation of a call.
pub fn boxed<T>(handler: impl Future<Output = HandlerRun<T>> + Send + 'static) -> BoxedHandler<T> {
    BoxedHandler(Box::pin(handler.map(|HandlerRun(ran)| ran)))
}
