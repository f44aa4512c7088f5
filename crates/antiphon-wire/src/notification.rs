//! The notifications about one request: its progress, its log messages, its cancellation.

use crate::{LogLevel, Meta, ProgressToken, RequestId};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// The params of `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressParams {
    /// The token of the request.
    pub progress_token: ProgressToken,
    /// The progress so far, in a unit that the sender chooses.
    ///
    /// > The `progress` value **MUST** increase with each notification, even if the total is unknown.
    pub progress: Number,
    /// The total, in the unit of `progress`, if the total is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Number>,
    /// A message for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ProgressParams {
    /// Creates the params for this progress of an unknown total.
    pub fn new(progress_token: ProgressToken, progress: impl Into<Number>) -> Self {
        Self { progress_token, progress: progress.into(), total: None, message: None, meta: None }
    }
}

/// The params of `notifications/message`. Deprecated in 2026-07-28.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogMessageParams {
    /// The severity.
    pub level: LogLevel,
    /// The part of the server that logs the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The content of the log message: a text or any other JSON value.
    pub data: Value,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl LogMessageParams {
    /// Creates a log message without a named part of the server.
    pub fn new(level: LogLevel, data: impl Into<Value>) -> Self {
        Self { level, logger: None, data: data.into(), meta: None }
    }
}

/// The params of `notifications/cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledParams {
    /// The id of the cancelled request.
    pub request_id: RequestId,
    /// The reason, for logs and people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CancelledParams {
    /// Creates the params without a reason.
    pub fn new(request_id: RequestId) -> Self {
        Self { request_id, reason: None, meta: None }
    }
}
