//! Extensions: registration, negotiation, requests and notifications of their own, in both eras and over each transport.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

#[path = "../common/mod.rs"]
mod common;

mod apps;
mod build;
mod clients;
mod notifications;
mod requests;
mod search;
