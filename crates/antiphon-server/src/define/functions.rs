//! Functions of up to sixteen parameters as tools, prompts, resources and templates: the future of each has the definition in its type.

use crate::{
    call::{
        DriveResult,
        ctx::Ctx,
        drive,
        handler::{HandlerOutcome, IntoOutcome},
    },
    define::{
        AnyResource, DefinePrompt, DefineResource, DefineTool, States,
        list::{Additional, Described, List, Schemas, decode},
    },
    errors::{BuildError, Error},
    in_place,
    offer::{
        check::SchemaOrigin,
        prompt::Prompt,
        resource::{Resource, ResourceTemplate},
        tool::Tool,
    },
};
use antiphon_wire::{CallToolResult, GetPromptResult, PromptArgument, ReadResourceResult};
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Either},
};
use serde_json::Value;
use std::{
    convert::Infallible,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

/// The parameter of [`ServerBuilder::tool`](crate::ServerBuilder::tool): a function marked `#[tool]`, or a [`Tool`]. No
/// other type implements it.
#[diagnostic::on_unimplemented(
    message = "this is not a tool",
    label = "neither a function marked `#[tool]` nor a `Tool`",
    note = "put `#[antiphon::tool]` above the `async fn`; methods go with `#[antiphon::server]` on their impl block and `.with(..)`",
    note = "pass the function by its name, without parentheses: `.tool(provision)`; a prompt goes with `.prompt(..)`, a resource with `.resource(..)`"
)]
pub trait IntoTool<Shape>: Send + Sync + Sized + 'static {
    /// Returns the tool.
    ///
    /// # Errors
    /// If a state is missing, or a default does not fit its type.
    #[doc(hidden)]
    fn into_tool(self, states: &States) -> Result<Tool, BuildError>;
}

impl IntoTool<Tool> for Tool {
    fn into_tool(self, _: &States) -> Result<Tool, BuildError> {
        Ok(self)
    }
}

for_functions!(IntoTool, Plain, ToolFuture, {
    fn into_tool(self, states: &States) -> Result<Tool, BuildError> {
        R::Tool::define(states)
    }
});

/// Returns a tool with these arguments.
///
/// # Errors
/// If a default does not fit its type.
pub fn tool<R, L: List>(
    name: &str,
    additional: Additional,
    outcome: Outcome<CallToolResult, R>,
    arguments: L,
    handler: impl Fn(Ctx, L::Values) -> BoxedHandler<CallToolResult> + Send + Sync + 'static,
) -> Result<Tool, BuildError> {
    let Schemas { checked, advertised } = Schemas::of(&arguments, &format!("the tool `{name}`"), additional)?;
    let run = move |ctx: Ctx, text: &str| Ok(handler(ctx, decode(&arguments, text)?).0);
    let tool = Tool::from_parts(name, checked, SchemaOrigin::Type, advertised, Box::new(run));
    Ok(match (outcome.schema)() {
        Some(schema) => tool.with_output(&schema, SchemaOrigin::Type),
        None => tool,
    })
}

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

for_functions!(IntoPrompt, Plain, PromptFuture, {
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
        let Described::One { spec, required, .. } = described else {
            // `#[prompt]` refuses `flatten`.
            return Err(BuildError(format!("the prompt `{name}` has an argument that is flattened")));
        };
        let mut argument = match required {
            true => PromptArgument::required(spec.name),
            false => PromptArgument::optional(spec.name),
        };
        argument.title = spec.title.map(str::to_owned);
        argument.description = spec.description.map(str::to_owned);
        advertised.push(argument);
        Ok(())
    })?;
    let run = move |ctx: Ctx, text: &str| Ok(handler(ctx, decode(&arguments, text)?).0);
    Ok(Prompt::from_parts(name, advertised, Box::new(run)))
}

/// The parameter of [`ServerBuilder::resource`](crate::ServerBuilder::resource) and
/// [`template`](crate::ServerBuilder::template): a function marked `#[resource(..)]`, a [`Resource`] or a
/// [`ResourceTemplate`]. No other type implements it.
#[diagnostic::on_unimplemented(
    message = "this is not a resource",
    label = "neither a function marked `#[resource(..)]` nor a `Resource` or `ResourceTemplate`",
    note = "put `#[antiphon::resource(\"scheme://{{variable}}\")]` above the `async fn`; methods go with `#[antiphon::server]` on their impl block and `.with(..)`",
    note = "pass the function by its name, without parentheses: `.resource(report)`; a tool goes with `.tool(..)`, a prompt with `.prompt(..)`"
)]
pub trait IntoResource<Shape>: Send + Sync + Sized + 'static {
    /// Returns the resource or the template.
    ///
    /// # Errors
    /// If a state is missing.
    #[doc(hidden)]
    fn into_resource(self, states: &States) -> Result<AnyResource, BuildError>;
}

