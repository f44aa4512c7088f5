//! Tasks: calls that outlive their request. The extension `io.modelcontextprotocol/tasks`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub,
    reason = "a failed unwrap fails the test"
)]

mod asks;
mod cancel;
mod client;
mod lifecycle;
mod promotion;
mod recovery;
