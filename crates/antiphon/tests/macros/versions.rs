//! Attributes of the macros for calls that another version began.
#![cfg(feature = "macros")]

use crate::common;
use crate::common::{request, ring, with};
use antiphon::{
    Form, Result, server,
    server::{Caller, Ctx, Server, ServerBuilder},
    tool,
    wire::content::ResourceContents,
};
use serde_json::{Value, json};

#[derive(serde::Deserialize, Form)]
struct Place {
    region: String,
}

#[derive(serde::Deserialize, Form)]
struct Confirm {
    #[allow(dead_code, reason = "whatever it is, it is an answer")]
    ok: bool,
}

fn server(build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    build(Server::builder("versions", "1.0").keys(ring(7))).build().unwrap()
}

/// One leg with this state and these answers.
async fn leg(server: &Server, method: &str, params: &Value, more: Value) -> Value {
    let message = request(1, method, with(params, more)).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}

/// Returns the next leg's members: the state of this reply and answers to both questions.
fn next(reply: &Value, region: &str) -> Value {
    let accept = |content: Value| json!({"action": "accept", "content": content});
    json!({
        "requestState": common::state_of(reply),
        "inputResponses": {"place": accept(json!({"region": region})), "confirm": accept(json!({"ok": true}))},
    })
}

/// Builds of the tool `t`: what stands in its attribute, its first question, and the steps behind it.
macro_rules! builds {
    ($($build:ident: ($($attribute:tt)*), $question:literal, [$($step:literal),*];)*) => { $(
        mod $build {
            use super::*;

            #[tool($($attribute)*)]
            pub(super) async fn t(ctx: &Ctx) -> Result<String> {
                let Place { region } = ctx.elicit($question).await?;
                let mut made: Vec<String> = Vec::new();
                $( made.push(ctx.step($step, async |_| Ok(format!("{} in {region}", $step))).await?); )*
                ctx.elicit::<Confirm>("Sure?").await?;
                Ok(made.join(", "))
            }
        }
    )* };
}

builds! {
    first: (version = 1), "Where?", ["warm_up", "ping", "create"];
    same: (version = 1, on_version = "reject"), "Where?", ["warm_up", "ping", "create"];
    kept: (version = 2), "Where?", ["warm_up", "ping", "create"];
    keep: (version = 2, on_version = "keep"), "Where?", ["warm_up", "ping", "create"];
    reject: (version = 2, on_version = "reject"), "Where?", ["warm_up", "ping", "create"];
    restart: (version = 2, on_version = "restart"), "Where?", ["create_db"];
    diverged: (version = 2), "Where?", ["create_db"];
    migrated: (version = 2, rename("create", "create_db"), forget("warm_up", "ping")), "Where?", ["create_db"];
    renamed_twice: (version = 2, rename("ping", "pong"), forget("warm_up"), rename("create", "create_db")),
        "Where?", ["pong", "create_db"];
    in_order: (version = 2, forget("create"), rename("ping", "create"), forget("warm_up")), "Where?", ["create"];
    stale: (version = 2, keep_stale("warm_up", "ping", "create")), "Where now?", ["warm_up", "ping", "create"];
    lenient: (version = 2, lenient_replay), "Where?", ["create_db"];
    strict: (version = 2, lenient_replay = false), "Where?", ["create_db"];
}

#[tokio::test]
async fn a_call_goes_on_under_another_version_as_its_attributes_say() {
    let (all, params) = ("warm_up in eu, ping in eu, create in eu", json!({"name": "t", "arguments": {}}));
    for (build, new, expected) in [
        ("same", server(|builder| builder.tool(same::t)), all),
        ("kept", server(|builder| builder.tool(kept::t)), all),
        ("keep", server(|builder| builder.tool(keep::t)), all),
        ("reject", server(|builder| builder.tool(reject::t)), "-32602 version"),
        ("restart", server(|builder| builder.tool(restart::t)), "create_db in us"),
        ("diverged", server(|builder| builder.tool(diverged::t)), "-32603 flow_diverged"),
        // Under its new key it is what it was.
        ("migrated", server(|builder| builder.tool(migrated::t)), "create in eu"),
        ("renamed_twice", server(|builder| builder.tool(renamed_twice::t)), "ping in eu, create in eu"),
        ("in_order", server(|builder| builder.tool(in_order::t)), "ping in eu"),
        ("stale", server(|builder| builder.tool(stale::t)), all),
        ("lenient", server(|builder| builder.tool(lenient::t)), "create_db in eu"),
        ("strict", server(|builder| builder.tool(strict::t)), "-32603 flow_diverged"),
    ] {
        let old = server(|builder| builder.tool(first::t));
        let mut reply = leg(&old, "tools/call", &params, json!({})).await;
        let mut answers = next(&reply, "eu");
        answers["inputResponses"].as_object_mut().unwrap().remove("confirm");
        reply = leg(&old, "tools/call", &params, answers).await;
        for _ in 0..3 {
            if reply["result"]["resultType"] == "input_required" {
                reply = leg(&new, "tools/call", &params, next(&reply, "us")).await;
            }
        }
        let said = match &reply["error"] {
            Value::Null => reply["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
            error => {
                format!("{} {}", error["code"], error["data"]["reason"].as_str().unwrap_or_default())
            }
        };
        assert_eq!(said, expected, "{build}: {reply}");
    }
}

/// The same with every kind of definition.
macro_rules! services {
    ($($name:ident: ($($attribute:tt)*);)*) => { $(
        struct $name;

        #[server]
        impl $name {
            #[tool($($attribute)*)]
            async fn t(&self, ctx: &Ctx) -> Result<String> {
                sure(ctx).await
            }

            #[prompt($($attribute)*)]
            async fn p(&self, ctx: &Ctx) -> Result<String> {
                sure(ctx).await
            }

            #[resource("versions://one", $($attribute)*)]
            async fn one(&self, ctx: &Ctx) -> Result<ResourceContents> {
                Ok(ResourceContents::text("versions://one", sure(ctx).await?))
            }

            #[resource("versions://many/{id}", $($attribute)*)]
            async fn many(&self, ctx: &Ctx, id: &str) -> Result<ResourceContents> {
                Ok(ResourceContents::text(format!("versions://many/{id}"), sure(ctx).await?))
            }
        }
    )* };
}

async fn sure(ctx: &Ctx) -> Result<String> {
    ctx.elicit::<Confirm>("Sure?").await?;
    Ok("sure".to_owned())
}

services! {
    One: (version = 1);
    Migrated: (version = 2, on_version = "keep", added("e"), rename("a", "b"), forget("c"), keep_stale("d"), lenient_replay);
    Rejects: (version = 2, on_version = "reject");
}

#[tokio::test]
async fn every_kind_has_the_same_attributes() {
    for (method, params) in [
        ("tools/call", json!({"name": "t", "arguments": {}})),
        ("prompts/get", json!({"name": "p"})),
        ("resources/read", json!({"uri": "versions://one"})),
        ("resources/read", json!({"uri": "versions://many/1"})),
    ] {
        let begun = leg(&server(|builder| builder.with(One)), method, &params, json!({})).await;
        let more = || next(&begun, "eu");
        let goes_on = leg(&server(|builder| builder.with(Migrated)), method, &params, more()).await;
        assert!(goes_on["result"].to_string().contains("sure"), "{method}: {goes_on}");
        let refused = leg(&server(|builder| builder.with(Rejects)), method, &params, more()).await;
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
        assert_eq!(refused["error"]["data"]["reason"], "version", "{method}: {refused}");
    }
}
