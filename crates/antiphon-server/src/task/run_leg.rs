//! One leg of a task: the request of the call, sent to the server itself.

use super::snapshot::{LegInput, Snapshot};
use crate::{
    errors::refusal::Refusal,
    trace::{TraceContext, otel},
};
use antiphon_store::TaskKey;
use antiphon_wire::{ErrorObject, InputRequests, Outcome, ProtocolVersion, escaped, meta_keys, method};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value, value::RawValue};
use std::time::Duration;
use tracing::Span;

/// The end of a leg.
pub(super) enum LegEnd {
    /// The call has its result.
    Completed(Box<RawValue>),
    /// The call has failed.
    Failed(ErrorObject),
    /// Questions, or none if the leg ended with state only.
    Round(InputRequests, Option<String>),
    /// The leg could not run now; it runs again with the same input, after this time.
    Again(Duration),
    /// A step of the leg failed for now. It runs again, but not for ever.
    FailedForNow(ErrorObject),
    /// The server is gone.
    Gone,
}

#[derive(Serialize)]
struct Message<'a> {
    jsonrpc: &'static str,
    id: &'static str,
    method: &'static str,
    params: Params<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(rename = "_meta")]
    meta: RequestMeta<'a>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Answers::is_empty")]
    input_responses: Answers<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a str>,
}

struct Answers<'a>(&'a [(String, Box<RawValue>)]);

impl Answers<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Answers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(path, answer)| (path, answer)))
    }
}

struct RequestMeta<'a> {
    capabilities: &'a Map<String, Value>,
    client_info: Option<&'a RawValue>,
    trace: Option<&'a TraceContext>,
}

impl Serialize for RequestMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(meta_keys::PROTOCOL_VERSION, ProtocolVersion::V2026_07_28.as_str())?;
        map.serialize_entry(meta_keys::CLIENT_CAPABILITIES, self.capabilities)?;
        if let Some(info) = self.client_info {
            map.serialize_entry(meta_keys::CLIENT_INFO, info)?;
        }
        if let Some(trace) = self.trace {
            map.serialize_entry("traceparent", trace.traceparent())?;
            if let Some(state) = trace.tracestate() {
                map.serialize_entry("tracestate", state)?;
            }
        }
        map.end()
    }
}

/// Returns the request of the next leg.
pub(super) fn message(snapshot: &Snapshot, input: &LegInput) -> Result<Vec<u8>, serde_json::Error> {
    let request = &snapshot.request;
    serde_json::to_vec(&Message {
        jsonrpc: "2.0",
        id: "task",
        method: method::TOOLS_CALL,
        params: Params {
            meta: RequestMeta {
                capabilities: &request.capabilities,
                client_info: request.client_info.as_deref(),
                trace: request.trace.as_ref(),
            },
            name: &request.name,
            arguments: request.arguments.as_deref(),
            input_responses: Answers(&input.answers),
            request_state: snapshot.state.as_deref(),
        },
    })
}

/// Returns the span of a leg: all legs of a task have the `traceparent` of the request that created it.
pub(super) fn span(key: TaskKey, snapshot: &Snapshot) -> Span {
    let traceparent = snapshot.request.trace.as_ref().map(TraceContext::traceparent);
    let span = tracing::info_span!("task", task = %escaped(&key), tool = ?escaped(&snapshot.request.name), traceparent);
    if let Some(trace) = &snapshot.request.trace {
        otel::set_parent(&span, trace);
    }
    span
}

/// Returns the end of a leg with this reply.
pub(super) fn end_of(reply: Option<Result<Box<RawValue>, Refusal>>) -> LegEnd {
    let result = match reply {
        None => return LegEnd::Gone,
        Some(Ok(result)) => result,
        Some(Err(refusal)) => return refused(&refusal),
    };
    match Outcome::<Value>::read(&result) {
        Ok(Outcome::Complete(_)) => LegEnd::Completed(result),
        Ok(Outcome::InputRequired(round)) => {
            let (requests, state) = round.into_parts();
            LegEnd::Round(requests, state)
        }
        other => {
            let fault = other.err().map(|fault| fault.to_string());
            tracing::error!(fault = ?fault.as_deref().map(|fault| escaped(fault).to_string()), "a leg of a task has an unknown result");
            LegEnd::Failed(ErrorObject::internal())
        }
    }
}

fn refused(refusal: &Refusal) -> LegEnd {
    match refusal.cause() {
        Refusal::InFlight { retry_after } => {
            LegEnd::Again((*retry_after).clamp(Duration::from_millis(100), Duration::from_secs(10)))
        }
        Refusal::Busy | Refusal::Store | Refusal::Codec => LegEnd::Again(Duration::from_secs(1)),
        Refusal::StepFailed { .. } => LegEnd::FailedForNow(refusal.to_error()),
        _ => LegEnd::Failed(refusal.to_error()),
    }
}
