//! Tests of the examples as programs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod examples;
mod extensions;
mod hello_ask;
mod replicas;
mod two_replicas;
mod watch;
