//! Attacks on handlers that await: by clients that answer as they like, and by handlers at the edge of what they may.

mod clients;
mod limits;
mod records;

use crate::common::one_tool::*;
use crate::common::tool_call::*;
use crate::common::*;
use antiphon::{
    Form, Result,
    server::{Ctx, NoArguments, Server, Tool},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

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

/// `data.reason` of an error.
fn reason(reply: &Value) -> &str {
    reply["error"]["data"]["reason"].as_str().unwrap_or_default()
}

fn asks(reply: &Value) -> bool {
    reply["result"]["resultType"] == "input_required"
}
