//! The definitions that the macros write.

use crate::{
    define::States,
    errors::build_error::BuildError,
    offer::{
        list::ListItem as _,
        prompt::Prompt,
        resource::{Resource, ResourceTemplate},
        tool::Tool,
    },
};

/// A resource, or a template of some.
#[derive(Debug)]
pub enum AnyResource {
    /// A resource at one URI.
    One(Resource),
    /// The resources at all URIs that match a template.
    Many(ResourceTemplate),
}

impl AnyResource {
    /// # Errors
    /// If this is a template.
    pub(crate) fn into_one(self) -> Result<Resource, BuildError> {
        match self {
            Self::One(resource) => Ok(resource),
            Self::Many(template) => {
                let template = template.key();
                Err(BuildError(format!(
                    "`{template}` has variables: add it as a template, not as a resource"
                )))
            }
        }
    }

    /// # Errors
    /// If this is a resource.
    pub(crate) fn into_template(self) -> Result<ResourceTemplate, BuildError> {
        match self {
            Self::Many(template) => Ok(template),
            Self::One(resource) => {
                let uri = resource.key();
                Err(BuildError(format!("`{uri}` has no variables: add it as a resource, not as a template")))
            }
        }
    }
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

/// The definition of a tool, written by `#[tool]`.
pub trait DefineTool: 'static {
    /// Returns the definition.
    ///
    /// # Errors
    /// If a state is missing, or a default does not fit its type.
    fn define(states: &States) -> Result<Tool, BuildError>;
}

/// The definition of a prompt, written by `#[prompt]`.
pub trait DefinePrompt: 'static {
    /// Returns the definition.
    ///
    /// # Errors
    /// If a state is missing, or a default does not fit its type.
    fn define(states: &States) -> Result<Prompt, BuildError>;
}

/// The definition of a resource or template, written by `#[resource]`.
pub trait DefineResource: 'static {
    /// Returns the definition.
    ///
    /// # Errors
    /// If a state is missing.
    fn define(states: &States) -> Result<AnyResource, BuildError>;
}
