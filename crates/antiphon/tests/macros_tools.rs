//! Functions marked `#[tool]`: what is told of them, and what reaches them.
#![cfg(feature = "macros")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use antiphon::{
    server::{Caller, Ctx, Json, Server, ServerBuilder, State},
    tool,
};
use common::request;
use serde_json::{Value, json};

fn server(build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    build(Server::builder("macros", "1.0")).build().unwrap()
}

async fn respond(server: &Server, method: &str, params: Value) -> Value {
    let message = request(1, method, params).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

/// The first text of a call's result.
async fn call(server: &Server, name: &str, arguments: Value) -> String {
    let reply = respond(server, "tools/call", json!({"name": name, "arguments": arguments})).await;
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
}

/// What `tools/list` says of the tool of this name.
async fn listed(server: &Server, name: &str) -> Value {
    let reply = respond(server, "tools/list", json!({})).await;
    let tools = reply["result"]["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name} in {reply}")).clone()
}

/// Says it back.
#[tool]
async fn echo(text: String) -> String {
    text
}

struct Db(&'static str);

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Found {
    key: String,
    limit: Option<u32>,
}

#[tool]
async fn find(State(db): State<Db>, ctx: &Ctx, key: &str, limit: Option<u32>) -> Result<Json<Found>, String> {
    if ctx.leg() != 1 || key.is_empty() {
        return Err("nothing to look for".to_owned());
    }
    Ok(Json(Found { key: format!("{} {key}", db.0), limit }))
}

#[tokio::test]
async fn a_marked_function_is_a_tool_and_a_function() {
    let server = server(|builder| builder.tool(echo).tool(find).state(Db("db")));
    assert_eq!(call(&server, "echo", json!({"text": "hello"})).await, "hello");
    assert_eq!(call(&server, "find", json!({"key": "k", "limit": 2.0})).await, r#"{"key":"db k","limit":2}"#);
    assert_eq!(call(&server, "find", json!({"key": "k"})).await, r#"{"key":"db k","limit":null}"#);
    assert_eq!(call(&server, "find", json!({"key": ""})).await, "nothing to look for");
    assert_eq!(echo("a".to_owned()).await, "a");
    assert_eq!(listed(&server, "find").await["outputSchema"]["required"], json!(["key", "limit"]));
}
