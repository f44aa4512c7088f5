//! From a request to its reply: one line a method.

mod complete;
pub(crate) mod listen;
pub(crate) mod route;
