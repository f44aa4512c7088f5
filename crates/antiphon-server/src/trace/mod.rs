//! The trace of a call: the context that a request carries, and the one that the state of the call keeps.

#[cfg(feature = "otel")]
pub(crate) mod otel;
#[cfg(not(feature = "otel"))]
#[path = "no_otel.rs"]
pub(crate) mod otel;
pub(crate) mod sealed;

pub use antiphon_wire::TraceContext;
