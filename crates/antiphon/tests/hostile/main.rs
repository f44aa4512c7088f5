//! Clients that lie, flood, stall, replay and go away.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod awaits;
mod capabilities;
mod http;
mod leaks;
mod limits;
mod notifications;
mod states;
mod stdio;
