//! A server on a pair of streams, and a client that writes raw lines.

use super::{
    fixture,
    gate::{Gate, gate, soon},
    request,
};
use antiphon::{
    serve::stdio::{ServeStreams, serve_streams},
    server::Server,
};
use serde_json::{Value, json};
use std::io;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    task::JoinHandle,
};

/// The client's end.
pub struct Peer {
    pub lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    pub writer: WriteHalf<DuplexStream>,
    pub serving: JoinHandle<io::Result<()>>,
}

/// Starts a server on pipes of this size.
pub fn serve(server: Server, size: usize) -> Peer {
    serve_with(server, size, |serving| serving)
}

/// Starts a server with these settings on pipes of this size.
pub fn serve_with(
    server: Server,
    size: usize,
    set: impl FnOnce(ServeStreams<'static>) -> ServeStreams<'static>,
) -> Peer {
    let (ours, theirs) = tokio::io::duplex(size);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(set(serve_streams(input, output, server)));
    let (read, writer) = tokio::io::split(ours);
    Peer { lines: BufReader::new(read).lines(), writer, serving }
}

pub fn holding() -> (Peer, Gate) {
    let (hold, gate) = gate();
    (serve(fixture(|builder| builder.tool(hold)).server, 1 << 16), gate)
}

impl Peer {
    pub async fn send(&mut self, line: impl AsRef<[u8]>) {
        soon(self.writer.write_all(line.as_ref())).await.unwrap();
        soon(self.writer.write_all(b"\n")).await.unwrap();
    }

    /// The next message; `None` at the end.
    pub async fn receive(&mut self) -> Option<Value> {
        let line = soon(self.lines.next_line()).await.unwrap()?;
        let message: Value = serde_json::from_str(&line).expect("a line of JSON");
        assert_eq!(message["jsonrpc"], "2.0");
        Some(message)
    }

    /// The id and the code of the next message; 0 for a result.
    pub async fn receive_outcome(&mut self) -> (Value, i64) {
        let message = self.receive().await.expect("a message");
        (
            message.get("id").cloned().unwrap_or_default(),
            message["error"]["code"].as_i64().unwrap_or_default(),
        )
    }

    /// Calls `hold` and waits until it runs.
    pub async fn holds(&mut self, gate: &mut Gate, id: Value, name: &str) {
        self.send(hold(id, name)).await;
        gate.started(name).await;
    }

    /// Ends the input and waits for the end of the server.
    pub async fn ends(mut self) -> Vec<Value> {
        soon(self.writer.shutdown()).await.unwrap();
        let mut rest = Vec::new();
        while let Some(message) = self.receive().await {
            rest.push(message);
        }
        soon(self.serving).await.unwrap().unwrap();
        rest
    }
}

pub fn hold(id: Value, name: &str) -> String {
    let mut message = request(0, "tools/call", json!({"name": "hold", "arguments": {"name": name}}));
    message["id"] = id;
    message.to_string()
}

pub fn discover(id: u32) -> String {
    request(id, "server/discover", json!({})).to_string()
}

pub fn cancelled(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled"{params}}}"#)
}
