//! A scripted HTTP server: raw bytes over TCP.

use super::{Outcome, ask, soon};
use antiphon::client::transport::{HttpTransport, OutgoingRequest};
use serde_json::json;
use std::sync::Arc;
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
};

/// The server's side of a connection.
pub(crate) struct Server {
    listener: TcpListener,
    pub(crate) url: String,
}

impl Server {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp?key=hunter2", listener.local_addr().unwrap());
        Self { listener, url }
    }

    pub(crate) fn client(&self) -> Arc<HttpTransport> {
        Arc::new(HttpTransport::new(&self.url).unwrap())
    }

    pub(crate) async fn accepts(&self) -> TcpStream {
        let (connection, _) = soon(self.listener.accept()).await.unwrap();
        connection.set_nodelay(true).unwrap();
        connection
    }
}

/// Reads one request: its head, in lower case, and its body.
pub(crate) async fn receive(connection: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    loop {
        assert_ne!(soon(connection.read_buf(&mut bytes)).await.unwrap(), 0, "a whole request");
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let length: usize = length.parse().unwrap();
        if bytes.len() == end + 4 + length {
            return (head, bytes.split_off(end + 4));
        }
    }
}

/// Waits until the other side has closed.
pub(crate) async fn expect_close(connection: &mut TcpStream) {
    let mut rest = Vec::new();
    // A reset is a close as well.
    let _ = soon(connection.read_to_end(&mut rest)).await;
    assert_eq!(rest, b"");
}

pub(crate) fn asking(
    client: &Arc<HttpTransport>,
    request: OutgoingRequest,
) -> tokio::task::JoinHandle<(Outcome, Vec<String>)> {
    let client = Arc::clone(client);
    tokio::spawn(async move { ask(&*client, request).await })
}

pub(crate) const OK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"ok":true}}"#;
pub(crate) const OTHER: &str = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
pub(crate) const ERROR: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
pub(crate) const NO_ID: &str = r#"{"jsonrpc":"2.0","error":{"code":-32020,"message":"no"}}"#;
pub(crate) const UNKNOWN: &str = r#"{"jsonrpc":"2.0","method":"notifications/what"}"#;
pub(crate) const PROGRESS: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#;
pub(crate) const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;

pub(crate) fn ok() -> Outcome {
    Outcome::Result(json!({"ok": true}))
}

pub(crate) fn response(status: &str, media_type: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n{body}")
}

pub(crate) fn json_response(status: &str, body: &str) -> String {
    response(status, "application/json", body)
}

pub(crate) fn chunked(media_type: &str, chunks: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}")
}

pub(crate) fn events(events: &[&str]) -> String {
    let body: String =
        events.iter().map(|event| format!("event: message\r\ndata: {event}\r\n\r\n")).collect();
    chunked("text/event-stream", &format!("{:x}\r\n{body}\r\n", body.len()))
}
