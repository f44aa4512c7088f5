//! One call of a tool, leg by leg, by a client with given answers.

use super::{request, with};
use antiphon::{
    server::{Caller, Server},
    wire::InputRequests,
};
use serde_json::{Value, json};

/// A call of the tool `t`.
pub struct ToolCall {
    params: Value,
    /// The last state.
    pub state: Option<String>,
    /// The keys of each round, in their order.
    pub rounds: Vec<Vec<String>>,
}

impl ToolCall {
    pub fn new(arguments: Value) -> Self {
        Self { params: json!({"name": "t", "arguments": arguments}), state: None, rounds: Vec::new() }
    }

    /// A call of the tool of this name, without arguments.
    pub fn named(name: &str) -> Self {
        Self { params: json!({"name": name}), state: None, rounds: Vec::new() }
    }

    /// Sends one leg with these answers. Returns the response.
    pub async fn leg(&mut self, server: &Server, answers: Value) -> Value {
        let mut params = self.params.clone();
        if let Some(state) = &self.state {
            params = with(&params, json!({"requestState": state}));
        }
        if !answers.is_null() {
            params = with(&params, json!({"inputResponses": answers}));
        }
        let message = request(1, "tools/call", params).to_string();
        let reply =
            server.respond(message.as_bytes(), &Caller::default()).await.expect("a request has a reply");
        let in_order = keys(&reply.body);
        let reply: Value = serde_json::from_slice(&reply.body).expect("a reply is JSON");
        if reply["result"]["resultType"] == "input_required" {
            self.state = Some(reply["result"]["requestState"].as_str().expect("a state").to_owned());
            self.rounds.push(in_order);
        }
        reply
    }

    /// Sends legs with the state only, as long as the server returns only a state.
    pub async fn settled(&mut self, server: &Server, mut reply: Value) -> Value {
        while reply["result"]["inputRequests"] == json!({}) {
            reply = self.leg(server, Value::Null).await;
        }
        reply
    }

    /// Sends legs until the result; answers each question from `answers` by its key.
    pub async fn through(&mut self, server: &Server, answers: &Value) -> Value {
        let mut given = Value::Null;
        loop {
            let reply = self.leg(server, given).await;
            if reply["result"]["resultType"] != "input_required" {
                return reply;
            }
            let round = self.rounds.last().expect("a round was pushed");
            given = round.iter().map(|key| (key.clone(), answers[key].clone())).collect();
        }
    }
}

/// Sends legs with exactly these answers, in order. Returns the last response.
pub async fn legs(server: &Server, talk: &mut ToolCall, all: &[Value]) -> Value {
    let mut reply = Value::Null;
    for answers in all {
        reply = talk.leg(server, answers.clone()).await;
    }
    reply
}

/// The result of a successful step.
pub async fn ok(text: &str) -> antiphon::Result<String> {
    Ok(text.to_owned())
}

/// The keys of a round, in the order on the wire.
pub fn keys(reply: &[u8]) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Reply {
        #[serde(default)]
        result: Round,
    }
    #[derive(Default, serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Round {
        #[serde(default)]
        input_requests: InputRequests,
    }
    let reply: Reply = serde_json::from_slice(reply).unwrap_or(Reply { result: Round::default() });
    reply.result.input_requests.iter().map(|(key, _)| key.to_owned()).collect()
}

/// An accepted form.
pub fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// Returns the text of a tool's result, or the error as JSON.
pub fn result_text(reply: &Value) -> String {
    match reply["result"]["content"][0]["text"].as_str() {
        Some(text) => text.to_owned(),
        None => reply["error"].to_string(),
    }
}
