//! Identity of the caller: bearer tokens, keys, scopes, challenges.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

#[cfg(feature = "auth")]
#[path = "../auth_support/mod.rs"]
mod auth_support;
#[path = "../common/mod.rs"]
mod common;

mod challenges;
mod dpop;
mod hostile;
mod keys;
mod layer;
mod scopes;
mod sessions;
mod sign_in;
mod stolen_state;
mod tokens;
