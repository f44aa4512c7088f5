//! A client of tasks in a session, by hand: it sends requests, and answers those of the server.

use crate::common::session::{InSession, everything, plain};
use antiphon::server::Server;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

/// A client in a session on a pair of streams.
pub struct SessionClient {
    session: InSession,
    last_id: u32,
    replies: HashMap<u64, Value>,
    /// The requests of the server that were not read yet.
    asked: VecDeque<Value>,
    /// The notifications of the server, without progress.
    pub notified: Vec<Value>,
}

impl SessionClient {
    /// Opens a session of 2025-11-25, with all capabilities.
    pub async fn open(server: &Server) -> Self {
        Self::of(InSession::newest(server).await)
    }

    /// Opens a session of this version.
    pub async fn of_version(server: &Server, version: &str) -> Self {
        Self::of(InSession::open(server, version, everything()).await)
    }

    fn of(session: InSession) -> Self {
        Self { session, last_id: 0, replies: HashMap::new(), asked: VecDeque::new(), notified: Vec::new() }
    }

    /// The capabilities that the server declared.
    pub fn capabilities(&self) -> &Value {
        &self.session.opened["result"]["capabilities"]
    }

    /// Sends a request, and does not wait for the reply. Returns its id.
    pub async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.session.send(plain(self.last_id, method, params)).await;
        self.last_id.into()
    }

    /// Waits for the reply to a request.
    pub async fn reply(&mut self, id: u64) -> Value {
        loop {
            if let Some(reply) = self.replies.remove(&id) {
                return reply;
            }
            self.receive().await;
        }
    }

    /// Sends a request. Returns the reply.
    pub async fn send(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.reply(id).await
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.session.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Waits for the next request of the server.
    pub async fn asked(&mut self) -> Value {
        loop {
            if let Some(asked) = self.asked.pop_front() {
                return asked;
            }
            self.receive().await;
        }
    }

    /// Returns true if the server has sent no request that was not read, before it replies to a ping.
    pub async fn is_asked_nothing(&mut self) -> bool {
        self.send("ping", json!({})).await;
        self.asked.is_empty()
    }

    /// Answers a request of the server.
    pub async fn answer(&mut self, asked: &Value, result: Value) {
        self.session.answers(asked, result).await;
    }

    /// Answers a request of the server with an error.
    pub async fn fail(&mut self, asked: &Value, code: i64) {
        let error = json!({"code": code, "message": "no window"});
        self.session.send(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
    }

    async fn receive(&mut self) {
        let message = self.session.receive().await;
        match (message["id"].as_u64(), message["method"].as_str()) {
            (Some(_), Some(_)) => self.asked.push_back(message),
            (Some(id), None) => assert!(self.replies.insert(id, message).is_none()),
            (None, Some("notifications/progress")) => {}
            (None, Some(_)) => self.notified.push(message),
            (None, None) => panic!("{message}"),
        }
    }

    /// Calls a tool as a task. Returns the id of the task.
    pub async fn task(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({"name": tool, "arguments": arguments, "task": {}});
        let reply = self.send("tools/call", params).await;
        reply["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
    }

    pub async fn get(&mut self, id: &str) -> Value {
        self.send("tasks/get", json!({"taskId": id})).await["result"].clone()
    }

    /// Waits until the task has this status. The clock of the test is paused: no time passes.
    pub async fn status(&mut self, id: &str, status: &str) -> Value {
        for _ in 0..1000 {
            let task = self.get(id).await;
            if task["status"] == status {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{}", self.get(id).await);
    }

    /// Ends the input, and waits for the end of the server.
    pub async fn ends(self) {
        self.session.peer.ends().await;
    }
}

/// The id of the task in the `_meta` of a message's params or result.
pub fn related(message: &Value) -> &Value {
    &message["_meta"]["io.modelcontextprotocol/related-task"]["taskId"]
}
