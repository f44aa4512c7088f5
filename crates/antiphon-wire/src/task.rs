//! Tasks: calls that outlive their request. The extension `io.modelcontextprotocol/tasks`.

use crate::{
    ErrorObject, InputRequests, InputResponses, Meta,
    lenient::optional_object_or_empty,
    members::{Object, optional_whole},
    tag::{Complete, tag},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap as _};
use serde_json::value::{RawValue, to_raw_value};
use std::fmt;

/// The name of the extension in `capabilities.extensions` of clients and servers.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

tag! {
    /// The constant `"resultType": "task"`.
    pub(crate) TaskTag = "task"
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// The request is being processed.
    Working,
    /// The task waits for answers.
    InputRequired,
    /// The request has its result, which may be a tool's error (`isError`).
    Completed,
    /// The request failed with a JSON-RPC error.
    Failed,
    /// The request was cancelled before it was completed.
    Cancelled,
}

impl TaskStatus {
    /// Returns true if the status never changes again.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The operational data of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// The id. Whoever knows it may be able to read the task.
    pub task_id: String,
    /// The status.
    pub status: TaskStatus,
    /// A text on the status for a person or a model.
    pub status_message: Option<String>,
    /// The moment of creation, in ISO 8601.
    pub created_at: String,
    /// The moment of the last change, in ISO 8601.
    pub last_updated_at: String,
    /// The time from the creation after which the server may discard the task, in milliseconds; `None` for no limit.
    pub ttl_ms: Option<u64>,
    /// The suggested time between two polls, in milliseconds.
    pub poll_interval_ms: Option<u64>,
}

impl Task {
    /// Creates a task without a status message, a limit of its time and a suggested time between polls. Both moments are
    /// this one, in ISO 8601.
    pub fn new(task_id: impl Into<String>, status: TaskStatus, created_at: impl Into<String>) -> Self {
        let created_at = created_at.into();
        Self {
            task_id: task_id.into(),
            status,
            status_message: None,
            last_updated_at: created_at.clone(),
            created_at,
            ttl_ms: None,
            poll_interval_ms: None,
        }
    }
}

/// A task with the content of its status: the result of `tasks/get` and the params of `notifications/tasks`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DetailedTask {
    /// The operational data.
    pub task: Task,
    /// The content of the status.
    pub detail: TaskDetail,
    /// The metadata (`_meta`).
    pub meta: Option<Meta>,
}

/// The content of a task's status.
#[derive(Clone, Debug)]
pub enum TaskDetail {
    /// Nothing: the task is working, or was cancelled.
    None,
    /// The questions without an answer, all of them.
    InputRequests(InputRequests),
    /// The result of the request, as JSON.
    Result(Box<RawValue>),
    /// The error of the request.
    Error(ErrorObject),
}

impl DetailedTask {
    /// Creates a task with this content. The status of `task` must be the one that the content belongs to.
    pub fn new(task: Task, detail: TaskDetail) -> Self {
        Self { task, detail, meta: None }
    }

    /// Returns the questions without an answer.
    pub fn input_requests(&self) -> Option<&InputRequests> {
        match &self.detail {
            TaskDetail::InputRequests(requests) => Some(requests),
            _ => None,
        }
    }

    /// Returns the same task with this `_meta`.
    #[must_use]
    pub fn with_meta(mut self, meta: Option<Meta>) -> Self {
        self.meta = meta;
        self
    }
}

/// The members of a task on the wire.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskIn {
    task_id: String,
    status: TaskStatus,
    #[serde(default)]
    status_message: Option<String>,
    #[serde(default)]
    created_at: String,
    #[serde(default)]
    last_updated_at: String,
    #[serde(default, deserialize_with = "optional_whole")]
    ttl_ms: Option<u64>,
    #[serde(default, deserialize_with = "optional_whole")]
    poll_interval_ms: Option<u64>,
    #[serde(default, deserialize_with = "optional_object_or_empty")]
    input_requests: Option<InputRequests>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<ErrorObject>,
    #[serde(rename = "_meta", default)]
    meta: Option<Meta>,
}

impl TaskIn {
    fn task(&self) -> Task {
        Task {
            task_id: self.task_id.clone(),
            status: self.status,
            status_message: self.status_message.clone(),
            created_at: self.created_at.clone(),
            last_updated_at: self.last_updated_at.clone(),
            ttl_ms: self.ttl_ms,
            poll_interval_ms: self.poll_interval_ms,
        }
    }
}

impl<'de> Deserialize<'de> for DetailedTask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(read) = <Object<TaskIn>>::deserialize(deserializer)?;
        let task = read.task();
        let missing = |member: &str| {
            de::Error::custom(format_args!("the status is `{}`, and `{member}` is missing", task.status))
        };
        let detail = match task.status {
            TaskStatus::Working | TaskStatus::Cancelled => TaskDetail::None,
            TaskStatus::InputRequired => {
                TaskDetail::InputRequests(read.input_requests.ok_or_else(|| missing("inputRequests"))?)
            }
            TaskStatus::Completed => TaskDetail::Result(read.result.ok_or_else(|| missing("result"))?),
            TaskStatus::Failed => TaskDetail::Error(read.error.ok_or_else(|| missing("error"))?),
        };
        Ok(Self { task, detail, meta: read.meta })
    }
}

