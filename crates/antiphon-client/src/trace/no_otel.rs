//! The trace of a call without the feature `otel`: `tracing` alone has no context that could be sent.

use antiphon_wire::{Meta, TraceContext};
use tracing::Span;

/// Does nothing.
pub(crate) fn inject(_: &mut Meta) {}

/// Returns no context.
pub(crate) fn current() -> Option<TraceContext> {
    None
}

/// Does nothing.
pub(crate) fn set_parent(_: &Span, _: &TraceContext) {}
