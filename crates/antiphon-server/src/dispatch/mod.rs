//! Dispatch: from a request to its reply.

mod calls;
mod complete;
pub(crate) mod encode;
pub(crate) mod listen;
pub(crate) mod observe;
pub(crate) mod reply;
pub(crate) mod route;
mod tasks;
