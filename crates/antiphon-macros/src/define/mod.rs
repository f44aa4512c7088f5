//! `#[tool]`, `#[prompt]`, `#[resource]` on functions, and `#[server]` for those that are methods.
//!
//! `function` reads a signature into a model, with the help of `settings` (what stands in an attribute) and
//! `rounds` (what of it is about asking and versions), `argument` (`#[arg(..)]`) and `template` (URIs). `expand` writes the definition, `free` and `service` put it beside a function
//! and into an impl. `refused` is what they write where something is wrong.

mod argument;
mod expand;
mod free;
pub(crate) mod function;
mod kind;
mod refused;
mod resolved;
mod rounds;
mod service;
mod settings;
pub(crate) mod shape;
mod template;

pub(crate) use free::expand as function;
pub(crate) use kind::Kind;
pub(crate) use service::expand as service;
