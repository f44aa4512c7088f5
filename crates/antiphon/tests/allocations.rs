//! Allocations of a call. A tool that never asks pays for nothing that asking needs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use antiphon::{
    Form, Result,
    server::{Answer, Ask, Caller, Ctx, Reply, Server, Tool, operations::ReplayCheck},
};
use common::tool_call::*;
use common::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::pin::pin;

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, Form)]
struct Place {
    region: String,
}

fn server(tool: Tool) -> Server {
    let builder = Server::builder("allocations", "1").tool(tool).keys(ring(7));
    // As in release builds.
    builder.replay_check(ReplayCheck::Off).build().unwrap()
}

async fn echo(_ctx: &Ctx, args: Text) -> String {
    args.text
}

async fn by_await(ctx: &Ctx, args: Text) -> Result<String> {
    let place: Place = ctx.elicit("Which region should the database live in?").key("region").await?;
    Ok(format!("Provisioned {:?} in {}.", args.text, place.region))
}

async fn by_hand(ctx: &Ctx, args: Text) -> Result<Reply<String>> {
    let ask = Ask::of::<Place>("region", "Which region should the database live in?");
    Ok(match ctx.by_hand().form(&ask)? {
        None => ask.into(),
        Some(Answer::Accept(Place { region })) => {
            Reply::Complete(format!("Provisioned {:?} in {region}.", args.text))
        }
        Some(_) => Reply::Complete("Nothing was provisioned.".into()),
    })
}

/// Allocations of one leg, once everything that is made once is made.
fn allocations(server: &Server, params: &Value) -> u64 {
    // As usual clients, this one names itself.
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    let message = request(1, "tools/call", with(params, json!({"_meta": meta}))).to_string();
    let caller = Caller::default();
    let leg = || {
        // In debug builds, the runtime puts a large future in a box; a reference is small.
        let reply = pin!(server.respond(message.as_bytes(), &caller));
        let reply = tokio::runtime::Handle::current().block_on(reply);
        assert!(reply.is_some_and(|reply| !reply.is_error()));
    };
    leg();
    let counted = allocation_counter::measure(leg);
    assert_eq!(counted.count_current, 0, "something is kept");
    counted.count_total
}

/// The params of the first and of the second leg.
async fn legs(server: &Server) -> [Value; 2] {
    let mut talk = ToolCall::new(json!({"text": "orders"}));
    talk.leg(server, Value::Null).await;
    let first = json!({"name": "t", "arguments": {"text": "orders"}});
    let answers = json!({"region": accept(json!({"region": "eu-west-1"}))});
    let second = with(&first, json!({"requestState": talk.state, "inputResponses": answers}));
    [first, second]
}

#[test]
fn what_a_call_allocates() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut found_all = Vec::new();
    let mut check = |what: &str, tool: Tool, leg: usize, most: u64| {
        let server = server(tool);
        let params = match leg {
            0 => json!({"name": "t", "arguments": {"text": "hello"}}),
            leg => runtime.block_on(legs(&server))[leg - 1].clone(),
        };
        let _here = runtime.enter();
        let found = allocations(&server, &params);
        found_all.push((what.to_owned(), found, most));
    };
    check("echo", Tool::new("t", echo), 0, 9);
    check("by hand, leg 1", Tool::new("t", by_hand), 1, 28);
    check("with await, leg 1", Tool::new("t", by_await), 1, 26);
    check("by hand, leg 2", Tool::new("t", by_hand), 2, 65);
    check("with await, leg 2", Tool::new("t", by_await), 2, 41);
    let wrong: Vec<_> = found_all.iter().filter(|(_, found, expected)| found != expected).collect();
    assert!(wrong.is_empty(), "found, expected: {wrong:?}");
}
