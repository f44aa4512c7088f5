//! One call of a tool or a prompt, or the reading of a resource, from its first leg to its result.
//!
//! The documentation of the crate draws the states of a call; `rounds` has the loop.

pub(crate) mod definition;
pub(crate) mod error_kind;
pub(crate) mod errors;
pub(crate) mod legs;
mod observe;
pub(crate) mod outcome;
pub(crate) mod pending;
pub(crate) mod rounds;
pub(crate) mod task;
pub(crate) mod task_handle;
pub(crate) mod url_required;
