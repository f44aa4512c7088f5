//! The trace of a call for OpenTelemetry: parents and links of spans, and the time of people, which began earlier.

use super::TraceContext;
use antiphon_seal::CallId;
use antiphon_wire::escaped;
use opentelemetry::{
    Context, KeyValue, SpanId, TraceFlags, TraceId, global,
    propagation::Extractor,
    trace::{Span as _, SpanContext, TraceContextExt as _, TraceState, Tracer as _},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{str::FromStr as _, time::SystemTime};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Gives the span of a request its parent: the context in `_meta`, or else the one in the state of the call. The context around is
/// linked, such as that of the HTTP request.
///
/// > MCP server instrumentation SHOULD, by default, use context extracted from MCP `params._meta` as a parent for MCP server span and
/// > SHOULD link current ambient context, if it's present.
pub(crate) fn join(span: &Span, meta: Option<&RawValue>, of_call: impl FnOnce() -> Option<TraceContext>) {
    if span.is_disabled() {
        return;
    }
    let fields = Fields::of(meta);
    let found = global::get_text_map_propagator(|all| all.extract_with_context(&Context::new(), &fields));
    let parent = match found.span().span_context().is_valid() {
        true => Some(found),
        false => {
            let trace = TraceContext::of(meta).or_else(of_call);
            trace.map(|trace| found.with_remote_span_context(span_context(&trace)))
        }
    };
    let Some(parent) = parent else { return };
    let around = Span::current().context().span().span_context().clone();
    // The span has not begun: it takes the parent.
    let _ = span.set_parent(parent);
    if around.is_valid() {
        span.add_link(around);
    }
}

/// Gives a span that has not begun its parent.
pub(crate) fn set_parent(span: &Span, trace: &TraceContext) {
    if !span.is_disabled() {
        let _ = span.set_parent(Context::new().with_remote_span_context(span_context(trace)));
    }
}

/// Returns the context of the present span; `None` if nobody exports it.
pub(crate) fn current() -> Option<TraceContext> {
    let context = Span::current().context();
    let context = context.span().span_context().clone();
    let of = |context: SpanContext| {
        let (trace, span) = (context.trace_id().to_bytes(), context.span_id().to_bytes());
        let flags = context.trace_flags().to_u8();
        TraceContext::from_parts(u128::from_be_bytes(trace), u64::from_be_bytes(span), flags)
    };
    context.is_valid().then(|| of(context))
}

/// Links the present span to the trace of its call, if it is in another one.
pub(crate) fn link(to: &TraceContext) {
    let (span, of_call) = (Span::current(), span_context(to));
    if span.context().span().span_context().trace_id() != of_call.trace_id() {
        span.add_link(of_call);
    }
}

/// Exports the time between a round and its answers as a span of its own, beside the legs.
pub(crate) fn waited(
    parent: Option<&TraceContext>,
    call: Option<CallId>,
    begin: SystemTime,
    end: SystemTime,
) {
    let parent = match parent {
        Some(trace) => Context::new().with_remote_span_context(span_context(trace)),
        None => Span::current().context(),
    };
    let tracer = global::tracer("antiphon");
    let call = call.map(|call| KeyValue::new("antiphon.call.id", escaped(&call).to_string()));
    let builder = tracer.span_builder("antiphon.ask.wait").with_start_time(begin).with_attributes(call);
    tracer.build_with_context(builder, &parent).end_with_timestamp(end.max(begin));
}

fn span_context(of: &TraceContext) -> SpanContext {
    let (trace, span, flags) = of.parts();
    let state = of.tracestate().and_then(|state| TraceState::from_str(state).ok());
    let (trace, span) = (TraceId::from_bytes(trace.to_be_bytes()), SpanId::from_bytes(span.to_be_bytes()));
    SpanContext::new(trace, span, TraceFlags::new(flags), true, state.unwrap_or_default())
}

/// The reserved keys of a `_meta`, for the propagator of the program.
#[derive(Default, Deserialize)]
struct Fields {
    #[serde(default)]
    traceparent: Option<String>,
    #[serde(default)]
    tracestate: Option<String>,
    #[serde(default)]
    baggage: Option<String>,
}

impl Fields {
    fn of(meta: Option<&RawValue>) -> Self {
        let text = meta.map_or("", RawValue::get);
        // Most requests have none.
        if !text.contains("traceparent") && !text.contains("baggage") {
            return Self::default();
        }
        serde_json::from_str(text).unwrap_or_default()
    }
}

impl Extractor for Fields {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.traceparent.as_deref(),
            "tracestate" => self.tracestate.as_deref(),
            "baggage" => self.baggage.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        ["traceparent", "tracestate", "baggage"].into_iter().filter(|key| self.get(key).is_some()).collect()
    }
}
