//! The requests that the bench writes by itself, and what it reads from the replies.

use super::{Bench, Outcome};
use crate::{
    client::{Call, CallKind},
    server::ReplyMessage,
};
use antiphon_wire::{
    AskKind, ClientCapabilities, ElicitRequest, Implementation, Incoming, InputRequest, InputRequests,
    InputResponses, Meta, ProtocolVersion, RequestId, write_request,
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

/// What differs from leg to leg of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Retry {
    pub(super) answers: Option<InputResponses>,
    pub(super) state: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(rename = "_meta")]
    meta: Meta,
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
pub(super) fn request(bench: &Bench, call: &Call, retry: &Retry, id: u32) -> Vec<u8> {
    let (name, uri) = match call.kind() {
        CallKind::Tool | CallKind::Prompt => (Some(call.name()), None),
        CallKind::Resource => (None, Some(call.name())),
    };
    let client = Implementation::new("antiphon-testing", env!("CARGO_PKG_VERSION"));
    let can = ClientCapabilities::for_asks(bench.person.declared());
    let params = Params {
        meta: Meta::for_request(&ProtocolVersion::V2026_07_28, Some(&client), &can),
        name,
        uri,
        arguments: call.arguments(),
        input_responses: retry.answers.as_ref(),
        request_state: retry.state.as_deref(),
    };
    write_request(&RequestId::from(u64::from(id)), call.method(), &params)
        .unwrap_or_else(|fault| panic!("a request cannot be written: {fault}"))
}

/// What one request came to.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Ended(Outcome),
    Asks { asks: InputRequests, state: Option<String> },
}

impl Reply {
    pub(super) fn read(reply: Option<ReplyMessage>) -> Self {
        match reply {
            Some(reply) => Self::read_bytes(&reply.body),
            None => Self::stopped("the server took the request for a notification"),
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
            Ok(_) => Self::stopped("the reply is of a kind this bench does not know"),
            Err(fault) => Self::stopped(format!("the reply cannot be read: {fault}")),
        }
    }

    fn stopped(why: impl Into<String>) -> Self {
        Self::Ended(Outcome::Stopped(why.into()))
    }

    pub(super) fn is_frozen_refusal(&self) -> bool {
        matches!(self, Self::Ended(outcome) if outcome.is_frozen_refusal())
    }

    /// What it says, for comparison with another reply to the same request: not the state, which is sealed anew each
    /// time, and not the addresses of pages, which hold a reference that may be made anew.
    pub(super) fn said(&self, bench: &Bench) -> Value {
        match self {
            Self::Ended(outcome) => outcome.comparable(bench),
            Self::Asks { asks, .. } => {
                asks.iter().map(|(key, ask)| json!({ "key": key, "asks": question(ask) })).collect()
            }
        }
    }

    /// For people.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Ended(outcome) => outcome.to_string(),
            Self::Asks { asks, .. } => {
                let texts = asks.iter().map(|(key, ask)| format!("`{key}`: {}", question(ask)));
                format!("the questions {}", texts.collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// The keys and kinds of what it asks.
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

/// An answer that fits no question of this kind.
pub(super) fn nonsense(ask: &InputRequest) -> Value {
    match ask {
        InputRequest::Elicit(ElicitRequest::Form { requested_schema, .. }) => {
            // No field of a form is an object.
            let fields = requested_schema.fields().iter().map(|field| (field.name.clone(), json!({})));
            json!({ "action": "accept", "content": Value::Object(fields.collect()) })
        }
        InputRequest::Elicit(_) => json!({ "action": "perhaps" }),
        _ => json!("nonsense"),
    }
}
