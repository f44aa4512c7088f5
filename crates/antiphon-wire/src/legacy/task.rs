//! Tasks as the revision 2025-11-25 has them (experimental): nested in the result of their creation, with `ttl` and
//! `pollInterval`. The draft after that revision has the same types.
//!
//! The types of the extension, [`Task`] and [`TaskStatus`], hold the data; only the members on the wire differ.
//!
//! Only the draft after 2025-11-25 has `tasks/result` that returns the open questions, and `tasks/input_response` that answers them.
//! The draft was never released; the extension replaced it.

use crate::{
    ClientCapabilities, InputRequests, InputRequiredResult, InputResponses, Meta, ServerCapabilities, Task,
    TaskStatus,
    lenient::optional_object_or_empty,
    members::{Members, Object, optional_whole},
    meta_keys,
};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Error as _},
    ser::SerializeMap,
};
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

/// The params of `tasks/input_response`.
///
/// The draft names the task in `_meta`, and in places in `params.taskId`. [`task_id`](Self::task_id) reads both.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskInputParams {
    /// The id of the task, beside the one in `_meta`.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "taskId")]
    pub id: Option<String>,
    /// The answers to questions of the task, by key. The draft's examples wrap each one in `{"result": ..}`:
    /// [`InputResponses::unwrapped`] removes the wrapper.
    pub input_responses: InputResponses,
    /// The state of the last `tasks/result`, unchanged, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The version, identity and capabilities of the client, and the id of the task.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl TaskInputParams {
    /// Creates the params with these answers. The id is in `_meta`, as the draft's schema and examples have it.
    pub fn new(task_id: &str, input_responses: InputResponses, meta: Meta) -> Self {
        Self { id: None, input_responses, request_state: None, meta: meta.with_related_task(task_id) }
    }

    /// Returns the id of the task.
    pub fn task_id(&self) -> Option<&str> {
        self.id.as_deref().or_else(|| self.meta.related_task())
    }
}

impl InputResponses {
    /// Returns the answers without the wrapper `{"result": ..}`, which some drafts have around each answer.
    ///
    /// Every answer has a required member, and none is called `result`: an object with that member alone is a wrapper.
    ///
    /// # Errors
    /// Returns an error only if an answer cannot be written as JSON.
    pub fn unwrapped(&self) -> Result<Self, serde_json::Error> {
        let mut bare = Self::new();
        for (key, answer) in self.iter() {
            match serde_json::from_str::<Members>(answer.get()) {
                Ok(Members(members)) => match &*members {
                    [(name, result)] if name == "result" => bare.insert(key, result)?,
                    _ => bare.insert(key, &answer)?,
                },
                Err(_) => bare.insert(key, &answer)?,
            }
        }
        Ok(bare)
    }
}

/// The result of `tasks/result` in the draft.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DraftTaskResult {
    /// The open questions of the task.
    InputRequired(InputRequiredResult),
    /// The result of the request that has become the task.
    Final(Box<RawValue>),
}

impl DraftTaskResult {
    /// Reads the `result` of a response to `tasks/result`.
    ///
    /// The draft's examples have no `resultType`: then a member `inputRequests` decides, which no final result has.
    ///
    /// # Errors
    /// Returns an error if the members of a result with questions cannot be read, or if there is neither a question nor a state.
    pub fn read(result: &RawValue) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head<'a> {
            #[serde(borrow, default)]
            result_type: Option<Cow<'a, str>>,
            #[serde(default, deserialize_with = "optional_object_or_empty")]
            input_requests: Option<InputRequests>,
            #[serde(default)]
            request_state: Option<String>,
            #[serde(rename = "_meta", default)]
            meta: Option<Meta>,
        }
        let Object(head) = serde_json::from_str::<Object<Head<'_>>>(result.get())?;
        let asks = match head.result_type.as_deref() {
            Some(result_type) => result_type == "input_required",
            None => head.input_requests.is_some(),
        };
        if !asks {
            return Ok(Self::Final(result.to_owned()));
        }
        InputRequiredResult::new(head.input_requests.unwrap_or_default(), head.request_state)
            .map(|result| Self::InputRequired(result.with_meta(head.meta)))
            .map_err(serde_json::Error::custom)
    }
}

