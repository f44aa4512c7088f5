//! The trace of a call without the feature `otel`: `tracing` alone has no parents in other processes.

use super::TraceContext;
use antiphon_seal::CallId;
use serde_json::value::RawValue;
use std::time::SystemTime;
use tracing::Span;

/// Does nothing.
pub(crate) fn join(_: &Span, _: Option<&RawValue>, _: impl FnOnce() -> Option<TraceContext>) {}

/// Does nothing.
pub(crate) fn set_parent(_: &Span, _: &TraceContext) {}

/// Returns no context: spans have no ids here.
pub(crate) fn current() -> Option<TraceContext> {
    None
}

/// Does nothing.
pub(crate) fn link(_: &TraceContext) {}

/// Does nothing: a span of `tracing` begins when it is made.
pub(crate) fn waited(_: Option<&TraceContext>, _: Option<CallId>, _: SystemTime, _: SystemTime) {}
