//! Tasks: calls that outlive their request. The extension `io.modelcontextprotocol/tasks`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub,
    reason = "a failed unwrap fails the test"
)]

#[path = "../common/mod.rs"]
mod common;

mod approvers;
mod asks;
mod awaits;
mod bounds;
mod cancel;
mod client;
mod creation;
mod draft_view;
mod held;
mod http;
mod kept;
mod late_rows;
mod late_store;
mod lifecycle;
mod observed;
mod open_questions;
mod own_client;
mod promotion;
mod recovery;
mod sealed;
mod session_client;
mod session_view;
mod urls;
mod versions;
mod view_tools;
mod watch;
