//! What a resolver gives, and how it is taken.

use crate::{Answer, AskError, Ctx, Error, StepError};
use std::{any::Any, fmt::Display, sync::Arc};

/// What a resolver returns: a `Result`.
#[diagnostic::on_unimplemented(
    message = "a resolver returns a `Result`, not `{Self}`",
    label = "no `Result`",
    note = "write `antiphon::Result<{Self}>`, or a `Result` with an error of your own"
)]
pub trait Returned {
    /// What it gives.
    type Value;
    /// The value, or why the call ends.
    ///
    /// # Errors
    /// That of the resolver.
    fn returned(self) -> Result<Self::Value, Error>;
}

impl<V, E: Display + 'static> Returned for Result<V, E> {
    type Value = V;

    fn returned(self) -> Result<V, Error> {
        self.map_err(as_ours)
    }
}

/// The value of a resolver that has returned.
///
/// # Errors
/// That of the resolver.
pub fn settle<R: Returned>(returned: R) -> Result<R::Value, Error> {
    returned.returned()
}

/// An error with the words that a handler's own would have: an error of the author's is told, one of a library's not.
fn as_ours<E: Display + 'static>(error: E) -> Error {
    let words = error.to_string();
    match (Box::new(error) as Box<dyn Any>).downcast::<Error>() {
        Ok(ours) => *ours,
        Err(other) => match other.downcast::<StepError>() {
            Ok(step) => (*step).into(),
            Err(_) => Error::user_facing(words),
        },
    }
}

/// Whose value it is.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The context of the call.
    pub(crate) ctx: &'a Ctx,
    /// The resolver's name.
    pub(crate) name: &'static str,
}

impl Source<'_> {
    /// What the person refused when this resolver asked: the question, if it was one.
    fn refused(self, otherwise: fn(&str, &str) -> AskError) -> Error {
        let scope = self.ctx.scope(self.name);
        let asked = self.ctx.leg_runtime().refused_below(scope.scope_prefix());
        asked.unwrap_or_else(|| otherwise(self.name, "")).into()
    }
}

/// A parameter that takes a resolver's value: the value itself, if it can be cloned, the value shared, or what a person
/// accepted.
#[diagnostic::on_unimplemented(
    message = "the resolver gives `{V}`, which is not taken as `{Self}`",
    label = "another type, or a copy of what cannot be copied",
    note = "take `{V}` if it is `Clone`, `&{V}`, or `Arc<{V}>`; of an `Answer<T>` also `T`, and whoever declines then ends the call"
)]
pub trait FromValue<V>: Sized {
    /// Takes it.
    ///
    /// # Errors
    /// If the person refused what is taken as accepted.
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
