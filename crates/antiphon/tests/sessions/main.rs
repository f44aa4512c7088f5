//! Sessions of 2025: the handshake, pushed asks, Streamable HTTP with its streams, hostile clients of them.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../legacy_http_support/mod.rs"]
mod legacy_http_support;

mod asks;
mod bad_clients;
mod by_hand;
mod fairness;
mod handshake;
mod hostile_clients;
mod http;
mod progress;
mod replicas;
mod sockets;
mod streams;
