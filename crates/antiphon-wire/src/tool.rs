//! Tools: the list, and the call of one tool.

use crate::{
    ContentBlock, Icon, InputResponses, Meta,
    discover::list_result,
    lenient::{all_replaced, annotations, flag, icons, list, or_default, shown_text},
    members::{optional_whole, present},
    tag::Complete,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};
use std::fmt;

/// A JSON Schema, stored as its original text: order, numbers and unknown keywords are kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonSchema(Box<RawValue>);

impl JsonSchema {
    /// Creates a schema from any value that serializes to a schema.
    ///
    /// # Errors
    /// Returns an error only if the value cannot be written as JSON.
    pub fn new(schema: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(schema).map(Self)
    }

    /// Creates a schema from a JSON value.
    pub fn from_value(schema: &Value) -> Self {
        // A value is JSON by construction: there is nothing in it that cannot be written.
        Self::new(schema).unwrap_or_else(|_| Self(RawValue::NULL.to_owned()))
    }

    /// Returns the text of the schema.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Returns the schema as a JSON value, or null if the text of a peer is no [`Value`], although it is JSON. Half of a surrogate
    /// pair, which the [text](Self::text) keeps in names and choices, is U+FFFD in the value.
    pub fn to_value(&self) -> Value {
        // A raw value is JSON by construction. One that nests too deeply, or has a number beyond the range of `f64`, cannot be read.
        serde_json::from_str(self.text())
            .or_else(|_| serde_json::from_slice(&all_replaced(self.text())))
            .unwrap_or_default()
    }
}

impl PartialEq for JsonSchema {
    fn eq(&self, other: &Self) -> bool {
        let value = |schema: &Self| serde_json::from_str::<Value>(schema.text());
        match (value(self), value(other)) {
            (Ok(one), Ok(other)) => one == other,
            // Not every JSON text is a value: the text counts.
            _ => self.text() == other.text(),
        }
    }
}

/// A tool, as an entry of `tools/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// The name, for programs.
    pub name: String,
    /// The title, for people.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description, for the model.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The schema of the arguments.
    pub input_schema: JsonSchema,
    /// The schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<JsonSchema>,
    /// Hints about the behaviour of the tool. Untrusted unless the server is trusted.
    #[serde(default, deserialize_with = "annotations", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// The icons.
    #[serde(default, deserialize_with = "icons", skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Tool {
    /// Creates a tool with a name and the schema of its arguments.
    pub fn new(name: impl Into<String>, input_schema: JsonSchema) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
            extra: Map::new(),
        }
    }

    /// Returns `execution.taskSupport`; [`TaskSupport::Forbidden`] if it is absent or unknown.
    pub fn task_support(&self) -> TaskSupport {
        let support = self.extra.get("execution").and_then(|execution| execution.get("taskSupport"));
        support.and_then(|support| TaskSupport::deserialize(support).ok()).unwrap_or_default()
    }

    /// Returns the same tool with this `execution.taskSupport`.
    #[must_use]
    pub fn with_task_support(mut self, support: TaskSupport) -> Self {
        let execution = self.extra.entry("execution").or_insert_with(|| json!({}));
        if let Value::Object(members) = execution {
            // One of three words: there is nothing in it that cannot be written.
            members.insert("taskSupport".to_owned(), serde_json::to_value(support).unwrap_or_default());
        }
        self
    }
}

/// Hints about a tool. Untrusted unless the server is trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The title, for people.
    #[serde(default, deserialize_with = "shown_text", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `true` if the tool changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// `true` if the tool may destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// `true` if two equal calls have the same effect as one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// `true` if the tool interacts with external systems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The params of `tools/list` and of the other lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PageParams {
    /// The cursor of the requested page; absent for the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The version, identity and capabilities of the client.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl PageParams {
    /// Creates the params for the page at this cursor, or for the first page if there is no cursor.
    pub fn new(meta: Meta, cursor: Option<String>) -> Self {
        Self { cursor, meta }
    }
}

list_result! {
    /// The result of `tools/list`.
    ListToolsResult {
        /// The tools of this page.
        tools: Vec<Tool>
    }
}

/// The params of `tools/call`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolParams {
    /// The name of the tool.
    pub name: String,
    /// The arguments, as the text that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// The answers to the asks of the last leg.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The state of the last leg, exactly as it was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The wish for a task. Only in 2025-11-25, and in the draft after that revision; the extension ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskMetadata>,
    /// The version, identity and capabilities of the client.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CallToolParams {
    /// Creates the params of a first leg.
    pub fn new(name: impl Into<String>, arguments: Option<Box<RawValue>>, meta: Meta) -> Self {
        Self { name: name.into(), arguments, input_responses: None, request_state: None, task: None, meta }
    }
}

/// The result of `tools/call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// The result type, always `complete`.
    #[serde(default, deserialize_with = "or_default")]
    pub result_type: Complete,
    /// The result, as content blocks.
    #[serde(default, deserialize_with = "list")]
    pub content: Vec<ContentBlock>,
    /// The result, as structured data.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// `true` if the tool failed in a way that the model should see.
    #[serde(default, deserialize_with = "flag", skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Further metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that have no field in this type.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CallToolResult {
    /// Creates the result of a successful call.
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self {
            result_type: Complete,
            content,
            structured_content: None,
            is_error: None,
            meta: None,
            extra: Map::new(),
        }
    }

    /// Creates the result of a successful call, with one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![ContentBlock::text(text)])
    }

    /// Creates the result of a failed call. `text` gives the reason to the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: Some(true), ..Self::text(text) }
    }

    /// Returns `true` if the tool failed.
    pub fn failed(&self) -> bool {
        self.is_error == Some(true)
    }

    /// Returns the text of the first block, if that block is a text.
    pub fn first_text(&self) -> Option<&str> {
        self.content.first()?.as_text()
    }
}

impl fmt::Debug for CallToolParams {
    /// Formats the value without state, arguments and answers, which do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallToolParams")
            .field("name", &self.name)
            .field("input_responses", &self.input_responses)
            .finish_non_exhaustive()
    }
}

/// The member `task` of a request's params: the client wants a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// The time from the creation for which the client wants the task to be kept, in milliseconds; `None` if the client does
    /// not mind.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_whole")]
    pub ttl: Option<u64>,
}

impl TaskMetadata {
    /// Creates the metadata of a task that the client wants to be kept for this time, in milliseconds.
    pub fn new(ttl: Option<u64>) -> Self {
        Self { ttl }
    }
}

/// The support of a tool for tasks: `execution.taskSupport` of its definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// A call of the tool is never a task. The default.
    #[default]
    Forbidden,
    /// A call of the tool is a task if the client wants one.
    Optional,
    /// A call of the tool is always a task.
    Required,
}
