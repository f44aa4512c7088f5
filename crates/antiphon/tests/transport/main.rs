//! The transports of a client, without a client.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

#[path = "../transport_support/mod.rs"]
mod transport_support;

mod bearer;
mod child;
mod child_restart;
mod http;
mod http_connection;
mod process_tree;
mod stream;
mod stream_life;