impl Serialize for DetailedTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_task(&mut map, &self.task)?;
        match &self.detail {
            TaskDetail::None => {}
            TaskDetail::InputRequests(requests) => map.serialize_entry("inputRequests", requests)?,
            TaskDetail::Result(result) => map.serialize_entry("result", result)?,
            TaskDetail::Error(error) => map.serialize_entry("error", error)?,
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

fn write_task<M: serde::ser::SerializeMap>(map: &mut M, task: &Task) -> Result<(), M::Error> {
    map.serialize_entry("taskId", &task.task_id)?;
    map.serialize_entry("status", &task.status)?;
    if let Some(message) = &task.status_message {
        map.serialize_entry("statusMessage", message)?;
    }
    map.serialize_entry("createdAt", &task.created_at)?;
    map.serialize_entry("lastUpdatedAt", &task.last_updated_at)?;
    // Required, and `null` for no limit.
    map.serialize_entry("ttlMs", &task.ttl_ms)?;
    if let Some(interval) = task.poll_interval_ms {
        map.serialize_entry("pollIntervalMs", &interval)?;
    }
    Ok(())
}

/// The result of `tools/call` if the call has become a task: `resultType` is `task`.
///
/// > Servers **MUST** set `resultType` to `"task"` when returning a `CreateTaskResult`
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task in its first status.
    pub task: Task,
    /// The metadata (`_meta`).
    pub meta: Option<Meta>,
}

impl CreateTaskResult {
    /// Creates the result for a task.
    pub fn new(task: Task) -> Self {
        Self { task, meta: None }
    }

    /// Returns the same result with this `_meta`.
    #[must_use]
    pub fn with_meta(mut self, meta: Option<Meta>) -> Self {
        self.meta = meta;
        self
    }
}

impl Serialize for CreateTaskResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("resultType", &TaskTag)?;
        write_task(&mut map, &self.task)?;
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for CreateTaskResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(read) = <Object<TaskIn>>::deserialize(deserializer)?;
        Ok(Self { task: read.task(), meta: read.meta })
    }
}

/// The result of `tasks/get`: a task, with `resultType` `complete`.
#[derive(Clone, Debug)]
pub struct GetTaskResult(pub DetailedTask);

impl Serialize for GetTaskResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The members of the task, behind the one that says what they are.
        let task = to_raw_value(&self.0).map_err(serde::ser::Error::custom)?;
        let members: std::collections::BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(task.get()).map_err(serde::ser::Error::custom)?;
        let mut map = serializer.serialize_map(Some(members.len() + 1))?;
        map.serialize_entry("resultType", &Complete)?;
        members.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for GetTaskResult {
    /// Reads the task. `resultType` is ignored: the examples of the extension have `task` there too.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DetailedTask::deserialize(deserializer).map(Self)
    }
}

/// The result of `tasks/update` and `tasks/cancel`: an acknowledgement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskAcknowledged {
    /// The result type: always `complete`.
    #[serde(default)]
    pub result_type: Complete,
    /// The metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The params of `tasks/get` and `tasks/cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskParams {
    /// The id of the task.
    pub task_id: String,
    /// The version, identity and capabilities of the client.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl TaskParams {
    /// Creates the params for this task.
    pub fn new(task_id: impl Into<String>, meta: Meta) -> Self {
        Self { task_id: task_id.into(), meta }
    }
}

/// The params of `tasks/update`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskParams {
    /// The id of the task.
    pub task_id: String,
    /// The answers to questions of the task, by key.
    pub input_responses: InputResponses,
    /// The version, identity and capabilities of the client.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl UpdateTaskParams {
    /// Creates the params with these answers.
    pub fn new(task_id: impl Into<String>, input_responses: InputResponses, meta: Meta) -> Self {
        Self { task_id: task_id.into(), input_responses, meta }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn tasks_are_read_as_they_were_written() {
        let base = json!({"taskId": "t", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:01Z", "ttlMs": null});
        for detail in [
            json!({"status": "working", "statusMessage": "1 of 2", "pollIntervalMs": 500}),
            json!({"status": "cancelled", "ttlMs": 60000}),
            json!({"status": "completed", "result": {"content": [], "isError": true}}),
            json!({"status": "failed", "error": {"code": -32603, "message": "no"}}),
            json!({"status": "input_required", "inputRequests": {"name": {"method": "roots/list"}}}),
            json!({"status": "working", "_meta": {"a": 1}}),
        ] {
            let mut expected = base.clone();
            for (name, value) in detail.as_object().unwrap() {
                expected[name] = value.clone();
            }
            let task: DetailedTask = serde_json::from_str(&expected.to_string()).unwrap();
            assert_eq!(serde_json::to_value(&task).unwrap(), expected);
            let got = serde_json::to_value(GetTaskResult(task.clone())).unwrap();
            assert_eq!(got["resultType"], "complete");
            let again: GetTaskResult = serde_json::from_str(&got.to_string()).unwrap();
            assert_eq!(serde_json::to_value(&again.0).unwrap(), expected);
            let created = serde_json::to_value(CreateTaskResult::new(task.task)).unwrap();
            assert_eq!((&created["resultType"], &created["taskId"]), (&json!("task"), &json!("t")));
        }
    }

    #[test]
    fn a_status_needs_its_content() {
        for status in ["input_required", "completed", "failed", "Working", "unknown"] {
            let text = json!({"taskId": "t", "status": status, "ttlMs": 1}).to_string();
            assert!(serde_json::from_str::<DetailedTask>(&text).is_err(), "{status}");
        }
        let array: Result<DetailedTask, _> = serde_json::from_value::<Value>(json!(["t", "working"]))
            .and_then(|value| serde_json::from_str(&value.to_string()));
        assert!(array.is_err());
    }
}
