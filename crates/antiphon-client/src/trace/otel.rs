//! The trace of a call for OpenTelemetry: its context is sent in `_meta`.

use antiphon_wire::{Meta, TraceContext};
use opentelemetry::{
    Context, SpanId, TraceFlags, TraceId, global,
    propagation::Injector,
    trace::{SpanContext, TraceContextExt as _, TraceState},
};
use serde_json::Value;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The reserved keys of a `_meta`. What else a propagator has is not sent.
///
/// > the keys `traceparent`, `tracestate`, and `baggage` are reserved for OpenTelemetry trace context propagation. When present, their
/// > values MUST follow W3C Trace Context
const KEYS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// Puts the context of the present span into the `_meta` of a request: by the propagator of the program, or else as W3C Trace Context.
pub(crate) fn inject(meta: &mut Meta) {
    if Span::current().is_disabled() {
        return;
    }
    let context = Span::current().context();
    let mut fields = Fields(meta);
    global::get_text_map_propagator(|all| all.inject_context(&context, &mut fields));
    let context = context.span().span_context().clone();
    if context.is_valid() && !meta.0.contains_key("traceparent") {
        meta.0.insert("traceparent".to_owned(), Value::String(of(&context).traceparent().to_owned()));
        let state = context.trace_state().header();
        if !state.is_empty() {
            meta.0.insert("tracestate".to_owned(), Value::String(state));
        }
    }
}

/// Returns the context of the present span; `None` if nobody exports it.
pub(crate) fn current() -> Option<TraceContext> {
    let context = Span::current().context();
    let context = context.span().span_context().clone();
    context.is_valid().then(|| of(&context))
}

/// Gives a span that has not begun its parent, which is in another process.
pub(crate) fn set_parent(span: &Span, trace: &TraceContext) {
    if span.is_disabled() {
        return;
    }
    let (trace, id, flags) = trace.parts();
    let (trace, id) = (TraceId::from_bytes(trace.to_be_bytes()), SpanId::from_bytes(id.to_be_bytes()));
    let context = SpanContext::new(trace, id, TraceFlags::new(flags), true, TraceState::NONE);
    let _ = span.set_parent(Context::new().with_remote_span_context(context));
}

fn of(context: &SpanContext) -> TraceContext {
    let (trace, span) = (context.trace_id().to_bytes(), context.span_id().to_bytes());
    let flags = context.trace_flags().to_u8();
    TraceContext::from_parts(u128::from_be_bytes(trace), u64::from_be_bytes(span), flags)
}

struct Fields<'a>(&'a mut Meta);

impl Injector for Fields<'_> {
    fn set(&mut self, key: &str, value: String) {
        if KEYS.contains(&key) && !value.is_empty() {
            self.0.0.insert(key.to_owned(), Value::String(value));
        }
    }
}
