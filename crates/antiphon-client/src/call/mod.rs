//! One call of a tool or a prompt, or the reading of a resource, from its first leg to its result.
//!
//! The story is on the first page of the crate; `rounds` is its loop.

pub(crate) mod definition;
pub(crate) mod errors;
pub(crate) mod legs;
pub(crate) mod outcome;
pub(crate) mod pending;
pub(crate) mod rounds;
pub(crate) mod url_required;
