//! A collector in memory: where a program has an exporter of OTLP.

use antiphon_examples::Result;
use opentelemetry::{global, trace::TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use std::fmt::Write as _;
use tracing::Level;
use tracing_subscriber::{Layer as _, filter::Targets, layer::SubscriberExt as _};

/// The spans of this process that ended.
#[derive(Clone)]
pub(crate) struct Collector(InMemorySpanExporter);

impl Collector {
    /// Collects the spans of antiphon in this process.
    pub(crate) fn install() -> Result<Self> {
        let collected = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(collected.clone()).build();
        // The layer exports the spans of `tracing`. The time of people began before it was known, so antiphon exports it by the global
        // provider. A global propagator is not needed: without one, W3C Trace Context is sent and read.
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("traced"));
        let of_antiphon = Targets::new()
            .with_target("antiphon_client", Level::DEBUG)
            .with_target("antiphon_server", Level::DEBUG);
        global::set_tracer_provider(provider);
        tracing::subscriber::set_global_default(
            tracing_subscriber::registry().with(layer.with_filter(of_antiphon)),
        )?;
        Ok(Self(collected))
    }

    /// Returns the spans of the trace in which a span has this name.
    pub(crate) fn trace_with(&self, name: &str) -> Vec<SpanData> {
        let mut all = self.all();
        let trace = all.iter().find(|span| span.name == name).map(|span| span.span_context.trace_id());
        all.retain(|span| Some(span.span_context.trace_id()) == trace);
        all
    }

    /// Returns all spans.
    pub(crate) fn all(&self) -> Vec<SpanData> {
        self.0.get_finished_spans().unwrap_or_default()
    }
}

/// Returns the spans of a trace as a tree, in the order of their beginning.
pub(crate) fn tree(spans: &[SpanData]) -> String {
    let is_root =
        |span: &&SpanData| spans.iter().all(|other| other.span_context.span_id() != span.parent_span_id);
    let mut text = String::new();
    sorted(spans.iter().filter(is_root)).into_iter().for_each(|root| write(spans, root, 0, &mut text));
    text
}

fn write(spans: &[SpanData], span: &SpanData, depth: usize, text: &mut String) {
    let leg = span.attributes.iter().find(|attribute| attribute.key.as_str() == "antiphon.leg");
    let leg = leg.map_or_else(String::new, |leg| format!(", leg {}", leg.value));
    let kind = format!("{:?}", span.span_kind).to_lowercase();
    let _ = writeln!(text, "{}{} ({kind}{leg})", "    ".repeat(depth), span.name);
    let children = spans.iter().filter(|child| child.parent_span_id == span.span_context.span_id());
    sorted(children).into_iter().for_each(|child| write(spans, child, depth + 1, text));
}

fn sorted<'a>(spans: impl Iterator<Item = &'a SpanData>) -> Vec<&'a SpanData> {
    let mut sorted: Vec<_> = spans.collect();
    sorted.sort_by_key(|span| span.start_time);
    sorted
}
