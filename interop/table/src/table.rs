//! The table: calls, answers and expected outcomes.

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
    /// Keys of the questions, one list per round, in the server's order.
    #[serde(default)]
    pub(crate) asks: Vec<Vec<String>>,
    pub(crate) outcome: Outcome,
    /// Text of the model's answer.
    #[serde(default)]
    pub(crate) sample: Option<String>,
    /// The client's roots.
    #[serde(default)]
    pub(crate) roots: Vec<String>,
    /// The case takes seconds.
    #[serde(default)]
    slow: bool,
    /// Reason for which the case cannot run yet.
    #[serde(default)]
    later: Option<String>,
}

impl Case {
    pub(crate) fn is_enabled(&self) -> bool {
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

/// Expected end of a call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Text(String),
    ToolError(String),
    ToolErrorBegins(String),
    Error(ExpectedError),
    /// The call is pending, with these keys unanswered.
    Pending(Vec<String>),
    /// The client stops at its limit of rounds.
    GivesUp(serde::de::IgnoredAny),
}

#[derive(Debug, Deserialize)]
pub(crate) struct ExpectedError {
    pub(crate) code: i64,
    pub(crate) message: String,
}
