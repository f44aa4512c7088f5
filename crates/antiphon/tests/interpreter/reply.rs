//! The replies of a server, and the answers of a client.

use crate::{
    tree::Form,
    user::{UserAnswer, user_answer},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The outcome of one request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Questions; without any, the state alone.
    Round {
        state: String,
        asked: BTreeMap<String, ShownAsk>,
    },
    Done(String),
    /// A step failed for now: the same request may be sent again.
    StepFailed,
    Internal,
    Diverged,
    /// The question at this path had no answer that fits, as often as the limit allows.
    TooOften(String),
    Other(String),
}

/// A question as the person sees it.
#[derive(Clone, Debug)]
pub(crate) struct ShownAsk {
    pub(crate) field: Field,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Field {
    Number,
    Yes,
    Text,
}

/// The question of an `elicitation/create`.
pub(crate) fn shown(params: &Value) -> ShownAsk {
    let fields = &params["requestedSchema"]["properties"];
    let field = match () {
        () if fields.get("n").is_some() => Field::Number,
        () if fields.get("ok").is_some() => Field::Yes,
        () => Field::Text,
    };
    // What follows is why it is asked again.
    let text = params["message"].as_str().unwrap_or_default().split("\n\n").next().unwrap_or_default();
    ShownAsk { field, text: text.to_owned() }
}

pub(crate) fn read_reply(reply: &Value) -> Reply {
    let error = &reply["error"];
    match (error["data"]["reason"].as_str(), error["code"].as_i64()) {
        (Some("step_failed"), Some(-32603)) => return Reply::StepFailed,
        (Some("flow_diverged"), Some(-32603)) => return Reply::Diverged,
        (Some("limit"), Some(-32602)) if error["data"]["limit"] == "times_asked" => {
            let text = error["message"].as_str().unwrap_or_default();
            return Reply::TooOften(text.split('`').nth(1).unwrap_or_default().to_owned());
        }
        // Behind what was done and is lost, it says so.
        (None, Some(-32603))
            if error["message"].as_str().is_some_and(|it| it.starts_with("Internal error")) =>
        {
            return Reply::Internal;
        }
        _ => {}
    }
    let result = &reply["result"];
    match (result["resultType"].as_str(), result["inputRequests"].as_object()) {
        (Some("complete"), _) => {
            Reply::Done(result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
        }
        (Some("input_required"), Some(requests)) => {
            let asked = requests.iter().map(|(path, request)| (path.clone(), shown(&request["params"])));
            let state = result["requestState"].as_str().unwrap_or_default().to_owned();
            Reply::Round { state, asked: asked.collect() }
        }
        _ => Reply::Other(reply.to_string()),
    }
}

fn accepted(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// The person's answer, and how it is sent.
pub(crate) fn answer(seed: u64, path: &str, shown: &ShownAsk) -> (UserAnswer, Value) {
    let (form, field) = match shown.field {
        Field::Number => (Form::Pick, "n"),
        Field::Yes => (Form::Sure, "ok"),
        Field::Text => (Form::Note, "text"),
    };
    let version = shown.text.split("list ").nth(1).and_then(|rest| rest.trim_end_matches('?').parse().ok());
    let said = user_answer(seed, path, version.unwrap_or(0), form);
    let value = match said {
        UserAnswer::Decline => json!({"action": "decline"}),
        UserAnswer::Cancel => json!({"action": "cancel"}),
        UserAnswer::Accept(n) => accepted(match form {
            Form::Pick => json!({"id": path, field: n, "more": 1}),
            Form::Sure => json!({"id": path, field: n == 1}),
            Form::Note if n == 0 => json!({"id": path}),
            Form::Note => {
                json!({"id": path, field: "x".repeat(usize::try_from(n).expect("a small number"))})
            }
        }),
    };
    (said, value)
}

/// An answer that fits no form.
pub(crate) fn misfit(n: usize) -> Value {
    match n % 4 {
        0 => accepted(json!({"id": 7})),
        1 => accepted(json!({})),
        2 => json!({"method": "elicitation/create", "result": {"action": "accept"}}),
        _ => Value::Null,
    }
}

/// An answer that fits all forms, to a question that was not asked.
pub(crate) fn foreign() -> Value {
    of_anything("an older leg")
}

/// The `id` of an answer to a question that a task may ask at any moment.
pub(crate) const FORETOLD: &str = "nothing yet";

/// An answer that fits all forms, with this id.
pub(crate) fn of_anything(id: &str) -> Value {
    accepted(json!({"id": id, "n": 0, "ok": true, "text": "no"}))
}
