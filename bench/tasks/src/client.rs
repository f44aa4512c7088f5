//! The measured task: one question, and a result. The client sends requests in process.

use crate::{engine::Engine, measured::Result};
use antiphon::{
    Form,
    server::{Caller, Ctx, Server, TaskMode, TaskOptions, Tool},
    store::{TaskLimits, TaskStore},
};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Deletion {
    name: String,
}

#[derive(serde::Deserialize, Form)]
struct Confirmation {
    confirm: bool,
}

async fn delete(ctx: &Ctx, args: Deletion) -> antiphon::Result<String> {
    let answer: Confirmation = ctx.elicit(format!("Delete {}?", args.name)).key("delete").await?;
    Ok(format!("{} deleted: {}", args.name, answer.confirm))
}

/// A server with the measured tool.
pub(crate) struct TaskClient {
    server: Server,
    tasks: Arc<dyn TaskStore>,
}

impl TaskClient {
    pub(crate) fn new(engine: &Engine) -> Result<Self> {
        let limits = TaskLimits::default().tasks(1_000_000).tasks_of_owner(1_000_000);
        let tool = Tool::new("delete", delete).task(TaskMode::Required);
        let server =
            engine.server().task_options(TaskOptions::default().limits(limits)).tool(tool).build()?;
        Ok(Self { server, tasks: Arc::clone(&engine.tasks) })
    }

    /// The length of the snapshot of a task that waits. The task goes on to its end.
    pub(crate) async fn snapshot_bytes(&self) -> Result<usize> {
        let id = self.create().await?;
        self.until_asked(&id).await?;
        let rows = self.tasks.list(1).await?;
        let bytes = rows.first().ok_or("no row")?.snapshot_bytes;
        self.answer(&id).await?;
        self.until_completed(&id).await?;
        Ok(bytes)
    }

    pub(crate) async fn create(&self) -> Result<String> {
        let reply =
            self.send("tools/call", json!({"name": "delete", "arguments": {"name": "orders"}})).await?;
        Ok(reply["taskId"].as_str().ok_or_else(|| format!("no task: {reply}"))?.to_owned())
    }

    pub(crate) async fn get(&self, id: &str) -> Result<Value> {
        self.send("tasks/get", json!({"taskId": id})).await
    }

    pub(crate) async fn answer(&self, id: &str) -> Result<()> {
        let answers = json!({"delete": {"action": "accept", "content": {"confirm": true}}});
        self.send("tasks/update", json!({"taskId": id, "inputResponses": answers})).await.map(drop)
    }

    pub(crate) async fn until_asked(&self, id: &str) -> Result<()> {
        self.until(id, "input_required").await
    }

    pub(crate) async fn until_completed(&self, id: &str) -> Result<()> {
        self.until(id, "completed").await
    }

    async fn until(&self, id: &str, status: &str) -> Result<()> {
        loop {
            let found = self.get(id).await?;
            match found["status"].as_str() {
                Some(now) if now == status => return Ok(()),
                Some("working" | "input_required") => tokio::task::yield_now().await,
                _ => return Err(format!("not {status}: {found}").into()),
            }
        }
    }

    async fn send(&self, method: &str, params: Value) -> Result<Value> {
        Self::reply(&self.server, method, &request(method, params, true)).await
    }

    /// Sends a request, and returns its result.
    pub(crate) async fn reply(server: &Server, method: &str, request: &str) -> Result<Value> {
        let reply = server.respond(request.as_bytes(), &Caller::default()).await.ok_or("no reply")?;
        let mut reply: Value = serde_json::from_slice(&reply.body)?;
        match reply["error"].take() {
            Value::Null => Ok(reply["result"].take()),
            error => Err(format!("{method}: {error}").into()),
        }
    }
}

/// Returns a request of a client that declares the extension for tasks, or not.
pub(crate) fn request(method: &str, mut params: Value, declares: bool) -> String {
    let mut capabilities = json!({"elicitation": {"form": {}}});
    if declares {
        capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    }
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}
