//! Marked functions whose definitions are completed by hand.

use crate::{
    define::{
        AnyResource, DefinePrompt as _, DefineResource as _, DefineTool as _, IntoPrompt, IntoResource,
        IntoTool, States,
        functions::{PromptFuture, ResourceFuture, ToolFuture, for_functions},
    },
    errors::BuildError,
    offer::{
        prompt::Prompt,
        resource::{Resource, ResourceTemplate},
        tool::Tool,
    },
};
use std::{fmt, marker::PhantomData};

/// A function marked `#[tool]`, `#[prompt]` or `#[resource(..)]`, whose definition can be completed by hand, also with what no attribute has:
///
/// ```
/// use antiphon::{server::{Server, offers::With}, tool, wire::{Icon, Meta}};
/// use serde_json::json;
///
/// /// Orders a coffee.
/// #[tool]
/// async fn order(cups: u8) -> String {
///     format!("{cups} cups")
/// }
///
/// let server = Server::builder("bar", "1.0")
///     .tool(order.with(|tool| tool.icon(Icon::new("https://bar.example/cup.png")).meta(Meta::from(json!({"com.example/bar": 1})))))
///     .build()?;
/// # Ok::<(), antiphon::server::BuildError>(())
/// ```
///
/// The definition of a resource is a [`Resource`], or a [`ResourceTemplate`] if its URI has variables, as an [`AnyResource`](crate::AnyResource).
/// No other type implements it.
pub trait With<Shape>: Send + Sync + Sized + 'static {
    /// The definition.
    type Definition: 'static;

    /// Returns the definition.
    ///
    /// # Errors
    /// If a state is missing, or a default does not fit its type.
    #[doc(hidden)]
    fn definition(self, states: &States) -> Result<Self::Definition, BuildError>;

    /// Returns the function with a changed definition. The change is made when the server is built, because the function may take
    /// states of the server.
    fn with(
        self,
        change: impl FnOnce(Self::Definition) -> Self::Definition + Send + Sync + 'static,
    ) -> Changed<Self::Definition> {
        Changed(Box::new(move |states| self.definition(states).map(change)))
    }
}

/// A definition that is made, and changed, when the server is built: of [`With::with`].
pub struct Changed<D>(Make<D>);

/// Makes a definition with the states of the server.
type Make<D> = Box<dyn FnOnce(&States) -> Result<D, BuildError> + Send + Sync>;

impl<D: 'static> Changed<D> {
    /// Changes the definition once more.
    #[must_use]
    pub fn with(self, change: impl FnOnce(D) -> D + Send + Sync + 'static) -> Self {
        Self(Box::new(move |states| (self.0)(states).map(change)))
    }
}

impl<D> fmt::Debug for Changed<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Changed").finish_non_exhaustive()
    }
}

#[diagnostic::do_not_recommend]
impl IntoTool<Changed<Tool>> for Changed<Tool> {
    fn into_tool(self, states: &States) -> Result<Tool, BuildError> {
        (self.0)(states)
    }
}

#[diagnostic::do_not_recommend]
impl IntoPrompt<Changed<Prompt>> for Changed<Prompt> {
    fn into_prompt(self, states: &States) -> Result<Prompt, BuildError> {
        (self.0)(states)
    }
}

#[diagnostic::do_not_recommend]
impl IntoResource<Changed<AnyResource>> for Changed<AnyResource> {
    fn into_resource(self, states: &States) -> Result<AnyResource, BuildError> {
        (self.0)(states)
    }
}

/// The shape of a function that defines a tool.
#[derive(Debug)]
pub struct ToolShape<S>(PhantomData<S>);

/// The shape of a function that defines a prompt.
#[derive(Debug)]
pub struct PromptShape<S>(PhantomData<S>);

/// The shape of a function that defines a resource or a template.
#[derive(Debug)]
pub struct ResourceShape<S>(PhantomData<S>);

for_functions!(With, ToolShape, ToolFuture, {
    type Definition = Tool;

    fn definition(self, states: &States) -> Result<Tool, BuildError> {
        R::Tool::define(states)
    }
});

for_functions!(With, PromptShape, PromptFuture, {
    type Definition = Prompt;

    fn definition(self, states: &States) -> Result<Prompt, BuildError> {
        R::Prompt::define(states)
    }
});

for_functions!(With, ResourceShape, ResourceFuture, {
    type Definition = AnyResource;

    fn definition(self, states: &States) -> Result<AnyResource, BuildError> {
        R::Resource::define(states)
    }
});

impl Tool {
    /// Returns the tool of a function marked `#[tool]`, for a place that takes a `Tool`, such as [`Offers`](crate::Offers).
    ///
    /// # Errors
    /// If the function takes a [`State`](crate::State), which only a server has, or a default does not fit its type.
    pub fn of<Shape>(function: impl IntoTool<Shape>) -> Result<Self, BuildError> {
        function.into_tool(&States::default())
    }
}

impl Prompt {
    /// Returns the prompt of a function marked `#[prompt]`: see [`Tool::of`].
    ///
    /// # Errors
    /// As [`Tool::of`].
    pub fn of<Shape>(function: impl IntoPrompt<Shape>) -> Result<Self, BuildError> {
        function.into_prompt(&States::default())
    }
}

impl Resource {
    /// Returns the resource of a function marked `#[resource(..)]`: see [`Tool::of`].
    ///
    /// # Errors
    /// As [`Tool::of`]; also if its URI has variables.
    pub fn of<Shape>(function: impl IntoResource<Shape>) -> Result<Self, BuildError> {
        function.into_resource(&States::default())?.into_one()
    }
}

impl ResourceTemplate {
    /// Returns the template of a function marked `#[resource(..)]`: see [`Tool::of`].
    ///
    /// # Errors
    /// As [`Tool::of`]; also if its URI has no variables.
    pub fn of<Shape>(function: impl IntoResource<Shape>) -> Result<Self, BuildError> {
        function.into_resource(&States::default())?.into_template()
    }
}
