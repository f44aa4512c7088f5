//! The wire types and their reader against examples, the schema, and random messages.

#![allow(clippy::unwrap_used, reason = "a test stops where its setup fails")]

mod agreement;
mod common;
mod modelled;

mod envelope;
mod examples;
mod lenient;
mod lossless;
mod outcome;
mod param_headers;
mod properties;
mod reader;
mod schema;
mod uri_template;
