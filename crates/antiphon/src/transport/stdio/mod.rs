//! Newline-delimited messages over a pair of streams: standard input and output, a child process, a pipe in memory.

pub(crate) mod child;
pub(crate) mod client;
pub mod framing;
mod server;

pub use child::{ChildCommand, ChildStderr, ChildTransport};
pub use client::StreamTransport;
pub use server::{serve_stdio, serve_streams};
