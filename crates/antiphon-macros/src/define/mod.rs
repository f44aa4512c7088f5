//! `#[tool]`, `#[prompt]` and `#[resource]` on functions, and `#[server]` on impls whose methods have these marks.
//!
//! `function` reads a signature into a model. It uses `settings` (the content of an attribute), `call_settings`
//! (questions and versions), `argument` (`#[arg(..)]`) and `template` (URIs). `expand` writes the definition.
//! `free_function` puts the definition beside a function, and `service` puts it into an impl. Both write a `fallback`
//! if there is an error.

mod argument;
mod call_settings;
mod expand;
mod fallback;
mod free_function;
mod function;
mod kind;
mod resolver_code;
mod service;
mod settings;
mod shape;
mod template;

pub(crate) use free_function::expand as function;
pub(crate) use kind::Kind;
pub(crate) use service::expand as service;
