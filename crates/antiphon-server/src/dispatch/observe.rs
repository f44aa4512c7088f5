//! What an operator sees of requests: a span for each, and a line for each call that ends.
//!
//! The span has the names of OpenTelemetry's semantic conventions for MCP, so that `tracing-opentelemetry` exports it as they say.

use crate::{
    dispatch::reply::{CallReply, UnsentReply},
    errors::refusal::Refusal,
    identity::Caller,
    reply::HasMeta,
    request::{TraceContext, admit::Admitted, receive::Request},
};
use antiphon_seal::Principal;
use antiphon_store::BlobDigest;
use antiphon_wire::{StringMember, escaped, method};
use std::time::Instant;
use tracing::{Level, Span, enabled, field::Empty};

/// The maximum number of characters of a target in a span.
const TARGET: usize = 200;

/// Returns the span of a request.
pub(crate) fn span(request: &Request<'_>, caller: &Caller<'_>) -> Span {
    // Nothing is computed for nobody.
    if !enabled!(Level::INFO) {
        return Span::none();
    }
    let target = request.target().and_then(StringMember::text).map(|text| escaped(text).limit(TARGET));
    let method = escaped(&request.method).limit(TARGET);
    let name = match &target {
        Some(target) => format!("{method} {target}"),
        None => method.to_string(),
    };
    let of = |wanted| target.as_ref().filter(|_| request.method == wanted).map(tracing::field::display);
    let trace = TraceContext::of(request.params.meta);
    tracing::info_span!(
        "request",
        otel.name = name,
        otel.kind = "server",
        mcp.method.name = %method,
        mcp.protocol.version = %escaped(&request.version),
        jsonrpc.request.id = (!request.is_notification).then(|| display(escaped(&request.id))),
        gen_ai.operation.name = (request.method == method::TOOLS_CALL).then_some("execute_tool"),
        gen_ai.tool.name = of(method::TOOLS_CALL),
        gen_ai.prompt.name = of(method::PROMPTS_GET),
        mcp.resource.uri = of(method::RESOURCES_READ),
        network.transport = if caller.headers.is_some() { "tcp" } else { "pipe" },
        traceparent = trace.as_ref().map(TraceContext::traceparent),
        antiphon.call.id = Empty,
        antiphon.leg = Empty,
        error.r#type = Empty,
        rpc.response.status_code = Empty,
    )
}

/// Notes the error of a request in its span.
pub(crate) fn note_error(span: &Span, refusal: &Refusal) {
    if !span.is_disabled() {
        let error = refusal.to_error();
        span.record("rpc.response.status_code", error.code.0);
        span.record("error.type", reason(refusal).as_str());
    }
}

/// The time at which a request was admitted; `None` if nobody reads the line about it.
pub(super) fn begin() -> Option<Instant> {
    enabled!(Level::INFO).then(Instant::now)
}

/// Logs a call that has ended. One that asks goes on.
pub(super) fn log_end<T: HasMeta>(
    admitted: &Admitted<'_>,
    (call, leg): (Option<antiphon_seal::CallId>, u16),
    begin: Option<Instant>,
    reply: &Result<UnsentReply<T>, Refusal>,
) {
    let Some(begin) = begin else { return };
    let reply = reply.as_ref().map_or_else(Err, |unsent| unsent.reply.as_ref());
    let span = Span::current();
    span.record("antiphon.leg", leg);
    if let Some(call) = call {
        span.record("antiphon.call.id", tracing::field::display(call));
    }
    let (outcome, reason) = match reply {
        Ok(CallReply::InputRequired(_)) => return,
        Ok(CallReply::Complete(result)) if result.is_error() => ("error", None),
        Ok(CallReply::Complete(_)) => ("complete", None),
        Ok(CallReply::Task(_)) => ("task", None),
        Ok(CallReply::Again(_)) => ("sent again", None),
        Err(refusal) => ("refused", Some(reason(refusal))),
    };
    tracing::info!(
        method = %escaped(&admitted.leg().request.method),
        target = ?escaped(admitted.leg().target).limit(TARGET),
        outcome,
        reason,
        legs = leg,
        call = call.map(tracing::field::display),
        milliseconds = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
        principal = admitted.principal().map(digest),
        "a call ended"
    );
}

/// Returns `data.reason` of a refusal's error, or else its code.
fn reason(refusal: &Refusal) -> String {
    let error = refusal.to_error();
    let reason = error.data.as_ref().and_then(|data| data.get("reason")?.as_str().map(str::to_owned));
    reason.unwrap_or_else(|| error.code.0.to_string())
}

/// Returns eight bytes of the SHA-256 of a principal: the same on every instance, and no name.
fn digest(principal: &Principal) -> String {
    let parts = (principal.issuer(), principal.client_id(), principal.subject());
    let digest = BlobDigest::of(format!("{parts:?}").as_bytes());
    digest.as_bytes().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
