//! The client against an authorization server on loopback.

#![allow(clippy::unwrap_used, missing_docs, reason = "a failed unwrap fails the test")]

mod attacks;
mod machines;
mod stores;
mod support;
mod tokens;
