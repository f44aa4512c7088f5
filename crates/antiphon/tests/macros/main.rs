//! Expansions of the macros, for functions and types.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

#[path = "../common/mod.rs"]
mod common;

mod attributes;
mod completed;
mod form;
mod forms_by_macro;
pub mod forms_renamed;
mod prelude;
mod shapes;
mod steps;
mod tools;
mod versions;
