//! The requests of a person: the call that becomes a task, and those about the task.

use crate::request::Request;
use crate::tools::TaskTool;
use serde_json::{Map, Value, json};

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct TaskRequest {
    /// The name in the ledger.
    pub(super) call: String,
    pub(super) person: String,
    pub(super) kind: Kind,
    /// False for a request that the network delivers once at most.
    pub(super) may_repeat: bool,
}

/// The kind of a request.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// One leg of the call that becomes a task. The first one has no state.
    Leg {
        tool: TaskTool,
        plan: &'static str,
        state: Option<String>,
        answers: Vec<Answer>,
    },
    Get {
        task: String,
    },
    Update {
        task: String,
        answers: Vec<Answer>,
    },
    Cancel {
        task: String,
    },
}

/// An answer to a question: its key, and the text in the form. Without a text, the answer is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) key: String,
    pub(super) text: Option<String>,
}

impl Answer {
    /// Returns a valid answer, with a text that no other answer to the question has.
    pub(super) fn of(word: &str, key: &str) -> Self {
        Self { key: key.to_owned(), text: Some(format!("{word}-{key}")) }
    }

    /// Returns an answer that is not valid.
    pub(super) fn invalid(key: &str) -> Self {
        Self { key: key.to_owned(), text: None }
    }

    fn to_json(&self) -> Value {
        let name = self.text.as_ref().map_or(json!(3), |text| json!(text));
        json!({ "action": "accept", "content": { "name": name } })
    }
}

impl TaskRequest {
    /// Returns the answers of the request.
    pub(super) fn answers(&self) -> &[Answer] {
        match &self.kind {
            Kind::Leg { answers, .. } | Kind::Update { answers, .. } => answers,
            Kind::Get { .. } | Kind::Cancel { .. } => &[],
        }
    }
}

fn responses(answers: &[Answer]) -> Value {
    let answers = answers.iter().map(|answer| (answer.key.clone(), answer.to_json()));
    Value::Object(answers.collect::<Map<_, _>>())
}

impl Request for TaskRequest {
    fn method(&self) -> &'static str {
        match self.kind {
            Kind::Leg { .. } => "tools/call",
            Kind::Get { .. } => "tasks/get",
            Kind::Update { .. } => "tasks/update",
            Kind::Cancel { .. } => "tasks/cancel",
        }
    }

    fn name(&self) -> &str {
        match &self.kind {
            Kind::Leg { tool, .. } => tool.tool(),
            Kind::Get { task } | Kind::Update { task, .. } | Kind::Cancel { task } => task,
        }
    }

    fn person(&self) -> &str {
        &self.person
    }

    fn body(&self) -> Vec<u8> {
        let mut params = match &self.kind {
            Kind::Leg { tool, plan, state, answers } => {
                let mut params =
                    json!({ "name": tool.tool(), "arguments": { "call": self.call, "plan": plan } });
                if let Some(state) = state {
                    params["requestState"] = json!(state);
                }
                if !answers.is_empty() {
                    params["inputResponses"] = responses(answers);
                }
                params
            }
            Kind::Get { task } | Kind::Cancel { task } => json!({ "taskId": task }),
            Kind::Update { task, answers } => json!({ "taskId": task, "inputResponses": responses(answers) }),
        };
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "drill", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": { "form": {}, "url": {} },
                "extensions": { "io.modelcontextprotocol/tasks": {} }
            }
        });
        json!({ "jsonrpc": "2.0", "id": 1, "method": self.method(), "params": params })
            .to_string()
            .into_bytes()
    }

    fn may_repeat(&self) -> bool {
        self.may_repeat
    }
}
