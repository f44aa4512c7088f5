//! The values of resolvers, and the parameters that receive them.

use crate::{
    call::{
        ctx::{Answer, Ctx},
        outcome::Failure,
    },
    errors::{ask_error::AskError, error::Error},
};
use std::sync::Arc;

/// The return type of a resolver: a `Result`.
#[diagnostic::on_unimplemented(
    message = "a resolver returns a `Result`, not `{Self}`",
    label = "no `Result`",
    note = "write `antiphon::Result<{Self}>`, or a `Result` with an error of your own"
)]
pub trait Returned {
    /// The type of the value.
    type Value;
    /// Returns the value, or the error that ends the call.
    ///
    /// # Errors
    /// The error of the resolver.
    fn returned(self) -> Result<Self::Value, Error>;
}

impl<V, E: Failure> Returned for Result<V, E> {
    type Value = V;

    fn returned(self) -> Result<V, Error> {
        self.map_err(Into::into)
    }
}

/// Returns the value of a resolver that has finished.
///
/// # Errors
/// The error of the resolver.
pub fn settle<R: Returned>(returned: R) -> Result<R::Value, Error> {
    returned.returned()
}

/// The origin of a value.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The context of the call.
    pub(crate) ctx: &'a Ctx,
    /// The resolver's name.
    pub(crate) name: &'static str,
}

impl Source<'_> {
    /// Returns the refusal of this resolver's question, if it asked one.
    fn refused(self, otherwise: fn(&str, &str) -> AskError) -> Error {
        let scope = self.ctx.scope(self.name);
        let asked = self.ctx.leg_runtime().refused_below(scope.scope_prefix());
        asked.unwrap_or_else(|| otherwise(self.name, "")).into()
    }
}

/// A parameter that receives a resolver's value: the value itself, if it is `Clone`, the shared value, or the value
/// that a person accepted.
#[diagnostic::on_unimplemented(
    message = "the resolver gives `{V}`, which is not taken as `{Self}`",
    label = "wrong type, or a copy of a type that is not `Clone`",
    note = "take `{V}` if it is `Clone`, `&{V}`, or `Arc<{V}>`; of an `Answer<T>` also `T`, and a decline then ends the call"
)]
pub trait FromValue<V>: Sized {
    /// Converts the value.
    ///
    /// # Errors
    /// If the person refused a value that must be accepted.
    fn from_value(value: &Arc<V>, from: Source<'_>) -> Result<Self, Error>;
}

impl<V: Clone> FromValue<V> for V {
    fn from_value(value: &Arc<V>, _: Source<'_>) -> Result<Self, Error> {
        Ok(V::clone(value))
    }
}

impl<V> FromValue<V> for Arc<V> {
    fn from_value(value: &Arc<V>, _: Source<'_>) -> Result<Self, Error> {
        Ok(Arc::clone(value))
    }
}

impl<T: Clone> FromValue<Answer<T>> for T {
    fn from_value(value: &Arc<Answer<T>>, from: Source<'_>) -> Result<Self, Error> {
        match &**value {
            Answer::Accept(value) => Ok(value.clone()),
            Answer::Decline => Err(from.refused(AskError::declined)),
            Answer::Cancel => Err(from.refused(AskError::cancelled)),
        }
    }
}
