//! One request, of whatever method: its parts, its time, its notifications, and the faults that end it.
//!
//! [`Core`](core::Core) holds what all requests of a client share. Who sends a request, and in which era, is the business
//! of `session`.

pub(crate) mod core;
pub(crate) mod deadline;
pub(crate) mod events;
pub(crate) mod fault;
pub(crate) mod notifications;
pub(crate) mod spec;
