//! Handlers that await what they ask: asks, steps, legs, resolvers, and the bench that tests them.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

#[path = "../common/mod.rs"]
mod common;

mod asks;
mod cancelled;
mod defects;
mod drain;
mod forms;
mod guide;
mod notifications;
mod polled_outside;
mod receipts;
mod record_size;
mod replay_check;
mod resolvers;
mod rules;
mod stress_suspension;
mod testing_await;
mod testing_bench;
mod testing_sessions;
mod testing_shapes;
mod testing_sqlite;
mod testing_stores;
mod url;
