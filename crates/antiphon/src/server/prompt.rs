//! Prompts: a name, arguments that are strings, and a plain async function.

use super::{
    Ctx, Handler, HandlerOutcome, IntoOutcome,
    settings::{self, Settings},
};
use antiphon_wire::{GetPromptResult, PromptArgument};
use futures_util::future::BoxFuture;
use schemars::JsonSchema as HasSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{fmt, sync::Arc};

pub(super) type RunPrompt = dyn Fn(Ctx, &str) -> Result<BoxFuture<'static, HandlerOutcome<GetPromptResult>>, serde_json::Error>
    + Send
    + Sync;

/// A prompt, to be given to [`ServerBuilder::prompt`](super::ServerBuilder::prompt).
pub struct Prompt {
    pub(super) definition: antiphon_wire::Prompt,
    pub(super) settings: Settings,
    pub(super) run: Box<RunPrompt>,
}

impl Prompt {
    /// A prompt that runs `handler`. Its arguments are the fields of `A`, all of them strings, optional ones in `Option`.
    pub fn new<A, F, R>(name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + HasSchema + Send + 'static,
        F: for<'a> Handler<'a, (A,), Output = R>,
        R: IntoOutcome<GetPromptResult>,
    {
        let handler = Arc::new(handler);
        let run = move |ctx: Ctx, arguments: &str| {
            let arguments: A = serde_json::from_str(arguments)?;
            let handler = Arc::clone(&handler);
            let future: BoxFuture<'static, _> =
                Box::pin(async move { handler.call(&ctx, (arguments,)).await.into_outcome() });
            Ok(future)
        };
        let mut definition = antiphon_wire::Prompt::new(name);
        definition.arguments =
            arguments_of(&schemars::SchemaGenerator::default().into_root_schema_for::<A>().to_value());
        Self { definition, settings: Settings::default(), run: Box::new(run) }
    }

    /// What the prompt is for.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// What the prompt is called, for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }
}

fn arguments_of(schema: &Value) -> Vec<PromptArgument> {
    let required = |name: &str| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|known| known == name))
    };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let argument = |(name, property): (&String, &Value)| {
        let mut argument =
            if required(name) { PromptArgument::required(name) } else { PromptArgument::optional(name) };
        argument.description = property.get("description").and_then(Value::as_str).map(str::to_owned);
        argument
    };
    properties.iter().map(argument).collect()
}

settings::setters!(Prompt);

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.definition.name).finish_non_exhaustive()
    }
}
