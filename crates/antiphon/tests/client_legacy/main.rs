//! The client and servers of the legacy era: which era a server is of, sessions over every transport, and what is asked,
//! told and broken on them.
#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod asks;
mod corpus;
mod http;
mod listen;
mod matrix;
mod ours;
mod play;
mod progress;
mod stuck;
mod urls;
