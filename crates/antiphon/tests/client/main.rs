//! The client: calls, rounds, callbacks, lists, the cache, what it refuses.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

#[path = "../client_support/mod.rs"]
mod client_support;
#[allow(dead_code, unreachable_pub, reason = "shared by several test programs, each of which uses a part")]
#[path = "../common/log.rs"]
mod log;
#[path = "../transport_support/mod.rs"]
mod transport_support;

mod bounds;
mod cache;
mod callbacks;
mod errors;
mod events;
mod foreign_text;
mod http;
mod layers;
mod lenient;
mod listen;
mod listen_wire;
mod lists;
mod pending;
mod pending_reviewed;
mod rounds;
mod spec;
mod task_control;
mod task_draft;
mod task_http;
mod task_news;
mod task_questions;
mod task_server;
mod tasks;
mod tools;
