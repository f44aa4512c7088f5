//! A request of a person: one leg of a call.

use crate::{level::Level, plan::FORGETFUL, request::Request};
use serde_json::{Value, json};

/// One leg of a call.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) call: String,
    pub(crate) level: Level,
    pub(crate) plan: String,
    pub(crate) person: String,
    /// The number of the leg, from 0. The first one has no state.
    pub(crate) number: u32,
    pub(crate) state: Option<String>,
    /// The answers, or null.
    pub(crate) answers: Value,
}

impl Leg {
    /// Returns the same leg with other answers, if it has answers that are not declined.
    pub(crate) fn with_other_answers(&self, word: &str) -> Option<Self> {
        if self.plan == FORGETFUL {
            return None;
        }
        let answers = self.answers.as_object().filter(|answers| !answers.is_empty())?;
        let answers = answers.keys().map(|key| (key.clone(), self.answer(word, key))).collect();
        Some(Self { answers: Value::Object(answers), ..self.clone() })
    }

    /// Returns the answer to a question: a form whose name no other answer of the call has, or a refusal.
    pub(crate) fn answer(&self, word: &str, key: &str) -> Value {
        if self.plan == FORGETFUL {
            return json!({ "action": "decline" });
        }
        json!({ "action": "accept", "content": { "name": format!("{word}-{}-{key}", self.number) } })
    }
}

impl Request for Leg {
    fn method(&self) -> &'static str {
        "tools/call"
    }

    fn name(&self) -> &str {
        self.level.tool()
    }

    fn person(&self) -> &str {
        &self.person
    }

    fn body(&self) -> Vec<u8> {
        let mut params = json!({
            "name": self.level.tool(),
            "arguments": { "call": self.call, "plan": self.plan },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "drill", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {}, "url": {} } }
            }
        });
        if let Some(state) = &self.state {
            params["requestState"] = json!(state);
        }
        if !self.answers.is_null() {
            params["inputResponses"] = self.answers.clone();
        }
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
            .to_string()
            .into_bytes()
    }
}
