//! Tasks as the revision 2025-11-25 has them (experimental): nested in the result of their creation, with `ttl` and
//! `pollInterval`. The draft after that revision has the same types.
//!
//! The types of the extension, [`Task`] and [`TaskStatus`], hold the data; only the members on the wire differ.

use crate::{
    ClientCapabilities, Meta, ServerCapabilities, Task, TaskStatus,
    members::{Object, optional_whole},
    meta_keys,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};
use serde_json::{Map, Value, json, value::RawValue};
use std::borrow::Cow;

/// A task: the result of `tasks/get` and `tasks/cancel`, and the params of `notifications/tasks/status`.
///
/// A status that begins with a capital letter is read too, as the draft's examples write it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LegacyTask {
    /// The operational data. `ttl_ms` is `ttl` here, and `poll_interval_ms` is `pollInterval`.
    pub task: Task,
    /// The metadata (`_meta`).
    pub meta: Option<Meta>,
}

impl LegacyTask {
    /// Creates the result for a task.
    pub fn new(task: Task) -> Self {
        Self { task, meta: None }
    }

    /// Returns the same task with this `_meta`.
    #[must_use]
    pub fn with_meta(mut self, meta: Option<Meta>) -> Self {
        self.meta = meta;
        self
    }

    fn write<M: SerializeMap>(&self, members: &mut M) -> Result<(), M::Error> {
        let task = &self.task;
        members.serialize_entry("taskId", &task.task_id)?;
        members.serialize_entry("status", &task.status)?;
        if let Some(message) = &task.status_message {
            members.serialize_entry("statusMessage", message)?;
        }
        members.serialize_entry("createdAt", &task.created_at)?;
        members.serialize_entry("lastUpdatedAt", &task.last_updated_at)?;
        // > Receivers **MUST** include the actual `ttl` duration (or `null` for unlimited) in `tasks/get` responses.
        members.serialize_entry("ttl", &task.ttl_ms)?;
        if let Some(interval) = task.poll_interval_ms {
            members.serialize_entry("pollInterval", &interval)?;
        }
        match &self.meta {
            Some(meta) => members.serialize_entry("_meta", meta),
            None => Ok(()),
        }
    }
}

impl Serialize for LegacyTask {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        self.write(&mut members)?;
        members.end()
    }
}

impl<'de> Deserialize<'de> for LegacyTask {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct TaskIn<'a> {
            task_id: String,
            #[serde(borrow)]
            status: Cow<'a, str>,
            #[serde(default)]
            status_message: Option<String>,
            #[serde(default)]
            created_at: String,
            #[serde(default)]
            last_updated_at: String,
            #[serde(default, deserialize_with = "optional_whole")]
            ttl: Option<u64>,
            #[serde(default, deserialize_with = "optional_whole")]
            poll_interval: Option<u64>,
            #[serde(rename = "_meta", default)]
            meta: Option<Meta>,
        }
        let Object(read) = <Object<TaskIn<'_>>>::deserialize(deserializer)?;
        let status = status_of(&read.status)
            .ok_or_else(|| de::Error::custom(format_args!("unknown status of a task: {:?}", read.status)))?;
        let mut task = Task::new(read.task_id, status, read.created_at);
        (task.status_message, task.last_updated_at) = (read.status_message, read.last_updated_at);
        (task.ttl_ms, task.poll_interval_ms) = (read.ttl, read.poll_interval);
        Ok(Self { task, meta: read.meta })
    }
}

/// Returns the status of this name, with or without capital letters: `Working`, `InputRequired`, `input_required`.
fn status_of(name: &str) -> Option<TaskStatus> {
    let name: String =
        name.chars().filter(|sign| *sign != '_').map(|sign| sign.to_ascii_lowercase()).collect();
    match &*name {
        "working" => Some(TaskStatus::Working),
        "inputrequired" => Some(TaskStatus::InputRequired),
        "completed" => Some(TaskStatus::Completed),
        "failed" => Some(TaskStatus::Failed),
        "cancelled" => Some(TaskStatus::Cancelled),
        _ => None,
    }
}

/// The result of a request that has become a task: the task is nested, and there is no `resultType`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LegacyCreateTaskResult {
    /// The task in its first status.
    pub task: LegacyTask,
    /// The metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl LegacyCreateTaskResult {
    /// Creates the result for a task.
    pub fn new(task: Task) -> Self {
        Self { task: LegacyTask::new(task), meta: None }
    }

    /// Returns the same result with this `_meta`.
    #[must_use]
    pub fn with_meta(mut self, meta: Option<Meta>) -> Self {
        self.meta = meta;
        self
    }

    /// Reads the result of a request that may have become a task. `None` if `result` has no member `task` that is a task.
    pub fn of(result: &RawValue) -> Option<Self> {
        serde_json::from_str(result.get()).ok()
    }
}

