//! The client against an authorization server on loopback.

#![allow(clippy::unwrap_used, missing_docs, reason = "a failed unwrap fails the test")]

mod attacks;
mod devices;
mod logs;
mod machines;
mod stores;
mod support;
mod switches;
mod tokens;
