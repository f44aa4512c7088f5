//! Clients that speak HTTP by hand, so that they take little memory themselves.

use crate::Result;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// One connection.
pub(crate) struct Connection {
    stream: TcpStream,
    heard: String,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, heard: String::new() })
    }

    pub(crate) async fn asks(&mut self, request: &str) -> Result<()> {
        self.heard.clear();
        Ok(self.stream.write_all(request.as_bytes()).await?)
    }

    /// Waits until this text is received, and clears the buffer.
    pub(crate) async fn hears(&mut self, text: &str) -> Result<()> {
        let mut piece = [0; 4096];
        while !self.heard.contains(text) {
            let read = self.stream.read(&mut piece).await?;
            if read == 0 || self.heard.len() > 64 * 1024 {
                return Err(format!("heard no {text}: {}", self.heard).into());
            }
            self.heard.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        self.heard = String::new();
        Ok(())
    }
}

/// Waits until all connections have received this text.
pub(crate) async fn tell_all(open: Vec<Connection>, text: &str) -> Result<()> {
    for mut connection in open {
        connection.hears(text).await?;
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
