//! Dispatch: from a request to its reply.

mod complete;
pub(crate) mod listen;
pub(crate) mod route;
mod tasks;
