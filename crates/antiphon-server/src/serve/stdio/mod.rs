//! A server on a pair of streams: its own standard input and output, or any other.
//!
//! ```text
//!  read ──▶ requests in flight ──▶ replies
//!   │ the end of the input, or the shutdown
//!   ▼
//!  drain ──▶ replies, for `drain_timeout` ──▶ the others are dropped ──▶ steps and tasks end
//! ```

mod in_flight;
mod line_streams;
#[cfg(feature = "stdio")]
mod process;
mod serving;
#[cfg(feature = "stdio")]
mod signals;
mod start;
#[cfg(feature = "stdio")]
mod std_streams;

#[cfg(feature = "stdio")]
pub use process::serve_stdio;
pub use start::{ServeStreams, serve_streams};
