//! Clients that speak HTTP by hand, so that they take little memory themselves.

use crate::error::Result;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// One connection.
pub(crate) struct Connection {
    stream: TcpStream,
    received: String,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: String::new() })
    }

    pub(crate) async fn asks(&mut self, request: &str) -> Result<()> {
        self.received.clear();
        Ok(self.stream.write_all(request.as_bytes()).await?)
    }

    /// Waits until this text has arrived since the last question, and drops what has arrived.
    pub(crate) async fn receive_until(&mut self, text: &str) -> Result<()> {
        let mut piece = [0; 4096];
        while !self.received.contains(text) {
            let read = self.stream.read(&mut piece).await?;
            if read == 0 || self.received.len() > 64 * 1024 {
                return Err(format!("received no {text}: {}", self.received).into());
            }
            self.received.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        self.received = String::new();
        Ok(())
    }
}

/// Waits until all have received this text.
pub(crate) async fn send_to_all(open: Vec<Connection>, text: &str) -> Result<()> {
    for mut connection in open {
        connection.receive_until(text).await?;
    }
    Ok(())
}

/// A call of a tool without arguments but a number.
pub(crate) fn call(tool: &str, number: usize) -> String {
    post("tools/call", tool, json!({"name": tool, "arguments": {"number": number}}))
}

/// A subscription to changes of the tools.
pub(crate) fn listen(_id: usize) -> String {
    post("subscriptions/listen", "", json!({"notifications": {"toolsListChanged": true}}))
}

fn post(method: &str, name: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let name = if name.is_empty() { String::new() } else { format!("Mcp-Name: {name}\r\n") };
    format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
