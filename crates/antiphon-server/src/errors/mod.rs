//! The errors of handlers, of a request, and of a server that cannot be built.

pub(crate) mod ask_error;
pub(crate) mod build_error;
pub(crate) mod error;
pub(crate) mod refusal;
pub(crate) mod refusal_log;
pub(crate) mod step_error;
pub(crate) mod store_error;
