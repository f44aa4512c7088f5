//! Resources and templates from functions.

use crate::{
    call::ctx::Ctx,
    define::{
        States,
        definition::{AnyResource, DefineResource},
        future::ResourceFuture,
        list::{List, decode},
        outcome::{BoxedHandler, Outcome},
        shapes::for_functions,
    },
    errors::build_error::BuildError,
    offer::resource::{Resource, ResourceTemplate},
};
use antiphon_wire::ReadResourceResult;
use serde_json::Value;

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

for_functions!(IntoResource, ResourceFuture, {
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
