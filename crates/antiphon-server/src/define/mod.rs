//! What `#[tool]`, `#[prompt]`, `#[resource]` and `#[server]` stand on: definitions made from functions.
//!
//! A marked function stays a function. What it returns, when called, is its future in a wrapper that knows the
//! definition (`future`), so that `.tool(provision)` needs nothing but the function. The definition is made when the
//! server is built, for only then is known what state there is (`state`).

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

/// What expanded code calls.
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
    pub use crate::BuildError;
    pub use antiphon_wire::{AskSupport, ToolAnnotations};
    pub use serde_json::Value;
}
