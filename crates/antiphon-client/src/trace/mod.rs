//! The spans of calls and requests, by the names of OpenTelemetry's conventions for MCP.

#[cfg(feature = "otel")]
pub(crate) mod otel;
#[cfg(not(feature = "otel"))]
#[path = "no_otel.rs"]
pub(crate) mod otel;

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
