//! A server on a real socket, and clients that write raw HTTP.

use super::{
    fixture,
    gate::{Gate, gate, soon},
    request,
};
use antiphon::{
    serve::http::{HttpOptions, serve_http},
    server::Server,
};
use serde_json::{Value, json};
use std::{io, net::SocketAddr};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

/// A server on a port of its own, with the tool `hold`.
pub struct Running {
    pub address: SocketAddr,
    pub gate: Gate,
    pub shutdown: oneshot::Sender<()>,
    pub ended: JoinHandle<io::Result<()>>,
}

pub fn holding() -> (Server, Gate) {
    let (hold, gate) = gate();
    (fixture(|builder| builder.tool(hold)).server, gate)
}

pub async fn serve(options: HttpOptions) -> Running {
    let (server, gate) = holding();
    serve_held(server, gate, options).await
}

/// A server of this kind on a port of its own.
pub async fn serve_this(server: Server, options: HttpOptions) -> Running {
    let (_, gate) = gate();
    serve_held(server, gate, options).await
}

/// A server of this kind on a port of its own, with the gate of its tool `hold`.
pub async fn serve_held(server: Server, gate: Gate, options: HttpOptions) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (shutdown, stop) = oneshot::channel();
    let ended = tokio::spawn(
        serve_http(listener, server, options)
            .with_graceful_shutdown(async { drop(stop.await) })
            .into_future(),
    );
    Running { address, gate, shutdown, ended }
}

/// Any message, as the text of a correct request.
pub fn text_of(message: &Value) -> String {
    let method = message["method"].as_str().unwrap();
    let name = match &message["params"]["name"] {
        Value::String(name) => format!("Mcp-Name: {name}\r\n"),
        _ => String::new(),
    };
    let body = message.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A request of this tool, as text; `more` are further header lines.
pub fn text(id: u32, tool: &str, name: &str, more: &str) -> String {
    let body = request(id, "tools/call", json!({"name": tool, "arguments": {"name": name}})).to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHOST: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-PROTOCOL-VERSION: \t2026-07-28 \r\n\
         mcp-method:tools/call\r\nMcp-Name:   {tool}\t\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The POST of a message without the headers of today, as text; `more` are further header lines.
pub fn post(body: &Value, more: &str) -> String {
    let body = body.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// One connection, and what was read ahead on it.
pub struct Client {
    pub stream: TcpStream,
    pub ahead: Vec<u8>,
}

/// A response: its status, its head in lower case, its body.
pub struct SocketReply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Client {
    pub async fn new(server: &Running) -> Self {
        Self { stream: soon(TcpStream::connect(server.address)).await.unwrap(), ahead: Vec::new() }
    }

    pub async fn send(&mut self, text: impl AsRef<[u8]>) {
        soon(self.stream.write_all(text.as_ref())).await.unwrap();
    }

    /// The head of a response whose body is a stream, in lower case.
    pub async fn receive_head(&mut self) -> String {
        loop {
            if let Some(end) = self.ahead.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8(self.ahead[..end].to_vec()).unwrap().to_lowercase();
                self.ahead.drain(..end + 4);
                return head;
            }
            assert_ne!(soon(self.stream.read_buf(&mut self.ahead)).await.unwrap(), 0, "a whole head");
        }
    }

    /// The next chunk of a stream; `None` at its end.
    pub async fn receive_chunk(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|two| two == b"\r\n") {
                let length = std::str::from_utf8(&self.ahead[..end]).unwrap();
                let length = usize::from_str_radix(length, 16).unwrap();
                let whole = end + 2 + length + 2;
                if self.ahead.len() >= whole {
                    let chunk = String::from_utf8(self.ahead[end + 2..whole - 2].to_vec()).unwrap();
                    self.ahead.drain(..whole);
                    return (length > 0).then_some(chunk);
                }
            }
            assert_ne!(soon(self.stream.read_buf(&mut self.ahead)).await.unwrap(), 0, "a whole chunk");
        }
    }

    /// The message of the next event; `None` at the stream's end.
    pub async fn receive_event(&mut self) -> Option<Value> {
        let chunk = self.receive_chunk().await?;
        let data = chunk.strip_prefix("data: ").and_then(|rest| rest.strip_suffix("\n\n"));
        Some(serde_json::from_str(data.unwrap_or_else(|| panic!("an event: {chunk:?}"))).unwrap())
    }

    pub async fn receive(&mut self) -> SocketReply {
        loop {
            if let Some(end) = self.ahead.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8(self.ahead[..end].to_vec()).unwrap().to_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                let end_of_body = end + 4 + length.parse::<usize>().unwrap();
                if self.ahead.len() >= end_of_body {
                    let body = String::from_utf8(self.ahead[end + 4..end_of_body].to_vec()).unwrap();
                    self.ahead.drain(..end_of_body);
                    return SocketReply { status: head[9..12].parse().unwrap(), head, body };
                }
            }
            assert_ne!(soon(self.stream.read_buf(&mut self.ahead)).await.unwrap(), 0, "a whole response");
        }
    }

    /// Waits for the result of `text(id, .., name, ..)`.
    pub async fn receive_result(&mut self, id: u32, name: &str) -> SocketReply {
        let heard = self.receive().await;
        let reply: Value = serde_json::from_str(&heard.body).unwrap();
        assert_eq!((heard.status, &reply["id"]), (200, &json!(id)), "{}", heard.body);
        assert_eq!(reply["result"]["content"][0]["text"], name, "{reply}");
        heard
    }

    /// Waits until the server closes the connection without further bytes.
    pub async fn expect_close(mut self) {
        // A reset is a close as well.
        let _ = soon(self.stream.read_to_end(&mut self.ahead)).await;
        assert_eq!(self.ahead, b"");
    }
}
