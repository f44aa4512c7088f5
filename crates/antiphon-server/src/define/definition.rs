//! The definitions that the macros write.

use crate::{BuildError, Prompt, Resource, ResourceTemplate, Tool, define::States};

/// A resource, or a template of some.
#[derive(Debug)]
pub enum AnyResource {
    /// At one URI.
    One(Resource),
    /// At all that fit.
    Many(ResourceTemplate),
}

impl From<Resource> for AnyResource {
    fn from(resource: Resource) -> Self {
        Self::One(resource)
    }
}

impl From<ResourceTemplate> for AnyResource {
    fn from(template: ResourceTemplate) -> Self {
        Self::Many(template)
    }
}

/// What `#[tool]` writes.
pub trait DefineTool: 'static {
    /// The definition.
    ///
    /// # Errors
    /// If a state is missing, or a default does not fit its type.
    fn define(states: &States) -> Result<Tool, BuildError>;
}

/// What `#[prompt]` writes.
pub trait DefinePrompt: 'static {
    /// The definition.
    ///
    /// # Errors
    /// If a state is missing, or a default does not fit its type.
    fn define(states: &States) -> Result<Prompt, BuildError>;
}

/// What `#[resource]` writes.
pub trait DefineResource: 'static {
    /// The definition.
    ///
    /// # Errors
    /// If a state is missing.
    fn define(states: &States) -> Result<AnyResource, BuildError>;
}
