//! What an operator sees of requests: a span for each, and a line for each call that ends.
//!
//! The span has the names of OpenTelemetry's semantic conventions for MCP, so that `tracing-opentelemetry` exports it as they say.

use crate::{
    dispatch::reply::{CallReply, UnsentReply},
    errors::refusal::Refusal,
    identity::Caller,
    metrics::CallOutcome,
    offer::offers::Offers,
    reply::HasMeta,
    request::{admit::Admitted, carrier, observe::trace_of, receive::Request},
    runtime::Runtime,
    trace::{TraceContext, otel},
};
use antiphon_seal::Principal;
use antiphon_store::BlobDigest;
use antiphon_wire::{StringMember, escaped, method};
use std::{sync::atomic::Ordering, time::Instant};
use tracing::{
    Level, Span, enabled,
    field::{Empty, display},
};

/// The maximum number of characters of a target in a span.
const TARGET: usize = 200;

/// The value of a name that is not one of the server's: a client can invent names, and each would be a series of its own.
const OTHER: &str = "_OTHER";

/// The names of a request in its span.
struct Names {
    method: String,
    /// The name of the tool or prompt, if the server has it now. One that is found at run time has its name later: [`note_found`].
    target: Option<String>,
    /// The URI of a resource.
    uri: Option<String>,
}

impl Names {
    fn of(offers: &Offers, request: &Request<'_>) -> Self {
        let method = &*request.method;
        let is_known = method::CORE.contains(&method)
            || method::TASKS.contains(&method)
            || offers.profile.extensions.method(method).is_some();
        let text = request.target().and_then(StringMember::text);
        let is_offered = |name: &&str| match method {
            method::TOOLS_CALL => offers.lists.tools.has(name),
            method::PROMPTS_GET => offers.lists.prompts.has(name),
            _ => false,
        };
        let shown = |text: &str| escaped(text).limit(TARGET).to_string();
        Self {
            method: if is_known { method.to_owned() } else { OTHER.to_owned() },
            target: text.filter(is_offered).map(shown),
            uri: text.filter(|_| method == method::RESOURCES_READ).map(shown),
        }
    }

    /// Returns the name of the span. A URI or the id of a task would give it too many names.
    fn span(&self) -> String {
        match &self.target {
            Some(target) => format!("{} {target}", self.method),
            None => self.method.clone(),
        }
    }
}

/// Notes the name of a tool or prompt that was found at run time in the span of its request.
pub(crate) fn note_found(span: &Span, request: &Request<'_>) {
    let field = match &*request.method {
        method::TOOLS_CALL => "gen_ai.tool.name",
        method::PROMPTS_GET => "gen_ai.prompt.name",
        _ => return,
    };
    if let Some(name) = request.target().and_then(StringMember::text).filter(|_| !span.is_disabled()) {
        let name = escaped(name).limit(TARGET);
        span.record(field, display(&name));
        span.record("otel.name", format!("{} {name}", request.method));
    }
}

/// Returns the span of a request.
pub(crate) fn span(server: &Runtime, offers: &Offers, request: &Request<'_>, caller: &Caller<'_>) -> Span {
    // Nothing is computed for nobody.
    if !enabled!(Level::INFO) {
        return Span::none();
    }
    let names = Names::of(offers, request);
    let of = |wanted| names.target.as_ref().filter(|_| request.method == wanted).map(display);
    let trace = TraceContext::of(request.params.meta);
    let is_http = caller.headers.is_some();
    let session = carrier::session_id(request, caller);
    let is_leg_of_task = carrier::is_a_task(caller);
    let span = tracing::info_span!(
        "request",
        otel.name = names.span(),
        otel.kind = "server",
        mcp.method.name = %escaped(&names.method),
        mcp.protocol.version = %escaped(&request.version),
        jsonrpc.request.id = (!request.is_notification).then(|| display(escaped(&request.id))),
        gen_ai.operation.name = (request.method == method::TOOLS_CALL).then_some("execute_tool"),
        gen_ai.tool.name = of(method::TOOLS_CALL),
        gen_ai.prompt.name = of(method::PROMPTS_GET),
        mcp.resource.uri = names.uri.as_ref().map(display),
        mcp.session.id = session.map(short_digest),
        network.transport = (!is_leg_of_task).then_some(if is_http { "tcp" } else { "pipe" }),
        network.protocol.name = is_http.then_some("http"),
        traceparent = trace.as_ref().map(TraceContext::traceparent),
        antiphon.call.id = Empty,
        antiphon.call.traceparent = Empty,
        antiphon.leg = Empty,
        antiphon.refusal = Empty,
        error.r#type = Empty,
        rpc.response.status_code = Empty,
        otel.status_code = Empty,
    );
    // The leg of a task is inside of the task's span.
    if !is_leg_of_task {
        let of_call = || trace_of(server, request, carrier::principal(server, caller).ok()?.as_ref());
        otel::join(&span, request.params.meta, of_call);
    }
    span
}

/// Notes the error of a request in its span.
pub(crate) fn note_error(span: &Span, refusal: &Refusal) {
    if !span.is_disabled() {
        let code = refusal.to_error().code.0.to_string();
        span.record("rpc.response.status_code", code.as_str());
        span.record("error.type", code.as_str());
        span.record("antiphon.refusal", Refusal::LABELS[refusal.label()]);
        span.record("otel.status_code", "ERROR");
    }
}

/// The time at which a request was admitted; `None` if nobody reads the line about it.
pub(super) fn begin() -> Option<Instant> {
    enabled!(Level::INFO).then(Instant::now)
}

/// Counts and logs a call that has ended. One that asks goes on.
pub(super) fn log_end<T: HasMeta>(
    server: &Runtime,
    admitted: &Admitted<'_>,
    (call, leg): (Option<antiphon_seal::CallId>, u16),
    begin: Option<Instant>,
    reply: &Result<UnsentReply<T>, Refusal>,
) {
    let reply = reply.as_ref().map_or_else(Err, |unsent| unsent.reply.as_ref());
    let (outcome, reason) = match reply {
        Ok(CallReply::InputRequired(_)) => return,
        Ok(CallReply::Complete(result)) if result.is_error() => (CallOutcome::Error, None),
        Ok(CallReply::Complete(_)) => (CallOutcome::Complete, None),
        Ok(CallReply::Task(_)) => (CallOutcome::Task, None),
        Ok(CallReply::Again(_)) => (CallOutcome::SentAgain, None),
        Err(refusal) => (CallOutcome::Refused, Some(reason(refusal))),
    };
    server.metrics.call(outcome);
    let request = admitted.leg().request;
    request.noted.tool_failed.store(outcome == CallOutcome::Error, Ordering::Relaxed);
    let Some(begin) = begin else { return };
    if outcome == CallOutcome::Error {
        let span = Span::current();
        span.record("error.type", "tool_error");
        span.record("otel.status_code", "ERROR");
    }
    tracing::info!(
        method = %escaped(&request.method),
        target = ?escaped(admitted.leg().target).limit(TARGET),
        outcome = outcome.name(),
        reason,
        legs = leg,
        call = call.map(display),
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
    short_digest(format!("{parts:?}").as_bytes())
}

/// Returns eight bytes of the SHA-256, in hexadecimal digits.
fn short_digest(bytes: &[u8]) -> String {
    BlobDigest::of(bytes).as_bytes().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