/// The result of `tasks/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListTasksResult {
    /// The tasks of this page.
    pub tasks: Vec<LegacyTask>,
    /// The cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// The metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ListTasksResult {
    /// Creates a page of tasks, with the cursor of the next page.
    pub fn new(tasks: Vec<Task>, next_cursor: Option<String>) -> Self {
        Self { tasks: tasks.into_iter().map(LegacyTask::new).collect(), next_cursor, meta: None }
    }
}

/// The value of [`meta_keys::RELATED_TASK`]: the task that a message belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RelatedTaskMetadata {
    /// The id of the task.
    pub task_id: String,
}

impl RelatedTaskMetadata {
    /// Creates the metadata of a message that belongs to this task.
    pub fn new(task_id: impl Into<String>) -> Self {
        Self { task_id: task_id.into() }
    }
}

impl Meta {
    /// Returns the metadata of a message that belongs to a task.
    ///
    /// > All requests, notifications, and responses related to a task **MUST** include the
    /// > `io.modelcontextprotocol/related-task` key in their `_meta` field
    pub fn for_related_task(task_id: &str) -> Self {
        Self::default().with_related_task(task_id)
    }

    /// Returns the same metadata with the task that the message belongs to.
    #[must_use]
    pub fn with_related_task(mut self, task_id: &str) -> Self {
        self.0.insert(meta_keys::RELATED_TASK.to_owned(), json!({ "taskId": task_id }));
        self
    }

    /// Returns the id of the task that the message belongs to, if there is one.
    pub fn related_task(&self) -> Option<&str> {
        self.0.get(meta_keys::RELATED_TASK)?.get("taskId")?.as_str()
    }
}

/// Returns the id of the task that a message with these params, or this result, belongs to.
pub fn related_task_of(params: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: RelatedMeta,
    }
    #[derive(Deserialize)]
    struct RelatedMeta {
        #[serde(rename = "io.modelcontextprotocol/related-task")]
        related: RelatedTaskMetadata,
    }
    serde_json::from_str::<Params>(params.get()).ok().map(|params| params.meta.related.task_id)
}

/// The capability `tasks` of a client or server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TasksCapability {
    /// `tasks/list`.
    pub list: bool,
    /// `tasks/cancel`.
    pub cancel: bool,
    /// Tasks for `tools/call`: the only request of a client that may become one.
    pub tools_call: bool,
}

impl TasksCapability {
    /// Everything that a server can declare.
    pub const ALL: Self = Self { list: true, cancel: true, tools_call: true };

    /// Returns the capability as the value of the member `tasks`.
    pub fn to_value(self) -> Value {
        let mut members = Map::new();
        if self.list {
            members.insert("list".to_owned(), json!({}));
        }
        if self.cancel {
            members.insert("cancel".to_owned(), json!({}));
        }
        let requests = if self.tools_call { json!({ "tools": { "call": {} } }) } else { json!({}) };
        members.insert("requests".to_owned(), requests);
        Value::Object(members)
    }

    fn of(members: &Map<String, Value>) -> Option<Self> {
        let tasks = members.get("tasks")?.as_object()?;
        let has = |value: Option<&Value>| value.is_some_and(Value::is_object);
        let tools = tasks.get("requests").and_then(|requests| requests.get("tools"));
        Some(Self {
            list: has(tasks.get("list")),
            cancel: has(tasks.get("cancel")),
            tools_call: has(tools.and_then(|tools| tools.get("call"))),
        })
    }
}

impl ServerCapabilities {
    /// Declares the capability `tasks` of the revision 2025-11-25.
    #[must_use]
    pub fn with_tasks(mut self, tasks: TasksCapability) -> Self {
        self.0.insert("tasks".to_owned(), tasks.to_value());
        self
    }

    /// Returns the capability `tasks`, if the server declares it.
    ///
    /// > The set of capabilities in `capabilities.tasks.requests` is exhaustive.
    pub fn tasks(&self) -> Option<TasksCapability> {
        TasksCapability::of(&self.0)
    }
}

impl ClientCapabilities {
    /// Returns the capability `tasks` of the revision 2025-11-25, if the client declares it.
    pub fn tasks(&self) -> Option<TasksCapability> {
        TasksCapability::of(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TaskMetadata, TaskSupport};
    use serde::de::DeserializeOwned;

    /// Reads the text, and compares what is written with it.
    fn check<T: DeserializeOwned + Serialize>(text: &Value) {
        let read: T = serde_json::from_str(&text.to_string()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), *text);
    }

