//! Tools.

use crate::{CacheScope, ContentBlock, Icon, InputResponses, Meta, Ttl, members::present, tag::Complete};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use std::fmt;

/// A JSON Schema, as the text it was written in: order, numbers and unknown keywords are kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonSchema(Box<RawValue>);

impl JsonSchema {
    /// From anything that is a schema when written as JSON.
    ///
    /// # Errors
    /// Only if it cannot be written as JSON.
    pub fn new(schema: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(schema).map(Self)
    }

    /// From a value.
    pub fn from_value(schema: &Value) -> Self {
        // A value is JSON by construction: there is nothing in it that cannot be written.
        Self::new(schema).unwrap_or_else(|_| Self(RawValue::NULL.to_owned()))
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// As a value.
    pub fn to_value(&self) -> Value {
        // A raw value is JSON by construction; only one that nests too deeply cannot be read.
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

impl PartialEq for JsonSchema {
    fn eq(&self, other: &Self) -> bool {
        self.to_value() == other.to_value()
    }
}

/// A tool, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// For programs.
    pub name: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// For the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments.
    pub input_schema: JsonSchema,
    /// The structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<JsonSchema>,
    /// How it behaves. Untrusted unless the server is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Pictures for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Tool {
    /// A tool with a name and the schema of its arguments.
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
}

/// Hints about a tool. Untrusted unless the server is trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it twice is like calling it once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It meets the world outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The params of `tools/list` and of the other lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PageParams {
    /// Where to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Version, identity and capabilities of the client.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl PageParams {
    /// The page at this cursor; the first one without.
    pub fn new(meta: Meta, cursor: Option<String>) -> Self {
        Self { cursor, meta }
    }
}

/// The result of `tools/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListToolsResult {
    /// Always `complete`.
    #[serde(default)]
    pub result_type: Complete,
    /// The tools of this page.
    pub tools: Vec<Tool>,
    /// Where to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// For how long the result may be kept.
    #[serde(default)]
    pub ttl_ms: Ttl,
    /// Who may share a kept result.
    #[serde(default)]
    pub cache_scope: CacheScope,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ListToolsResult {
    /// One page, not to be kept.
    pub fn new(tools: Vec<Tool>) -> Self {
        Self {
            result_type: Complete,
            tools,
            next_cursor: None,
            ttl_ms: Ttl::default(),
            cache_scope: CacheScope::default(),
            meta: None,
            extra: Map::new(),
        }
    }
}

/// The params of `tools/call`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolParams {
    /// Which tool.
    pub name: String,
    /// With what, as the text that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// The answers to the asks of the last leg.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The state of the last leg, exactly as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Version, identity and capabilities of the client.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CallToolParams {
    /// A first leg.
    pub fn new(name: impl Into<String>, arguments: Option<Box<RawValue>>, meta: Meta) -> Self {
        Self { name: name.into(), arguments, input_responses: None, request_state: None, meta }
    }
}

/// The result of `tools/call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// Always `complete`.
    #[serde(default)]
    pub result_type: Complete,
    /// What came of it.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// What came of it, as data.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// Whether the tool failed, in a way the model should see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Anything else.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this type does not name.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CallToolResult {
    /// It worked.
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

    /// It worked, and this is all there is to say.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![ContentBlock::text(text)])
    }

    /// It failed, and this is why, for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: Some(true), ..Self::text(text) }
    }

    /// Whether the tool failed.
    pub fn failed(&self) -> bool {
        self.is_error == Some(true)
    }

    /// The text of the first block, if it is one.
    pub fn first_text(&self) -> Option<&str> {
        self.content.first()?.as_text()
    }
}

impl fmt::Debug for CallToolParams {
    /// Neither state nor arguments nor answers: they do not belong into logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallToolParams")
            .field("name", &self.name)
            .field("input_responses", &self.input_responses)
            .finish_non_exhaustive()
    }
}
