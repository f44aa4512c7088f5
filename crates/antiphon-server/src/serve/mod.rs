//! The ways to a server: HTTP, and a pair of streams. Only the modules in here name sockets, pipes and HTTP.

mod batch;
#[cfg(feature = "http")]
pub mod http;
mod patient;
pub mod stdio;
