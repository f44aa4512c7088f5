//! Attacks on handlers that await: by clients that answer as they like, and by handlers at the edge of what they may.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

mod common;
#[path = "common/talk.rs"]
mod talk;
#[path = "common/tool_t.rs"]
mod tool_t;

#[path = "red_await/clients.rs"]
mod clients;
#[path = "red_await/limits.rs"]
mod limits;
#[path = "red_await/records.rs"]
mod records;

use antiphon::{
    Form, Result,
    server::{Ctx, NoArguments, Server, Tool},
};
use common::*;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use talk::*;
use tool_t::*;

#[derive(Debug, Deserialize, Form)]
struct Confirm {
    ok: bool,
}

fn yes() -> Value {
    accept(json!({"ok": true}))
}

fn no() -> Value {
    accept(json!({"ok": false}))
}

fn agreed() -> Value {
    json!({"action": "accept"})
}

async fn ok(text: &str) -> Result<String> {
    Ok(text.to_owned())
}

/// Legs with exactly these answers, one after the other. Gives the last response.
async fn legs(server: &Server, talk: &mut Talk, all: &[Value]) -> Value {
    let mut reply = Value::Null;
    for answers in all {
        reply = talk.leg(server, answers.clone()).await;
    }
    reply
}

/// `data.reason` of an error.
fn reason(reply: &Value) -> &str {
    reply["error"]["data"]["reason"].as_str().unwrap_or_default()
}

fn asks(reply: &Value) -> bool {
    reply["result"]["resultType"] == "input_required"
}
