//! The spans of calls and requests, by the names of OpenTelemetry's conventions for MCP.

use antiphon_wire::{escaped, method};
use tracing::{Span, field::Empty};
use url::Url;

/// The maximum number of characters of a name in a span.
const NAME: usize = 200;

/// A call or a request, as far as its span shows it.
pub(crate) struct Traced<'a> {
    pub(crate) method: &'a str,
    /// The tool, the prompt or the URI.
    pub(crate) name: Option<&'a str>,
    pub(crate) version: &'a str,
    /// The target of the transport: a URL, or anything else.
    pub(crate) target: &'a str,
}

impl Traced<'_> {
    /// Returns the span. That of a call covers all of its legs and the time of people.
    pub(crate) fn span(&self) -> Span {
        let name = self.name.map(|name| escaped(name).limit(NAME));
        let of = |wanted| name.as_ref().filter(|_| self.method == wanted).map(tracing::field::display);
        // A URI would give the span too many names.
        let shown = name.as_ref().filter(|_| self.method != method::RESOURCES_READ);
        let otel_name =
            shown.map_or_else(|| self.method.to_owned(), |name| format!("{} {name}", self.method));
        let url = Url::parse(self.target).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        tracing::info_span!(
            "request",
            otel.name = otel_name,
            otel.kind = "client",
            mcp.method.name = self.method,
            mcp.protocol.version = %escaped(self.version),
            jsonrpc.request.id = Empty,
            gen_ai.operation.name = (self.method == method::TOOLS_CALL).then_some("execute_tool"),
            gen_ai.tool.name = of(method::TOOLS_CALL),
            gen_ai.prompt.name = of(method::PROMPTS_GET),
            mcp.resource.uri = of(method::RESOURCES_READ),
            network.transport = url.as_ref().map(|_| "tcp"),
            network.protocol.name = url.as_ref().map(|_| "http"),
            server.address = url.as_ref().and_then(Url::host_str),
            server.port = url.as_ref().and_then(Url::port_or_known_default),
            error.r#type = Empty,
            rpc.response.status_code = Empty,
            otel.status_code = Empty,
        )
    }
}

/// Returns the span of the time in which people, or the program, answer a round.
pub(crate) fn asked(round: u32, asks: usize) -> Span {
    tracing::info_span!(
        "ask",
        otel.name = "antiphon.ask.answer",
        antiphon.round = round,
        antiphon.asks = asks
    )
}

/// Notes an error in the span. `code` is that of a JSON-RPC error.
pub(crate) fn failed(span: &Span, code: Option<i64>, kind: &str) {
    if span.is_disabled() {
        return;
    }
    match code.map(|code| code.to_string()) {
        Some(code) => {
            span.record("error.type", code.as_str());
            span.record("rpc.response.status_code", code.as_str());
        }
        None => {
            span.record("error.type", kind);
        }
    }
    span.record("otel.status_code", "ERROR");
}

#[cfg(feature = "otel")]
pub(crate) mod otel {
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
}

#[cfg(not(feature = "otel"))]
pub(crate) mod otel {
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
}
