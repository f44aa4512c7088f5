//! The transports of a server: HTTP, and a pair of streams. Only the modules in here name sockets, pipes and HTTP.

mod batch;
#[cfg(feature = "http")]
pub mod http;
pub mod stdio;
mod write_timeout;
