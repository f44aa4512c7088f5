//! Helpers of the transport tests.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod peer;
#[cfg(feature = "http")]
pub(crate) mod server;

use antiphon::client::transport::{IncomingNotification, OutgoingRequest, Transport, TransportErrorKind};
use antiphon_wire::{ProtocolVersion, RequestId, write_request};
use serde_json::{Value, json};
use std::time::Duration;

/// The maximum time that a test waits for one event.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// The outcome of a request, in a comparable form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The result.
    Result(Value),
    /// The server's error code.
    Error(i64),
    /// The transport's error, and its text.
    Failed(TransportErrorKind, String),
}

impl Outcome {
    /// Returns true if the outcome matches `expected`, whose text may be a part of the actual text.
    pub(crate) fn fits(&self, expected: &Self) -> bool {
        match (self, expected) {
            (Self::Failed(kind, text), Self::Failed(expected, part)) => {
                kind == expected && text.contains(part)
            }
            _ => self == expected,
        }
    }
}

pub(crate) fn failed(kind: TransportErrorKind, text: &str) -> Outcome {
    Outcome::Failed(kind, text.into())
}

pub(crate) fn request(id: i64, method: &'static str) -> OutgoingRequest {
    let id = RequestId::from(id);
    let body = write_request(&id, method, &json!({})).unwrap();
    OutgoingRequest::new(id, method, ProtocolVersion::V2026_07_28, body)
}

/// The whole text of an error: its own, and that of its cause.
pub(crate) fn error_text(error: &antiphon::client::transport::TransportError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Sends a request; gives its outcome and the methods of its notifications.
pub(crate) async fn ask(transport: &dyn Transport, request: OutgoingRequest) -> (Outcome, Vec<String>) {
    let mut methods = Vec::new();
    let mut on_notification = |notification: IncomingNotification| methods.push(notification.method);
    let answer = tokio::time::timeout(DEADLINE, transport.exchange(request, &mut on_notification)).await;
    let outcome = match answer.expect("an outcome before the deadline") {
        Ok(Ok(result)) => Outcome::Result(serde_json::from_str(result.get()).unwrap()),
        Ok(Err(error)) => Outcome::Error(error.code.0),
        Err(error) => Outcome::Failed(error.kind(), error_text(&error)),
    };
    (outcome, methods)
}

/// Waits for `future` with a time limit.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("this happens before the deadline")
}
