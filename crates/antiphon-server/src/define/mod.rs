//! The code behind `#[tool]`, `#[prompt]`, `#[resource]` and `#[server]`: definitions made from functions.
//!
//! A marked function stays a function. Its future has the definition in its type (`future`), so that `.tool(provision)`
//! needs only the function. The definition is made when the server is built, because the shared state is complete only
//! then (`state`).

mod arguments;
mod definition;
mod future;
mod list;
mod offer;
mod outcome;
mod prompt;
mod resource;
mod schema;
mod service;
mod shapes;
mod state;
mod tool;

pub use prompt::IntoPrompt;
pub use resource::IntoResource;
pub use service::Service;
pub use state::State;
pub use tool::IntoTool;

pub(crate) use offer::{Offer, Offered};
pub(crate) use state::States;

/// The items that expanded code calls.
pub(crate) mod expanded {
    pub use super::{
        arguments::{Spec, argument, text, variable},
        definition::{AnyResource, DefinePrompt, DefineResource, DefineTool},
        future::{PromptFuture, ResourceFuture, ToolFuture, tagged},
        offer::Offered,
        outcome::{Outcome, boxed, outcome, run, run_resolved},
        prompt::prompt,
        resource::{resource, template},
        service::Service,
        state::States,
        tool::tool,
    };
    pub use crate::errors::build_error::BuildError;
    pub use antiphon_wire::{AskSupport, ToolAnnotations};
    pub use serde_json::Value;
}
