//! What several examples share: replicas of the demo server as processes of their own, a proxy in front of them, and the
//! world that they work on.

#![allow(clippy::print_stderr, reason = "whoever runs an example should see what went wrong")]

mod fleet;
mod proxy;
mod replica;

pub use fleet::{Fleet, Plan};
pub use proxy::Proxy;
pub use replica::serve_if_replica;

/// What a program ends with.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;
