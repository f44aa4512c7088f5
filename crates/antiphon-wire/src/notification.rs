//! The notifications about one request: how far it has come, what it logs, that it is no longer wanted.

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
    /// How far it has come, in a unit of the sender's choice.
    ///
    /// > The `progress` value **MUST** increase with each notification, even if the total is unknown.
    pub progress: Number,
    /// How far it has to come, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Number>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ProgressParams {
    /// So far, of an unknown total.
    pub fn new(progress_token: ProgressToken, progress: impl Into<Number>) -> Self {
        Self { progress_token, progress: progress.into(), total: None, message: None, meta: None }
    }
}

/// The params of `notifications/message`. Deprecated in 2026-07-28.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogMessageParams {
    /// How severe it is.
    pub level: LogLevel,
    /// What part of the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// What is said: a text, or anything else that is JSON.
    pub data: Value,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl LogMessageParams {
    /// From no named part of the server.
    pub fn new(level: LogLevel, data: impl Into<Value>) -> Self {
        Self { level, logger: None, data: data.into(), meta: None }
    }
}

/// The params of `notifications/cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledParams {
    /// The request that is no longer wanted.
    pub request_id: RequestId,
    /// Why, for logs and people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CancelledParams {
    /// For no stated reason.
    pub fn new(request_id: RequestId) -> Self {
        Self { request_id, reason: None, meta: None }
    }
}