/// Returns the `result` of a request, with the task that it belongs to in its `_meta`. Its other members are unchanged.
///
/// > The `tasks/result` operation **MUST** include this metadata in its response, as the result structure itself does not
/// > contain the task ID.
///
/// # Errors
/// Returns an error if the result is not an object, or its `_meta` is not one.
pub fn with_related_task(result: &RawValue, task_id: &str) -> Result<Box<RawValue>, serde_json::Error> {
    let mut members: Members = serde_json::from_str(result.get())?;
    let meta = match members.0.iter().position(|(name, _)| name == "_meta") {
        Some(at) => serde_json::from_str(members.0.remove(at).1.get())?,
        None => Meta::default(),
    };
    let meta = serde_json::value::to_raw_value(&meta.with_related_task(task_id))?;
    members.0.push(("_meta".to_owned(), meta));
    serde_json::value::to_raw_value(&members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TaskMetadata, TaskSupport};
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json, value::to_raw_value};

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

    fn raw(value: &Value) -> Box<RawValue> {
        to_raw_value(value).unwrap()
    }

    #[test]
    fn answers_are_bare_or_wrapped() {
        let bare = json!({ "action": "accept", "content": { "input": "Hello World!" } });
        for (answer, expected) in [
            (bare.clone(), bare.clone()),
            (json!({ "result": bare.clone() }), bare),
            // An answer of the model may have any member beside its own.
            (json!({ "result": 1, "role": "assistant" }), json!({ "result": 1, "role": "assistant" })),
            (json!(3), json!(3)),
        ] {
            let params = json!({ "inputResponses": { "echo_input": answer },
                "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "t" } } });
            let params: TaskInputParams = serde_json::from_value(params).unwrap();
            assert_eq!(params.task_id(), Some("t"));
            let answers = serde_json::to_value(params.input_responses.unwrapped().unwrap()).unwrap();
            assert_eq!(answers, json!({ "echo_input": expected }));
        }
    }

    #[test]
    fn the_task_is_named_in_two_places() {
        let mut answers = InputResponses::new();
        answers.insert("a", &json!({ "action": "decline" })).unwrap();
        let written = serde_json::to_value(TaskInputParams::new("t", answers, Meta::default())).unwrap();
        assert_eq!(
            written,
            json!({ "inputResponses": { "a": { "action": "decline" } },
                "_meta": { "io.modelcontextprotocol/related-task": { "taskId": "t" } } })
        );
        let prose = json!({ "taskId": "p", "inputResponses": {}, "requestState": "s" });
        let prose: TaskInputParams = serde_json::from_value(prose).unwrap();
        assert_eq!((prose.task_id(), prose.request_state.as_deref()), (Some("p"), Some("s")));
    }

    #[test]
    fn a_result_with_questions_and_a_final_one() {
        let asks = json!({ "echo_input": { "method": "roots/list" } });
        for (result, is_final) in [
            (json!({ "inputRequests": asks }), false),
            (json!({ "inputRequests": asks, "resultType": "input_required", "requestState": "s" }), false),
            (json!({ "resultType": "input_required", "requestState": "s" }), false),
            (json!({ "content": [], "isError": false }), true),
            (json!({ "content": [], "resultType": "complete" }), true),
        ] {
            let read = DraftTaskResult::read(&raw(&result)).unwrap();
            assert_eq!(matches!(read, DraftTaskResult::Final(_)), is_final, "{result}");
        }
        for broken in [json!({ "resultType": "input_required" }), json!({ "inputRequests": {} }), json!([])] {
            assert!(DraftTaskResult::read(&raw(&broken)).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_result_gets_its_task() {
        let result = raw(&json!({ "content": [], "_meta": { "a": 1 } }));
        let related: Value = serde_json::from_str(with_related_task(&result, "t").unwrap().get()).unwrap();
        let meta = json!({ "a": 1, "io.modelcontextprotocol/related-task": { "taskId": "t" } });
        assert_eq!(related, json!({ "content": [], "_meta": meta }));
        assert!(with_related_task(&raw(&json!(3)), "t").is_err());
    }
}
