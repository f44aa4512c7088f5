//! The completers that `#[arg(complete = ..)]` names: functions, with or without a state of the server.

use crate::{
    define::{State, States},
    errors::{BuildError, Error},
    offer::completion::{Completing, Completions, IntoCompletions},
};
use futures_util::future::BoxFuture;

/// The suggestions of one completer.
type Suggestions = BoxFuture<'static, Result<Completions, Error>>;

/// A function that suggests values of an argument. The shape is its parameters.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot complete an argument",
    label = "not a completer",
    note = "a completer is an `async fn(typed: Completing) -> Vec<String>`, or with a state of the server: `async fn(typed: Completing, db: State<Db>) -> Vec<String>`"
)]
pub trait Completer<Shape>: Send + Sync + 'static {
    /// Returns the function with its state. `user` names the owner ("the prompt `review`").
    ///
    /// # Errors
    /// If the server does not have the state.
    fn bind(
        self,
        states: &States,
        user: &str,
    ) -> Result<impl Fn(Completing) -> Suggestions + Send + Sync + 'static, BuildError>;
}

impl<F, Fut> Completer<(Completing,)> for F
where
    F: Fn(Completing) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoCompletions> + Send + 'static,
{
    fn bind(
        self,
        _: &States,
        _: &str,
    ) -> Result<impl Fn(Completing) -> Suggestions + Send + Sync + 'static, BuildError> {
        Ok(move |typed| -> Suggestions { suggestions(self(typed)) })
    }
}

impl<F, Fut, T> Completer<(Completing, State<T>)> for F
where
    F: Fn(Completing, State<T>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoCompletions> + Send + 'static,
    T: Send + Sync + 'static,
{
    fn bind(
        self,
        states: &States,
        user: &str,
    ) -> Result<impl Fn(Completing) -> Suggestions + Send + Sync + 'static, BuildError> {
        let state = states.get::<T>(user)?;
        Ok(move |typed| -> Suggestions { suggestions(self(typed, state.clone())) })
    }
}

fn suggestions(made: impl Future<Output: IntoCompletions> + Send + 'static) -> Suggestions {
    Box::pin(async move { made.await.into_completions() })
}

/// Returns the function of an argument, with its state.
///
/// # Errors
/// If the server does not have the state.
pub fn completer<Shape>(
    function: impl Completer<Shape>,
    states: &States,
    user: &str,
) -> Result<impl Fn(Completing) -> Suggestions + Send + Sync + 'static, BuildError> {
    function.bind(states, user)
}

/// Returns the suggestions that a method of a service returned.
///
/// # Errors
/// The reason for which there are none.
pub fn completions(made: impl IntoCompletions) -> Result<Completions, Error> {
    made.into_completions()
}
