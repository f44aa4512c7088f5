//! The requests that the bench writes, and the replies that it reads.

use super::{Outcome, setup::Setup};
use crate::{
    client::{Call, calls::CallKind},
    server::operations::ReplyMessage,
};
use antiphon_wire::{
    AskKind, ClientCapabilities, ElicitRequest, Implementation, Incoming, InitializeParams, InputRequest,
    InputRequests, InputResponses, Meta, ProtocolVersion, RequestId, method, write_request,
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use std::time::Duration;

/// The members of a request that differ between the legs of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Retry {
    pub(super) answers: Option<InputResponses>,
    pub(super) state: Option<String>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    /// Absent in a session.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_responses: Option<&'a InputResponses>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a str>,
}

/// One request, as a correct client writes it.
pub(super) fn request(setup: &Setup, call: &Call, retry: &Retry, id: u32) -> Vec<u8> {
    let params = Params {
        meta: Some(Meta::for_request(&ProtocolVersion::V2026_07_28, Some(&client()), &capabilities(setup))),
        input_responses: retry.answers.as_ref(),
        request_state: retry.state.as_deref(),
        ..Params::of(call)
    };
    message(id, call.method(), &params)
}

/// The request of a call in a session.
pub(super) fn request_in_session(call: &Call, id: u32) -> Vec<u8> {
    message(id, call.method(), &Params::of(call))
}

/// The request that opens a session.
pub(super) fn initialize(setup: &Setup, id: u32) -> Vec<u8> {
    let params = InitializeParams::new(ProtocolVersion::V2025_11_25, capabilities(setup), client());
    message(id, method::INITIALIZE, &params)
}

impl<'a> Params<'a> {
    fn of(call: &'a Call) -> Self {
        let (name, uri) = match call.kind() {
            CallKind::Tool | CallKind::Prompt => (Some(call.name()), None),
            CallKind::Resource => (None, Some(call.name())),
        };
        Self { name, uri, arguments: call.arguments(), ..Self::default() }
    }
}

fn client() -> Implementation {
    Implementation::new("antiphon-testing", env!("CARGO_PKG_VERSION"))
}

fn capabilities(setup: &Setup) -> ClientCapabilities {
    ClientCapabilities::for_asks(setup.user.declared())
}

fn message(id: u32, method: &str, params: &impl Serialize) -> Vec<u8> {
    write_request(&RequestId::from(u64::from(id)), method, params)
        .unwrap_or_else(|fault| panic!("a request cannot be written: {fault}"))
}

/// The outcome of one request.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Ended(Outcome),
    Asks { asks: InputRequests, state: Option<String> },
}

impl Reply {
    pub(super) fn read(reply: Option<ReplyMessage>) -> Self {
        match reply {
            Some(reply) => Self::read_bytes(&reply.body),
            None => Self::stopped("the server treated the request as a notification"),
        }
    }

    fn read_bytes(body: &[u8]) -> Self {
        let response = match Incoming::parse(body) {
            Ok(Incoming::Response(response)) => response,
            Ok(_) => return Self::stopped("the reply is not a response"),
            Err(fault) => return Self::stopped(format!("the reply cannot be read: {}", fault.error.message)),
        };
        let result = match response.outcome {
            Ok(result) => result,
            Err(error) => return Self::Ended(Outcome::Error(written(&error))),
        };
        match antiphon_wire::Outcome::<Value>::read(result) {
            Ok(antiphon_wire::Outcome::Complete(result)) => Self::Ended(Outcome::Complete(result)),
            Ok(antiphon_wire::Outcome::InputRequired(required)) => {
                let (asks, state) = required.into_parts();
                Self::Asks { asks, state }
            }
            Ok(_) => Self::stopped("the bench does not support this kind of reply"),
            Err(fault) => Self::stopped(format!("the reply cannot be read: {fault}")),
        }
    }

    pub(super) fn stopped(why: impl Into<String>) -> Self {
        Self::Ended(Outcome::Stopped(why.into()))
    }

    /// Returns the time after which the server wants the same request again, if it says so.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let Self::Ended(Outcome::Error(error)) = self else { return None };
        error.pointer("/data/retryAfterMs").and_then(Value::as_u64).map(Duration::from_millis)
    }

    pub(super) fn is_frozen_refusal(&self) -> bool {
        matches!(self, Self::Ended(outcome) if outcome.is_frozen_refusal())
    }

    /// Returns the content that is compared with another reply to the same request. The state is left out because the
    /// server seals it anew each time; URLs are left out because they may contain a new reference.
    pub(super) fn comparable(&self, setup: &Setup) -> Value {
        match self {
            Self::Ended(outcome) => outcome.comparable(setup),
            Self::Asks { asks, .. } => {
                asks.iter().map(|(key, ask)| json!({ "key": key, "asks": question(ask) })).collect()
            }
        }
    }

    /// Returns a description for messages, without what is disregarded.
    pub(super) fn describe(&self, setup: &Setup) -> String {
        match self {
            Self::Ended(outcome) => outcome.disregarded(setup).to_string(),
            Self::Asks { asks, .. } => {
                let texts = asks.iter().map(|(key, ask)| format!("`{key}`: {}", question(ask)));
                format!("the questions {}", texts.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// The keys and kinds of the asks in the reply.
    pub(super) fn asked(&self) -> Vec<(String, AskKind)> {
        match self {
            Self::Ended(_) => Vec::new(),
            Self::Asks { asks, .. } => asks.iter().map(|(key, ask)| (key.to_owned(), ask.kind())).collect(),
        }
    }
}

fn question(ask: &InputRequest) -> Value {
    match ask {
        InputRequest::Elicit(ElicitRequest::Url { message, .. }) => json!({ "open": message }),
        other => written(other),
    }
}

fn written(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_else(|fault| Value::String(fault.to_string()))
}

/// Returns an answer that is invalid for this ask.
pub(super) fn invalid_answer(ask: &InputRequest) -> Value {
    match ask {
        InputRequest::Elicit(ElicitRequest::Form { requested_schema, .. }) => {
            // No field of a form is an object.
            let fields = requested_schema.fields().iter().map(|field| (field.name.clone(), json!({})));
            json!({ "action": "accept", "content": Value::Object(fields.collect()) })
        }
        InputRequest::Elicit(_) => json!({ "action": "perhaps" }),
        _ => json!("invalid_answer"),
    }
}
