//! Programs on which the await engine once failed, one file per subject.

// `migration.rs` is to be listed here once there is `Migration::added`.
mod causes;
mod consent;
mod failed_legs;
mod guards;
mod held;
mod migration;
mod refusals;
mod replay_check;
mod retry;
mod stalled;
mod wakers;

use crate::common::one_tool::{limited, server};
use crate::common::session::{InSession, plain};
use crate::common::tool_call::*;
use crate::common::{log::take_log, *};
use antiphon::{
    Error, Form, Result,
    server::{Ctx, NoArguments, Server, Tool},
    testing::Effects,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

#[derive(Debug, Deserialize, Form)]
struct Pick {
    name: String,
}

#[derive(Debug, Deserialize, Form)]
struct Sure {
    ok: bool,
}

fn pick(name: &str) -> Value {
    accept(json!({ "name": name }))
}

fn yes() -> Value {
    accept(json!({"ok": true}))
}

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// The tool `t` with a handler that may share what it owns with the test.
fn tool<F>(run: F) -> Tool
where
    F: for<'a> Fn(&'a Ctx) -> BoxFuture<'a, Result<String>> + Send + Sync + 'static,
{
    fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<String>>>(handler: F) -> F {
        handler
    }
    Tool::new("t", lent(move |ctx, _| run(ctx)))
}

/// A server of this tool, whose handlers run for five seconds at most.
fn impatient(tool: Tool) -> Server {
    limited(tool, |limits| limits.handler_timeout(Duration::from_secs(5)))
}

/// The code of an error, and its `data.reason`.
fn refused(reply: &Value) -> (i64, &str) {
    let error = &reply["error"];
    (error["code"].as_i64().unwrap_or_default(), error["data"]["reason"].as_str().unwrap_or_default())
}

/// Returns `true` if this result has no question and only carries the record.
fn is_state_only(reply: &Value) -> bool {
    reply["result"]["resultType"] == "input_required" && reply["result"]["inputRequests"] == json!({})
}

/// Sends these answers, then goes on for as long as the server sends state only. Gives the first other response.
async fn settled(talk: &mut ToolCall, server: &Server, answers: Value) -> Value {
    let mut reply = talk.leg(server, answers).await;
    while is_state_only(&reply) {
        reply = talk.leg(server, Value::Null).await;
    }
    reply
}

/// The keys of the questions in this response.
fn asked(reply: &Value) -> Vec<String> {
    keys(reply.to_string().as_bytes())
}

/// Calls the tool `t` in a session of 2025-11-25, and answers each question by its message, after a while. Gives the
/// response.
async fn in_session(server: &Server, answers: &Value) -> Value {
    let mut session = InSession::newest(server).await;
    session.send(plain(1, "tools/call", json!({"name": "t"}))).await;
    loop {
        let message = session.receive().await;
        match (message.get("id"), message["params"]["message"].as_str()) {
            // It takes a question back.
            (None, _) => {}
            (Some(_), Some(question)) => {
                tokio::time::sleep(ms(7)).await;
                session.answers(&message, answers[question].clone()).await;
            }
            (Some(_), None) => return message,
        }
    }
}
