//! A scripted server at the other end of a pair of streams.

use super::{Outcome, ask, request, soon};
use antiphon::client::transport::{StreamTransport, memory};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};

/// The server's end of the streams.
pub(crate) struct Peer {
    pub(crate) lines: Lines<BufReader<DuplexStream>>,
    pub(crate) writer: DuplexStream,
}

pub(crate) fn pair() -> (Arc<StreamTransport>, Peer) {
    let (client, reader, writer) = memory::duplex();
    (Arc::new(client), Peer { lines: BufReader::new(reader).lines(), writer })
}

impl Peer {
    /// The next message; `None` at the end.
    pub(crate) async fn receive(&mut self) -> Option<Value> {
        let line = soon(self.lines.next_line()).await.unwrap()?;
        Some(serde_json::from_str(&line).expect("a line of JSON"))
    }

    pub(crate) async fn receive_id(&mut self) -> Value {
        self.receive().await.expect("a request")["id"].clone()
    }

    pub(crate) async fn send(&mut self, text: impl AsRef<[u8]>) {
        soon(self.writer.write_all(text.as_ref())).await.unwrap();
    }

    pub(crate) async fn answers(&mut self, id: &Value, result: Value) {
        self.send(format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result}))).await;
    }
}

pub(crate) fn asking(
    client: &Arc<StreamTransport>,
    id: i64,
    method: &'static str,
) -> tokio::task::JoinHandle<(Outcome, Vec<String>)> {
    let client = Arc::clone(client);
    tokio::spawn(async move { ask(&*client, request(id, method)).await })
}

pub(crate) const OK: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"ok\":true}}\n";

pub(crate) fn ok() -> Outcome {
    Outcome::Result(json!({"ok": true}))
}
