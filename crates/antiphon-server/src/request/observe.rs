//! The counts and events of a round, the time until its answers, and the trace of its call; also a look at the state of a request
//! before it is admitted, which decides nothing.

use crate::{
    request::receive::Request,
    runtime::Runtime,
    trace::{TraceContext, otel, split},
};
use antiphon_seal::{Binding, Call, CallId, Opened, Principal};
use antiphon_wire::{InputRequests, StringMember, escaped};
use serde_json::value::RawValue;
use std::{
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    time::SystemTime,
};
use tracing::{Level, Span, enabled};

/// Counts and logs a round that leaves.
pub(super) fn round(server: &Runtime, call: &Call, asks: &InputRequests, state: usize) {
    server.metrics.asks(asks);
    let id = call.id();
    let leg = call.leg();
    if leg == 1 {
        // The call has begun in this leg. Later ones have its id from their state.
        Span::current().record("antiphon.call.id", tracing::field::display(id));
    }
    tracing::debug!(call = %escaped(&id), leg, asks = asks.len(), state, "a round leaves");
}

/// Logs that a round was answered. `waited` began when the round left.
pub(super) fn answered(
    request: &Request<'_>,
    of_call: Option<&TraceContext>,
    call: &Call,
    waited: Range<SystemTime>,
) {
    if !enabled!(Level::INFO) {
        return;
    }
    let milliseconds = waited.end.duration_since(waited.start).unwrap_or_default().as_millis();
    let milliseconds = u64::try_from(milliseconds).unwrap_or(u64::MAX);
    tracing::debug!(call = %escaped(&call.id()), leg = call.leg(), milliseconds, "a round was answered");
    let of_request = TraceContext::of(request.params.meta);
    otel::waited(of_request.as_ref().or(of_call), Some(call.id()), waited.start, waited.end);
}

/// Notes the number of a leg in its span.
pub(super) fn leg(number: u16) {
    let span = Span::current();
    if !span.is_disabled() {
        span.record("antiphon.leg", number);
    }
}

/// Notes the call of a later leg in its span, which is linked to the call's trace if it is in another one.
pub(super) fn join(of_call: Option<&TraceContext>, call: &Call) {
    let span = Span::current();
    if span.is_disabled() {
        return;
    }
    span.record("antiphon.call.id", tracing::field::display(call.id()));
    if let Some(trace) = of_call {
        span.record("antiphon.call.traceparent", trace.traceparent());
        otel::link(trace);
    }
}

/// Returns the context that the state of a new call keeps: that of its first request, or else the span of its first leg. `None` if
/// nobody traces.
pub(super) fn trace_to_seal(request: &Request<'_>) -> Option<TraceContext> {
    enabled!(Level::INFO).then(|| TraceContext::of(request.params.meta).or_else(otel::current))?
}

/// Returns the call and the leg of the state that comes with a request, for a layer; `None` without a state, or with one that is
/// not of this request.
pub(crate) fn call_of(
    server: &Runtime,
    request: &Request<'_>,
    principal: Option<&Principal>,
) -> Option<(CallId, u16)> {
    let call = open(server, request, principal)?.call.next_leg()?;
    Some((call.id(), call.leg()))
}

/// Returns the trace in the state that comes with a request.
pub(crate) fn trace_of(
    server: &Runtime,
    request: &Request<'_>,
    principal: Option<&Principal>,
) -> Option<TraceContext> {
    split(&open(server, request, principal)?.payload).0
}

fn open(server: &Runtime, request: &Request<'_>, principal: Option<&Principal>) -> Option<Opened> {
    let token: &str = serde_json::from_str(request.params.request_state?.get()).ok()?;
    let target = request.target().and_then(StringMember::text)?;
    let arguments = request.params.arguments.map(RawValue::get);
    let binding = Binding { method: &request.method, target, arguments, principal, tool_version: 0 };
    let open = || server.sealing.sealer().open_unlimited(token, &binding, true, server.clock.now());
    // The author's codec: its panic is a refusal when the request is admitted.
    catch_unwind(AssertUnwindSafe(open)).ok()?.ok()
}
