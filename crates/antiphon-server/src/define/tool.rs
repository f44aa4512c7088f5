//! Tools from functions.

use crate::{
    call::ctx::Ctx,
    define::{
        States,
        definition::DefineTool,
        future::ToolFuture,
        list::{List, decode},
        outcome::{BoxedHandler, Outcome},
        schema::Schemas,
        shapes::for_functions,
    },
    errors::build_error::BuildError,
    offer::{check::SchemaOrigin, tool::Tool},
};
use antiphon_wire::CallToolResult;

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

for_functions!(IntoTool, ToolFuture, {
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
    outcome: Outcome<CallToolResult, R>,
    arguments: L,
    handler: impl Fn(Ctx, L::Values) -> BoxedHandler<CallToolResult> + Send + Sync + 'static,
) -> Result<Tool, BuildError> {
    let Schemas { checked, advertised } = Schemas::of(&arguments, &format!("the tool `{name}`"))?;
    let run = move |ctx: Ctx, text: &str| Ok(handler(ctx, decode(&arguments, text)?).0);
    let tool = Tool::from_parts(name, checked, SchemaOrigin::Type, advertised, Box::new(run));
    Ok(match (outcome.schema)() {
        Some(schema) => tool.with_output(&schema, SchemaOrigin::Type),
        None => tool,
    })
}
