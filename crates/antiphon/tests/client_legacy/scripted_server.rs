//! Scripted servers: lines over a pair of streams, and answers over HTTP.

use antiphon::client::{
    Client, ClientBuilder,
    transport::{HttpTransport, memory},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};

/// The maximum time that a test waits for one event.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn builder() -> ClientBuilder {
    Client::builder("my-host", "1.0")
}

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(10 * LONG, future).await.expect("this happens in time")
}

pub(crate) fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(crate) fn error(id: &Value, code: i64, data: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "says the server", "data": data}})
}

pub(crate) fn asks(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params})
}

pub(crate) fn hello(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {
            "tools": {"listChanged": true}, "logging": {}, "prompts": {},
            "resources": {"subscribe": true, "listChanged": true}
        },
        "serverInfo": {"name": "old", "version": "1.0"},
        "instructions": "Ask."
    })
}

/// The server's end of a pair of streams.
pub(crate) struct Peer {
    lines: Lines<BufReader<DuplexStream>>,
    writer: DuplexStream,
}

impl Peer {
    /// A client and the server at the other end.
    pub(crate) fn of(builder: ClientBuilder) -> (Client, Self) {
        let (transport, reader, writer) = memory::duplex();
        (builder.connect(transport), Self { lines: BufReader::new(reader).lines(), writer })
    }

    pub(crate) fn new(reader: DuplexStream, writer: DuplexStream) -> Self {
        Self { lines: BufReader::new(reader).lines(), writer }
    }

    /// The next message; none at the end.
    pub(crate) async fn receive(&mut self) -> Option<Value> {
        let line = soon(self.lines.next_line()).await.unwrap()?;
        Some(serde_json::from_str(&line).expect("a line of JSON"))
    }

    /// The next message, which is of this method.
    pub(crate) async fn receive_of(&mut self, method: &str) -> Value {
        let message = self.receive().await.expect("a message");
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub(crate) async fn send(&mut self, message: Value) {
        let _ = soon(self.writer.write_all(format!("{message}\n").as_bytes())).await;
    }

    pub(crate) async fn send_line(&mut self, line: &str) {
        let _ = soon(self.writer.write_all(format!("{line}\n").as_bytes())).await;
    }

    /// Refuses the probe and performs the handshake. Returns the `initialize` request.
    pub(crate) async fn handshake(&mut self, version: &str) -> Value {
        let probe = self.receive_of("server/discover").await;
        self.send(error(&probe["id"], -32601, Value::Null)).await;
        self.initializes(version).await
    }

    pub(crate) async fn initializes(&mut self, version: &str) -> Value {
        let initialize = self.receive_of("initialize").await;
        self.send(result(&initialize["id"], hello(version))).await;
        let initialized = self.receive_of("notifications/initialized").await;
        assert!(initialized.get("id").is_none());
        initialize["params"].clone()
    }
}

/// One request over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

impl ReceivedRequest {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The HTTP verb and the JSON-RPC method, or the answered id.
    pub(crate) fn short(&self) -> String {
        let what = if self.body.is_null() {
            String::new()
        } else if self.method().is_empty() {
            " response".to_owned()
        } else {
            format!(" {}", self.method())
        };
        format!("{}{what}", self.verb)
    }
}

/// The answer to a request.
pub(crate) enum ScriptedReply {
    Whole(u16, Vec<(String, String)>, String),
    /// A stream: this first, and what comes; it ends when the sender is dropped.
    Stream(Vec<(String, String)>, String, mpsc::UnboundedReceiver<String>),
    Silence,
    Close,
}

impl ScriptedReply {
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self::typed(status, "application/json", body.to_string())
    }

    pub(crate) fn typed(status: u16, media_type: &str, body: impl Into<String>) -> Self {
        Self::Whole(status, vec![("content-type".into(), media_type.into())], body.into())
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self::Whole(status, Vec::new(), String::new())
    }

    /// Events, and then the end.
    pub(crate) fn events(text: impl Into<String>) -> Self {
        Self::typed(200, "text/event-stream", text)
    }

    /// Events, and then silence until the sender says more.
    pub(crate) fn open(text: impl Into<String>) -> (mpsc::UnboundedSender<String>, Self) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let head = vec![("content-type".into(), "text/event-stream".into())];
        (sender, Self::Stream(head, text.into(), receiver))
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Whole(_, headers, _) | Self::Stream(headers, ..) = &mut self {
            headers.push((name.into(), value.into()));
        }
        self
    }
}

pub(crate) fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// A server over HTTP.
pub(crate) struct ScriptedHttpServer {
    pub(crate) url: String,
    heard: Arc<Mutex<Vec<ReceivedRequest>>>,
    task: JoinHandle<()>,
}

impl ScriptedHttpServer {
    pub(crate) async fn new(
        answer: impl Fn(&ReceivedRequest) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let heard: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let (answer, kept) = (Arc::new(answer), Arc::clone(&heard));
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                let (answer, kept) = (Arc::clone(&answer), Arc::clone(&kept));
                connections.spawn(async move { serve(connection, &*answer, &kept).await });
            }
        });
        Self { url, heard, task }
    }

    pub(crate) fn client(&self, builder: ClientBuilder) -> Client {
        builder.connect(HttpTransport::new(&self.url).unwrap())
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.heard.lock().unwrap().clone()
    }

    pub(crate) fn short(&self) -> Vec<String> {
        self.requests().iter().map(ReceivedRequest::short).collect()
    }

    /// Waits for a request that matches `wanted`.
    pub(crate) async fn receive(&self, wanted: impl Fn(&ReceivedRequest) -> bool) -> ReceivedRequest {
        soon(async {
            loop {
                if let Some(heard) = self.requests().into_iter().find(&wanted) {
                    return heard;
                }
                tokio::task::yield_now().await;
            }
        })
        .await
    }
}

impl Drop for ScriptedHttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    connection: TcpStream,
    answer: &(dyn Fn(&ReceivedRequest) -> ScriptedReply + Send + Sync),
    kept: &Mutex<Vec<ReceivedRequest>>,
) {
    let mut stream = BufReader::new(connection);
    while let Some(heard) = read_request(&mut stream).await {
        kept.lock().unwrap().push(heard.clone());
        let said = answer(&heard);
        let mut rest = Vec::new();
        match said {
            ScriptedReply::Silence => {
                let _ = stream.read_to_end(&mut rest).await;
                return;
            }
            ScriptedReply::Close => return,
            ScriptedReply::Whole(status, headers, body) => {
                let head = head(status, &headers) + &format!("content-length: {}\r\n\r\n", body.len());
                if stream.write_all((head + &body).as_bytes()).await.is_err() {
                    return;
                }
            }
            ScriptedReply::Stream(headers, first, mut more) => {
                let head = head(200, &headers) + "transfer-encoding: chunked\r\n\r\n";
                let _ = stream.write_all((head + &chunk(&first)).as_bytes()).await;
                loop {
                    let mut byte = [0];
                    tokio::select! {
                        more = more.recv() => match more {
                            Some(text) => {
                                let _ = stream.write_all(chunk(&text).as_bytes()).await;
                            }
                            None => {
                                let _ = stream.write_all(b"0\r\n\r\n").await;
                                break;
                            }
                        },
                        _ = stream.read(&mut byte) => return,
                    }
                }
            }
        }
    }
}

fn head(status: u16, headers: &[(String, String)]) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} X\r\n{headers}")
}

fn chunk(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{:x}\r\n{text}\r\n", text.len()) }
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<ReceivedRequest> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (verb, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    Some(ReceivedRequest { verb, path, headers, body })
}
