//! Dispatch: from a request to its reply.

mod complete;
mod encode;
pub(crate) mod listen;
pub(crate) mod route;
mod tasks;
