//! Prompts: a name, arguments that are strings, and a plain async function.

use crate::{
    call::{
        DriveResult,
        ctx::Ctx,
        drive,
        handler::{Handler, IntoOutcome},
    },
    errors::BuildError,
    feed::ListKind,
    in_place::boxed,
    offer::{
        PerCaller,
        completion::{Completers, Completing, IntoCompletions, first_duplicate},
        list::ListItem,
        per_caller_setters,
    },
    options::{self, Settings},
};
use antiphon_wire::{GetPromptResult, PromptArgument};
use futures_util::future::BoxFuture;
use schemars::JsonSchema as HasSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{fmt, future::Future, pin::pin, sync::Arc};

pub(crate) type RunPrompt = dyn Fn(Ctx, &str) -> Result<BoxFuture<'static, DriveResult<GetPromptResult>>, serde_json::Error>
    + Send
    + Sync;

/// A prompt, registered with [`ServerBuilder::prompt`](crate::ServerBuilder::prompt).
pub struct Prompt {
    pub(crate) definition: antiphon_wire::Prompt,
    pub(crate) settings: Settings,
    pub(crate) per_caller: PerCaller<antiphon_wire::Prompt>,
    pub(crate) completers: Completers,
    pub(crate) run: Box<RunPrompt>,
}

impl Prompt {
    /// Returns a prompt that runs `handler`. Its arguments are the fields of `A`, all of them strings, with `Option`
    /// for optional ones. The fields' documentation is the description, and `#[schemars(title = "..")]` is the title.
    ///
    /// A value, such as a connection pool, comes from [`with_state`](crate::with_state): an async closure that captures it is no
    /// handler, and the compiler then says that the closure does not implement `Fn`.
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
                Box::into_pin(boxed(
                    || async move { drive(&ctx, pin!(handler.call(&ctx, (arguments,)))).await },
                ));
            Ok(future)
        };
        let schema = schemars::SchemaGenerator::default().into_root_schema_for::<A>();
        Self::from_parts(name, arguments_of(&schema.to_value()), Box::new(run))
    }

    /// Returns a prompt with the parts that were made from its handler.
    pub(crate) fn from_parts(
        name: impl Into<String>,
        arguments: Vec<PromptArgument>,
        run: Box<RunPrompt>,
    ) -> Self {
        let mut definition = antiphon_wire::Prompt::new(name);
        definition.arguments = arguments;
        Self {
            definition,
            settings: Settings::default(),
            per_caller: PerCaller::default(),
            completers: Completers::default(),
            run,
        }
    }

    /// Sets the description of the prompt.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Describes an argument by hand. It replaces the argument with that name, or adds one, for a handler that takes a
    /// map.
    #[must_use]
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        let arguments = &mut self.definition.arguments;
        match arguments.iter_mut().find(|known| known.name == argument.name) {
            Some(known) => *known = argument,
            None => arguments.push(argument),
        }
        self
    }

    /// Suggests values for an argument while it is typed. `complete` is an async closure or function. It may not ask,
    /// and has the time limit of a handler.
    ///
    /// ```
    /// use antiphon::server::{Completing, Ctx, Prompt};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Review {
    ///     language: String,
    /// }
    ///
    /// async fn review(_ctx: &Ctx, args: Review) -> String {
    ///     format!("Review this {} code.", args.language)
    /// }
    ///
    /// let prompt = Prompt::new("review", review).complete("language", async |typed: Completing| {
    ///     let known = ["perl", "php", "python"].into_iter();
    ///     known.filter(|name| name.starts_with(typed.value())).collect::<Vec<_>>()
    /// });
    /// ```
    #[must_use]
    pub fn complete<F, Fut>(mut self, argument: impl Into<String>, complete: F) -> Self
    where
        F: Fn(Completing) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoCompletions> + Send + 'static,
    {
        self.completers.add(argument.into(), complete);
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
        let text = |member: &str| property.get(member).and_then(Value::as_str).map(str::to_owned);
        argument.title = text("title");
        argument.description = text("description");
        argument
    };
    properties.iter().map(argument).collect()
}

options::setters!(Prompt);
options::definition_setters!(Prompt);
per_caller_setters!(Prompt, "The name and the arguments");

impl ListItem for Prompt {
    type Definition = antiphon_wire::Prompt;
    const MEMBER: &'static str = "prompts";
    const KIND: ListKind = ListKind::Prompts;
    const TWO: &'static str = "prompts named";
    const ADVICE: &'static str = "";

    fn definition(&self) -> &antiphon_wire::Prompt {
        &self.definition
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn per_caller(&self) -> &PerCaller<antiphon_wire::Prompt> {
        &self.per_caller
    }

    fn keep(before: antiphon_wire::Prompt, changed: &mut antiphon_wire::Prompt) {
        (changed.name, changed.arguments) = (before.name, before.arguments);
    }

    fn key(&self) -> &str {
        &self.definition.name
    }

    fn check(&self) -> Result<(), BuildError> {
        let names: Vec<&str> = self.definition.arguments.iter().map(|one| one.name.as_str()).collect();
        if let Some(name) = first_duplicate(&names) {
            let prompt = self.key();
            return Err(BuildError(format!("the prompt `{prompt}` has two arguments named `{name}`")));
        }
        self.completers.check(&format!("prompt `{}`", self.key()), "argument", &names)
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.definition.name).finish_non_exhaustive()
    }
}
