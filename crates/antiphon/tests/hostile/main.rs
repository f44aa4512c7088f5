//! Clients that lie, flood, stall, replay and go away.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod awaits;
mod budgets;
mod capabilities;
mod http;
mod http2;
mod leaks;
mod limits;
mod notifications;
mod secrets;
mod states;
mod stdio;
