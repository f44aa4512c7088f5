//! The client and servers of the legacy era: which era a server is of, sessions over every transport, and what is asked,
//! told and broken on them.
#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod asks;
mod bad_servers;
mod corpus;
mod http;
mod listen;
mod matrix;
mod own_server;
mod progress;
mod scripted_server;
mod session_tasks;
mod tasks;
mod urls;
