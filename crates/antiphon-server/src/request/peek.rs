//! A look at the state of a request before it is admitted: for layers, and for the parent of its span. It decides nothing.

use crate::{request::receive::Request, runtime::Runtime, trace};
use antiphon_seal::{Binding, CallId, Opened, Principal};
use antiphon_wire::StringMember;
use serde_json::value::RawValue;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
) -> Option<trace::TraceContext> {
    trace::sealed::split(&open(server, request, principal)?.payload).0
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