    /// The task of the specification's examples.
    fn task(status: &str, more: Value) -> Value {
        let mut task = json!({
            "taskId": "786512e2-9e0d-44bd-8f29-789f320fe840", "status": status,
            "createdAt": "2025-11-25T10:30:00Z", "lastUpdatedAt": "2025-11-25T10:40:00Z", "ttl": 30000,
        });
        for (name, value) in more.as_object().unwrap() {
            task[name] = value.clone();
        }
        task
    }

    #[test]
    fn the_examples_of_the_page_are_read_and_written() {
        let in_progress =
            json!({ "statusMessage": "The operation is now in progress.", "pollInterval": 5000 });
        for example in [
            task("working", in_progress.clone()),
            task(
                "completed",
                json!({ "lastUpdatedAt": "2025-11-25T10:50:00Z", "ttl": 60000, "pollInterval": 5000 }),
            ),
            task(
                "cancelled",
                json!({ "statusMessage": "The task was cancelled by request.", "pollInterval": 5000 }),
            ),
            task("failed", json!({ "statusMessage": "Tool execution failed: API rate limit exceeded" })),
            task("input_required", json!({ "ttl": null })),
            task("working", json!({ "_meta": { "a": 1 } })),
        ] {
            check::<LegacyTask>(&example);
            check::<LegacyCreateTaskResult>(&json!({ "task": example }));
        }
        check::<LegacyCreateTaskResult>(&json!({ "task": task("working", in_progress), "_meta": {
            "io.modelcontextprotocol/model-immediate-response": "It runs." } }));
        check::<ListTasksResult>(&json!({ "tasks": [
            task("working", json!({ "pollInterval": 5000 })),
            task("completed", json!({ "taskId": "abc123-def456-ghi789", "ttl": 60000 })),
        ], "nextCursor": "next-page-cursor" }));
        check::<ListTasksResult>(&json!({ "tasks": [] }));
        check::<TaskMetadata>(&json!({ "ttl": 60000 }));
        check::<TaskMetadata>(&json!({}));
        check::<RelatedTaskMetadata>(&json!({ "taskId": "786512e2-9e0d-44bd-8f29-789f320fe840" }));
        check::<crate::CallToolParams>(&json!({ "name": "get_weather", "arguments": { "city": "New York" },
            "task": { "ttl": 60000 } }));
    }

    #[test]
    fn a_status_may_begin_with_a_capital_letter() {
        for (name, status) in [
            ("Working", TaskStatus::Working),
            ("InputRequired", TaskStatus::InputRequired),
            ("Input_Required", TaskStatus::InputRequired),
            ("Completed", TaskStatus::Completed),
            ("Failed", TaskStatus::Failed),
            ("Cancelled", TaskStatus::Cancelled),
        ] {
            let read: LegacyTask = serde_json::from_value(json!({ "taskId": "t", "status": name })).unwrap();
            assert_eq!((read.task.status, read.task.ttl_ms), (status, None));
            assert_eq!(serde_json::to_value(&read).unwrap()["status"], status.as_str());
        }
        for broken in
            [json!({ "taskId": "t", "status": "submitted" }), json!({ "status": "working" }), json!([])]
        {
            assert!(serde_json::from_str::<LegacyTask>(&broken.to_string()).is_err(), "{broken}");
        }
        assert!(serde_json::from_str::<TaskMetadata>(r#"{"ttl":-1}"#).is_err());
    }

    #[test]
    fn the_support_of_tools_and_servers() {
        let tool = crate::Tool::new("t", crate::JsonSchema::from_value(&json!({ "type": "object" })));
        assert_eq!(tool.task_support(), TaskSupport::Forbidden);
        for (support, name) in [
            (TaskSupport::Forbidden, "forbidden"),
            (TaskSupport::Optional, "optional"),
            (TaskSupport::Required, "required"),
        ] {
            let tool = tool.clone().with_task_support(support);
            assert_eq!(serde_json::to_value(&tool).unwrap()["execution"], json!({ "taskSupport": name }));
            assert_eq!(tool.task_support(), support);
        }
        let all = TasksCapability { list: true, cancel: true, tools_call: true };
        let capabilities = ServerCapabilities::default().with_tasks(all);
        assert_eq!(
            serde_json::to_value(&capabilities).unwrap(),
            json!({ "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } } })
        );
        assert_eq!(capabilities.tasks(), Some(all));
        assert_eq!(ServerCapabilities::default().tasks(), None);
        let sampling = json!({ "tasks": { "requests": { "sampling": { "createMessage": {} } } } });
        let client: ClientCapabilities = serde_json::from_value(sampling).unwrap();
        assert_eq!(client.tasks(), Some(TasksCapability::default()));
    }
}
