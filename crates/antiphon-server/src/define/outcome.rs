//! The path from a function's future to the future that a server runs.

use crate::{
    call::{
        DriveResult,
        ctx::Ctx,
        drive,
        outcome::{HandlerOutcome, IntoOutcome},
    },
    errors::error::Error,
    in_place,
};
use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::Value;
use std::pin::Pin;

/// The conversion of an `R` to a `T`. It proves that the conversion exists, so that the compiler reports a missing one
/// in one place.
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

/// Returns the conversion for a function that returns `R`.
pub const fn outcome<T, R: IntoOutcome<T>>() -> Outcome<T, R> {
    Outcome { make: R::into_outcome, schema: R::output_schema }
}

/// Runs a handler to its outcome. This is the only place that does so. The handler is pinned by the caller, who holds it once:
/// an async function holds its argument and its pinned local.
pub fn run<T, R>(
    ctx: &Ctx,
    outcome: Outcome<T, R>,
    handler: Pin<&mut impl Future<Output = R>>,
) -> impl Future<Output = HandlerRun<T>> {
    drive(ctx, handler.map(move |value| HandlerOutput { value, make: outcome.make })).map(HandlerRun)
}

/// Runs a handler that takes values of resolvers. A failed resolver ends the call before the handler runs.
pub fn run_resolved<T, R>(
    ctx: &Ctx,
    outcome: Outcome<T, R>,
    handler: Pin<&mut impl Future<Output = Result<R, Error>>>,
) -> impl Future<Output = HandlerRun<T>> {
    drive(ctx, handler.map(move |value| value.map(|value| HandlerOutput { value, make: outcome.make })))
        .map(HandlerRun)
}

/// The result of running a handler.
pub struct HandlerRun<T>(DriveResult<T>);

/// The output of a handler, with its conversion to an outcome.
struct HandlerOutput<T, R> {
    value: R,
    make: fn(R) -> HandlerOutcome<T>,
}

impl<T, R> IntoOutcome<T> for HandlerOutput<T, R> {
    fn into_outcome(self) -> HandlerOutcome<T> {
        (self.make)(self.value)
    }
}

/// The boxed future of a handler.
pub struct BoxedHandler<T>(pub(crate) BoxFuture<'static, DriveResult<T>>);

/// Returns the future of a handler in a box, made there.
pub fn boxed<T, F>(make: impl FnOnce() -> F) -> BoxedHandler<T>
where
    F: Future<Output = HandlerRun<T>> + Send + 'static,
{
    BoxedHandler(Box::into_pin(in_place::boxed(|| make().map(|HandlerRun(ran)| ran))))
}
