//! A legacy session on a pair of streams, with a client that writes raw lines.

use super::lines::{Peer, serve};
use antiphon::server::Server;
use serde_json::{Value, json};

/// A client in a session.
pub struct InSession {
    pub peer: Peer,
    /// The result of `initialize`.
    pub opened: Value,
}

/// The params of `initialize`.
pub fn initialize(version: &str, capabilities: Value) -> Value {
    json!({"protocolVersion": version, "capabilities": capabilities,
        "clientInfo": {"name": "old", "version": "1"}})
}

/// A request without metadata.
pub fn plain(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// All capabilities of a client of 2025-11-25.
pub fn everything() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}})
}

impl InSession {
    /// Opens a session of this version, for a client with these capabilities.
    pub async fn open(server: &Server, version: &str, capabilities: Value) -> Self {
        let mut peer = serve(server.clone(), 1 << 16);
        peer.send(plain(0, "initialize", initialize(version, capabilities)).to_string()).await;
        let opened = peer.receive().await.expect("an answer to initialize");
        peer.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
        Self { peer, opened }
    }

    /// Opens a session of the newest version, with all capabilities.
    pub async fn newest(server: &Server) -> Self {
        Self::open(server, "2025-11-25", everything()).await
    }

    pub async fn send(&mut self, message: Value) {
        self.peer.send(message.to_string()).await;
    }

    pub async fn receive(&mut self) -> Value {
        self.peer.receive().await.expect("a message")
    }

    /// Sends a request, and returns the next message.
    pub async fn asks(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.send(plain(id, method, params)).await;
        self.receive().await
    }

    /// Answers a request of the server.
    pub async fn answers(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }
}
