//! `#[resolver]`, and the code that `#[resolve(..)]` adds to tools, prompts and resources.
//!
//! `model` reads a signature. `expand` writes a type beside the function, with the same name: the type has the
//! parameters and the value of the resolver, so that a tool needs only the name. `resolved_param` writes the code for a
//! parameter that takes the value of a resolver, in a tool or in another resolver.

mod expand;
mod model;
mod resolved_param;

pub(crate) use expand::expand;
pub(crate) use resolved_param::{ResolvedParam, name_type};
