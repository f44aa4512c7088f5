//! The rules of questions and steps with `await`, one by one.

mod asks;
mod keys;
mod legs;
mod races;
mod stale;
mod steps;

use crate::common::one_tool::*;
use crate::common::tool_call::*;
use crate::common::{log::take_log, *};
use antiphon::{
    Form, Result,
    server::{Answer, Caller, Ctx, NoArguments, Server, Tool, operations::ReplayCheck},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

#[derive(Debug, Deserialize, Form)]
struct Place {
    region: String,
}

#[derive(Debug, Deserialize, Form)]
struct Confirm {
    ok: bool,
}

fn place(region: &str) -> Value {
    accept(json!({ "region": region }))
}

fn yes() -> Value {
    accept(json!({"ok": true}))
}

/// The code of an error, and `data.reason`.
fn refused(reply: &Value) -> (i64, &str) {
    let error = &reply["error"];
    (error["code"].as_i64().unwrap_or_default(), error["data"]["reason"].as_str().unwrap_or_default())
}

/// One leg of a client that declares this. Gives the response.
async fn declaring(server: &Server, capabilities: Value, state: Option<&str>, answers: Value) -> Value {
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    let mut params = json!({"name": "t", "_meta": meta, "inputResponses": answers});
    if let Some(state) = state {
        params["requestState"] = json!(state);
    }
    let message = request(1, "tools/call", params).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}
