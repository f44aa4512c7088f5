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
mod duplicate_names;
mod extensions;
mod feed;
mod held;
mod http;
mod kept;
mod large_records;
mod late_rows;
mod late_store;
mod lifecycle;
mod observed;
mod open_questions;
mod own_client;
mod polls;
mod promotion;
mod recovery;
mod sealed;
mod session_client;
mod session_view;
mod status_message;
mod stdio_end;
mod urls;
mod versions;
mod view_tools;
mod watch;
mod wrong_answers;
