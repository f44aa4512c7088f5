//! The shared code of several examples: replicas of the demo server as processes, a proxy in front of them, and their
//! backend.

#![allow(clippy::print_stderr, reason = "an example prints its errors for the person who runs it")]

mod browser;
mod fleet;
mod proxy;
mod replica;

pub use browser::submit_form;
pub use fleet::{Fleet, FleetOptions};
pub use proxy::Proxy;
pub use replica::serve_if_replica;

/// The result of an example.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// The README of the repository, whose examples are doctests. They are tested here because a published crate cannot include
/// a file from outside of its folder.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
