//! A server as its clients see it: calls, rounds, lists, subscriptions, over HTTP and over pipes.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

#[path = "../common/mod.rs"]
mod common;

mod body_checks;
mod cors;
mod feed;
mod forged_state;
mod http_head_checks;
mod http_server;
mod keys;
mod layers;
mod lists;
mod lists_bounds;
mod lists_build;
mod lists_calls;
mod lists_completion;
mod lists_output;
mod lists_pages;
mod message_service;
mod metrics;
mod mounted;
mod notifications;
mod observed;
mod offers;
mod per_caller;
mod refusal_log;
mod response_forms;
mod rounds;
mod shown_errors;
mod spec_http;
mod spec_server;
mod stdio_end;
mod stdio_read_ahead;
mod stdio_server;
mod subscriptions;
mod timeouts;
