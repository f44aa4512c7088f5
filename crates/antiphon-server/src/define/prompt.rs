//! Prompts from functions.

use crate::{
    call::ctx::Ctx,
    define::{
        States,
        definition::DefinePrompt,
        future::PromptFuture,
        list::{List, decode},
        outcome::{BoxedHandler, Outcome},
        shapes::for_functions,
    },
    errors::build_error::BuildError,
    offer::prompt::Prompt,
};
use antiphon_wire::{GetPromptResult, PromptArgument};

/// The parameter of [`ServerBuilder::prompt`](crate::ServerBuilder::prompt): a function marked `#[prompt]`, or a
/// [`Prompt`]. No other type implements it.
#[diagnostic::on_unimplemented(
    message = "this is not a prompt",
    label = "neither a function marked `#[prompt]` nor a `Prompt`",
    note = "put `#[antiphon::prompt]` above the `async fn`; methods go with `#[antiphon::server]` on their impl block and `.with(..)`",
    note = "pass the function by its name, without parentheses: `.prompt(review)`; a tool goes with `.tool(..)`, a resource with `.resource(..)`"
)]
pub trait IntoPrompt<Shape>: Send + Sync + Sized + 'static {
    /// Returns the prompt.
    ///
    /// # Errors
    /// If a state is missing, or a default does not fit its type.
    #[doc(hidden)]
    fn into_prompt(self, states: &States) -> Result<Prompt, BuildError>;
}

impl IntoPrompt<Prompt> for Prompt {
    fn into_prompt(self, _: &States) -> Result<Prompt, BuildError> {
        Ok(self)
    }
}

for_functions!(IntoPrompt, PromptFuture, {
    fn into_prompt(self, states: &States) -> Result<Prompt, BuildError> {
        R::Prompt::define(states)
    }
});

/// Returns a prompt with these arguments.
///
/// # Errors
/// If a default does not fit its type.
pub fn prompt<R, L: List>(
    name: &str,
    _: Outcome<GetPromptResult, R>,
    arguments: L,
    handler: impl Fn(Ctx, L::Values) -> BoxedHandler<GetPromptResult> + Send + Sync + 'static,
) -> Result<Prompt, BuildError> {
    let mut advertised = Vec::new();
    arguments.each(&format!("the prompt `{name}`"), &mut |described| {
        let spec = described.spec;
        let mut argument = match described.required {
            true => PromptArgument::required(spec.name),
            false => PromptArgument::optional(spec.name),
        };
        argument.title = spec.title.map(str::to_owned);
        argument.description = spec.description.map(str::to_owned);
        advertised.push(argument);
    })?;
    let run = move |ctx: Ctx, text: &str| Ok(handler(ctx, decode(&arguments, text)?).0);
    Ok(Prompt::from_parts(name, advertised, Box::new(run)))
}