impl IntoResource<Resource> for Resource {
    fn into_resource(self, _: &States) -> Result<AnyResource, BuildError> {
        Ok(self.into())
    }
}

impl IntoResource<ResourceTemplate> for ResourceTemplate {
    fn into_resource(self, _: &States) -> Result<AnyResource, BuildError> {
        Ok(self.into())
    }
}

for_functions!(IntoResource, Plain, ResourceFuture, {
    fn into_resource(self, states: &States) -> Result<AnyResource, BuildError> {
        R::Resource::define(states)
    }
});

/// Returns the resource at this URI.
///
/// # Errors
/// None: the result has the same type as the other functions here.
pub fn resource<R>(
    uri: &str,
    name: &str,
    _: Outcome<ReadResourceResult, R>,
    (): (),
    handler: impl Fn(Ctx, ()) -> BoxedHandler<ReadResourceResult> + Send + Sync + 'static,
) -> Result<Resource, BuildError> {
    Ok(Resource::from_parts(uri, name, Box::new(move |ctx| handler(ctx, ()).0)))
}

/// Returns a template with these variables.
///
/// # Errors
/// None: variables have no defaults.
pub fn template<R, L: List>(
    uri_template: &str,
    name: &str,
    _: Outcome<ReadResourceResult, R>,
    variables: L,
    handler: impl Fn(Ctx, L::Values) -> BoxedHandler<ReadResourceResult> + Send + Sync + 'static,
) -> Result<ResourceTemplate, BuildError> {
    let run =
        move |ctx: Ctx, given| Ok(handler(ctx, decode(&variables, &Value::Object(given).to_string())?).0);
    Ok(ResourceTemplate::from_parts(uri_template, name, Box::new(run)))
}

/// The shape of a function as it is.
type Plain<S> = S;

/// Implements a trait with a type parameter for the shape of a function, for all functions; `$body` is the content of
/// the impl, and `$wrap` a type around the shape. The shape is the function's type: without it, the impls would overlap.
macro_rules! for_functions {
    ($trait:ident, $wrap:ident, $future:ident, $body:tt) => {
        $crate::define::functions::for_functions! { @each $trait, $wrap, $future, $body,
            () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E G) (A B C D E G H) (A B C D E G H I)
            (A B C D E G H I J) (A B C D E G H I J K) (A B C D E G H I J K L) (A B C D E G H I J K L M)
            (A B C D E G H I J K L M N) (A B C D E G H I J K L M N O) (A B C D E G H I J K L M N O P)
            (A B C D E G H I J K L M N O P Q)
        }
    };
    (@each $trait:ident, $wrap:ident, $future:ident, $body:tt, $($shape:tt)*) => {
        $( $crate::define::functions::for_functions! { @one $trait, $wrap, $future, $body, $shape } )*
    };
    (@one $trait:ident, $wrap:ident, $future:ident, { $($body:tt)* }, ($($a:ident)*)) => {
        #[diagnostic::do_not_recommend]
        impl<F, R, $($a),*> $trait<$wrap<fn($($a),*) -> R>> for F
        where
            F: FnOnce($($a),*) -> R + Send + Sync + 'static,
            R: $future,
        {
            $($body)*
        }
    };
}
pub(crate) use for_functions;

/// A future `F` that belongs to the definition `D`. The other variant of the `Either` cannot exist: it has no cost, and
/// carries the type.
type Tagged<D, F> = Either<F, Never<D, <F as Future>::Output>>;

/// A future without values, with this definition and this output.
pub struct Never<D, O>(Infallible, PhantomData<fn() -> (D, O)>);

impl<D, O> Future for Never<D, O> {
    type Output = O;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<O> {
        match self.0 {}
    }
}

/// Tags the future with its definition.
pub fn tagged<D, F: Future>(future: F) -> Tagged<D, F> {
    Either::Left(future)
}

macro_rules! tagged_futures {
    ($($name:ident, $definition:ident: $bound:ident, $word:literal;)*) => { $(
        #[doc = concat!("The future of a function marked `#[", $word, "]`.")]
        #[must_use = "futures do nothing unless you `.await` or poll them"]
        pub trait $name: Future {
            /// The definition.
            type $definition: $bound;
        }

        impl<D: $bound, F: Future> $name for Tagged<D, F> {
            type $definition = D;
        }
    )* };
}

tagged_futures! {
    ToolFuture, Tool: DefineTool, "tool";
    PromptFuture, Prompt: DefinePrompt, "prompt";
    ResourceFuture, Resource: DefineResource, "resource";
}

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
