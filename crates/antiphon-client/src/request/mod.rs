//! One request of any method: its parts, its time, its notifications, and the faults that end it.
//!
//! [`Core`](core::Core) holds the state that all requests of a client share. The module `session` sends a request in the way
//! of the server's era.

pub(crate) mod core;
pub(crate) mod deadline;
pub(crate) mod events;
pub(crate) mod fault;
pub(crate) mod notifications;
