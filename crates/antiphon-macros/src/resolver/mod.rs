//! `#[resolver]`, and what `#[resolve(..)]` writes into tools, prompts and resources.
//!
//! `model` reads a signature, `expand` writes beside the function a type of its name: what it takes and gives, for tools
//! that know it by its name alone. `taken` writes what takes a resolver's value, in a tool and in a resolver.

mod expand;
mod model;
mod taken;

pub(crate) use expand::expand;
pub(crate) use taken::{Taken, name_type};
