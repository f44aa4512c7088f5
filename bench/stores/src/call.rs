//! The measured call: a question, then a leg with its answer, one step and the result.

use crate::level::{Level, Result};
use antiphon::{
    Form,
    server::{Caller, Ctx, Server, Tool},
    store::CallStore,
};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Provision {
    name: String,
}

#[derive(serde::Deserialize, Form)]
struct Place {
    region: String,
}

async fn provision(ctx: &Ctx, args: Provision) -> antiphon::Result<String> {
    let place: Place = ctx.elicit("Which region should the database live in?").key("region").await?;
    let id: String = ctx.step("create", async |step| Ok(format!("{}-{}", place.region, step.key()))).await?;
    Ok(format!("Provisioned {:?} in {}: {id}.", args.name, place.region))
}

/// A server with the measured tool.
pub(crate) struct Shop(Server);

impl Shop {
    pub(crate) fn new(store: Option<Arc<dyn CallStore>>, level: Level) -> Result<Self> {
        let tool = Tool::new("provision", provision);
        let builder = Server::builder("bench", "1.0");
        let builder = match store {
            None => builder,
            Some(store) if level == Level::WriteAhead => builder.store(store).write_ahead(true),
            Some(store) => builder.store(store).single_use(true),
        };
        Ok(Self(builder.tool(tool).build()?))
    }

    /// Begins a call. Returns the request with the answer to its question.
    pub(crate) async fn asked(&self) -> Result<Vec<u8>> {
        let reply = self.send(&request(&json!({}))).await?;
        let state = &reply["result"]["requestState"];
        if !state.is_string() {
            return Err(format!("no question: {reply}").into());
        }
        Ok(request(&json!({
            "requestState": state,
            "inputResponses": { "region": { "action": "accept", "content": { "region": "eu-west-1" } } },
        })))
    }

    /// Answers the question.
    pub(crate) async fn answered(&self, request: &[u8]) -> Result<()> {
        let body = self.0.respond(request, &Caller::default()).await.ok_or("no reply")?.body;
        if std::str::from_utf8(&body)?.contains("Provisioned") {
            return Ok(());
        }
        Err(format!("no result: {}", String::from_utf8_lossy(&body)).into())
    }

    async fn send(&self, request: &[u8]) -> Result<Value> {
        let reply = self.0.respond(request, &Caller::default()).await.ok_or("no reply")?;
        Ok(serde_json::from_slice(&reply.body)?)
    }
}

fn request(more: &Value) -> Vec<u8> {
    let mut params = json!({
        "name": "provision",
        "arguments": { "name": "orders" },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        },
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string().into_bytes()
}
