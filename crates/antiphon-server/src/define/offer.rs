//! Definitions given to a builder, in order, and their result when the state is complete.

use crate::{
    define::{States, definition::AnyResource},
    errors::build_error::BuildError,
    offer::{
        prompt::Prompt,
        resource::{Resource, ResourceTemplate},
        tool::Tool,
    },
};

/// A closure that adds one definition, or the several of a [`Service`](crate::Service).
pub(crate) type Offer = Box<dyn FnOnce(&States, &mut Offered) -> Result<(), BuildError> + Send + Sync>;

/// All definitions with which a server starts.
#[derive(Debug, Default)]
pub struct Offered {
    /// Tools.
    pub tools: Vec<Tool>,
    /// Prompts.
    pub prompts: Vec<Prompt>,
    /// Resources.
    pub resources: Vec<Resource>,
    /// Templates of resources.
    pub templates: Vec<ResourceTemplate>,
}

impl Offered {
    /// Adds a resource, or a template of some.
    pub fn add(&mut self, resource: AnyResource) {
        match resource {
            AnyResource::One(resource) => self.resources.push(resource),
            AnyResource::Many(template) => self.templates.push(template),
        }
    }
}
