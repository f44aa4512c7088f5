//! The table: what is called, what is answered, what is to come of it.

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
pub(crate) struct Table {
    pub(crate) cases: Vec<Case>,
}

/// One call.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    #[serde(default)]
    pub(crate) answers: Vec<String>,
    /// The keys of each round, in the server's order.
    #[serde(default)]
    pub(crate) asks: Vec<Vec<String>>,
    pub(crate) outcome: Outcome,
    /// What the model says.
    #[serde(default)]
    pub(crate) sample: Option<String>,
    /// The client's roots.
    #[serde(default)]
    pub(crate) roots: Vec<String>,
    /// It takes seconds.
    #[serde(default)]
    slow: bool,
    /// Why it cannot be played yet.
    #[serde(default)]
    later: Option<String>,
}

impl Case {
    pub(crate) fn is_for_now(&self) -> bool {
        !self.slow && self.later.is_none()
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

/// What comes of a call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Text(String),
    ToolError(String),
    ToolErrorBegins(String),
    Error(Expected),
    /// The keys without an answer.
    Pending(Vec<String>),
    /// The client stops by itself.
    GivesUp(serde::de::IgnoredAny),
}

#[derive(Debug, Deserialize)]
pub(crate) struct Expected {
    pub(crate) code: i64,
    pub(crate) message: String,
}
