//! A client of tasks, by hand: it sends requests and reads replies.

use antiphon::{
    seal::Principal,
    server::{Caller, Server, ServerBuilder},
};
use serde_json::{Value, json};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// A client of a server in the same process.
pub struct TaskClient {
    pub server: Server,
    user: Option<&'static str>,
    declares: bool,
    /// The other capabilities that it declares.
    capabilities: Value,
    ids: AtomicU64,
}

/// Returns a client of the server that this function completes.
pub fn client(build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> TaskClient {
    let builder = Server::builder("tasks", "1.0").bind_principal(|caller: &Caller<'_>| {
        let user = caller.headers.and_then(|headers| headers.get("x-user")?.to_str().ok());
        Ok::<_, String>(user.map(Principal::user))
    });
    TaskClient::of(build(builder).build().unwrap())
}

impl TaskClient {
    pub fn of(server: Server) -> Self {
        let capabilities = json!({"elicitation": {"form": {}, "url": {}}});
        Self { server, user: None, declares: true, capabilities, ids: AtomicU64::new(0) }
    }

    /// The same client, for another user.
    pub fn user(&self, user: &'static str) -> Self {
        Self { user: Some(user), declares: self.declares, ..Self::of(self.server.clone()) }
    }

    /// The same client, without the extension.
    pub fn without_extension(&self) -> Self {
        Self { declares: false, user: self.user, ..Self::of(self.server.clone()) }
    }

    /// The same client, with these capabilities and the extension.
    pub fn capable(&self, capabilities: Value) -> Self {
        Self { capabilities, ..Self::of(self.server.clone()) }
    }

    /// Sends a request. Returns the response.
    pub async fn send(&self, method: &str, params: Value) -> Value {
        self.send_with(method, params, json!({})).await
    }

    /// Sends a request with these members of `_meta` beside the required ones. Returns the response.
    pub async fn send_with(&self, method: &str, params: Value, meta: Value) -> Value {
        let mut capabilities = self.capabilities.clone();
        if self.declares {
            capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        let mut params = params;
        for (name, value) in meta.as_object().into_iter().flatten() {
            params["_meta"][name] = value.clone();
        }
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        self.send_text(method, &params.to_string()).await
    }

    /// Sends a request with this text as `params`. Returns the response.
    pub async fn send_text(&self, method: &str, params: &str) -> Value {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let mut headers = http::HeaderMap::new();
        if let Some(user) = self.user {
            headers.insert("x-user", user.parse().unwrap());
        }
        let extensions = http::Extensions::new();
        let caller = Caller::http(&headers, &extensions);
        let reply = self.server.respond(message.as_bytes(), &caller).await.expect("a request has a reply");
        serde_json::from_slice(&reply.body).unwrap()
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.send("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Calls a tool, and returns the id of the task.
    pub async fn task(&self, tool: &str, arguments: Value) -> String {
        let reply = self.call(tool, arguments).await;
        assert_eq!(reply["result"]["resultType"], "task", "{reply}");
        reply["result"]["taskId"].as_str().unwrap().to_owned()
    }

    pub async fn get(&self, id: &str) -> Value {
        let reply = self.send("tasks/get", json!({"taskId": id})).await;
        assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
        assert!(!reply.to_string().contains("requestState"), "{reply}");
        reply["result"].clone()
    }

    pub async fn update(&self, id: &str, answers: Value) {
        let reply = self.send("tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
        assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
    }

    pub async fn cancel(&self, id: &str) {
        let reply = self.send("tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(reply["result"]["resultType"], "complete", "{reply}");
    }

    /// Waits until the task is as this function says. The clock of the test is paused: no time passes.
    pub async fn until(&self, id: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..1000 {
            let task = self.get(id).await;
            if is_it(&task) {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{}", self.get(id).await);
    }

    /// Waits until the task has this status.
    pub async fn status(&self, id: &str, status: &str) -> Value {
        self.until(id, |task| task["status"] == status).await
    }

    /// Waits until exactly these questions are open.
    pub async fn asked(&self, id: &str, keys: &[&str]) -> Value {
        self.until(id, |task| keys_of(task) == keys).await
    }
}

/// The keys of the open questions.
pub fn keys_of(task: &Value) -> Vec<&str> {
    task["inputRequests"].as_object().map_or(Vec::new(), |asked| asked.keys().map(String::as_str).collect())
}

/// The text of the result.
pub fn text_of(task: &Value) -> &str {
    task["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{task}"))
}

pub fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}
