//! Legs that run at most once: claims, replies that are sent again, steps that survive a crash.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "a failed unwrap fails the test")]

#[path = "../common/mod.rs"]
mod common;

// The database server of the tests of `antiphon-store`.
#[cfg(all(unix, feature = "postgres"))]
#[allow(dead_code, reason = "these tests need a part of each file")]
mod postgres_server;
#[cfg(all(unix, feature = "postgres"))]
#[allow(dead_code, reason = "these tests need a part of each file")]
mod programs;

mod build;
mod cost;
mod in_session;
mod journal;
mod keeping;
mod sealed;
mod simulation;
mod single_use;
mod spill;
mod store_faults;
mod transaction;
mod write_ahead;

#[cfg(all(unix, feature = "postgres"))]
use crate::common::folder;
use crate::common::tool_call::*;
use antiphon::{
    Form, Result,
    server::{Ctx, NoArguments, Server, ServerBuilder, Tool, operations::ReplayCheck},
    store::{CallStore, ManualStoreClock, MemoryStore, StoreClock, calls::Micros},
    testing::Effects,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Debug, Deserialize, Form)]
struct Pick {
    name: String,
}

fn pick(name: &str) -> Value {
    json!({ "pick": accept(json!({ "name": name })) })
}

/// A tool `t` with a handler that may share what it owns with the test.
fn tool<F>(run: F) -> Tool
where
    F: for<'a> Fn(&'a Ctx) -> BoxFuture<'a, Result<String>> + Send + Sync + 'static,
{
    fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<String>>>(handler: F) -> F {
        handler
    }
    Tool::new("t", lent(move |ctx, _| run(ctx)))
}

/// Charges, asks, and ships what was picked.
fn shop(effects: &Effects) -> Tool {
    let effects = effects.clone();
    tool(move |ctx| {
        let effects = effects.clone();
        async move {
            ctx.step("charge", async |s| Ok(effects.note("charge", s.key()))).await?;
            let picked = ctx.elicit::<Pick>("Which?").key("pick").await?;
            ctx.step("ship", async |s| Ok(effects.note("ship", s.key()))).await?;
            Ok(picked.name)
        }
        .boxed()
    })
}

/// A store whose clock the test moves.
fn store() -> (Arc<dyn CallStore>, ManualStoreClock) {
    let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    (Arc::new(MemoryStore::new().clock(clock)), hand)
}

fn built(
    tool: Tool,
    store: &Arc<dyn CallStore>,
    change: impl FnOnce(ServerBuilder) -> ServerBuilder,
) -> Server {
    let builder = Server::builder("shop", "1")
        .replay_check(ReplayCheck::Off)
        .tool(tool)
        .keys(common::ring(7))
        .single_instance(true)
        .store(Arc::clone(store));
    change(builder).build().unwrap()
}

fn single_use(tool: Tool, store: &Arc<dyn CallStore>) -> Server {
    built(tool, store, |builder| builder.single_use(true))
}

fn write_ahead(tool: Tool, store: &Arc<dyn CallStore>) -> Server {
    built(tool, store, |builder| builder.write_ahead(true))
}

/// The reason of an error.
fn reason(reply: &Value) -> &str {
    reply["error"]["data"]["reason"].as_str().unwrap_or_default()
}

fn is_state_only(reply: &Value) -> bool {
    reply["result"]["resultType"] == "input_required" && reply["result"]["inputRequests"] == json!({})
}

/// A call at its first question.
async fn at_first_question(server: &Server) -> ToolCall {
    let mut call = ToolCall::new(json!({}));
    let reply = call.leg(server, Value::Null).await;
    assert!(is_state_only(&reply), "the first step waits for a leg that can be claimed: {reply}");
    let reply = call.leg(server, Value::Null).await;
    assert!(reply["result"]["inputRequests"]["pick"].is_object(), "{reply}");
    call
}

/// Sends a leg with the state that `call` has now; the call stays at that state.
async fn deliver(call: &ToolCall, server: &Server, answers: Value) -> Value {
    let state = call.state.clone();
    let mut copy = ToolCall::new(json!({}));
    copy.state = state;
    copy.leg(server, answers).await
}
