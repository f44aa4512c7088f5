//! `#[tool]`, `#[prompt]` and `#[resource]` on functions, and `#[server]` on impls whose methods have these marks.
//!
//! `function` reads a signature into a model. It uses `settings` (the content of an attribute), `shown` (what lists
//! show), `call_settings` (questions and versions), `argument` (`#[arg(..)]`), `kind`, and `template` (the URI of a resource). `expand` writes the definition.
//! `service` puts the definition beside a function, or into an impl, and writes a replacement
//! if there is an error.

mod argument;
mod call_settings;
mod expand;
mod function;
mod kind;
mod service;
mod settings;
mod shown;
mod template;

pub(crate) use kind::Kind;
pub(crate) use service::{expand_function as function, expand_service as service};
