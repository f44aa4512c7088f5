//! A client of an earlier revision that writes raw HTTP.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test file uses its part"
)]

use crate::common::gate::soon;
use antiphon::{
    serve::http::{HttpService, ReplyBody},
    server::{Ctx, Tool},
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower_service::Service as _;

pub const NEWEST: &str = "2025-11-25";

/// One session.
#[derive(Clone)]
pub struct Session {
    pub service: HttpService,
    pub id: String,
    pub version: String,
    pub user: Option<&'static str>,
}

/// A response: a whole body, or a stream of events.
pub struct HttpReply {
    pub status: u16,
    pub headers: http::HeaderMap,
    body: ReplyBody,
}

/// One event, or a comment.
#[derive(Debug, Default, PartialEq)]
pub struct Event {
    pub id: Option<String>,
    pub retry: Option<String>,
    pub data: Option<String>,
}

pub fn message(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub fn call(id: u32, tool: &str, arguments: Value) -> Value {
    let meta = json!({"progressToken": format!("token {id}")});
    message(id, "tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta}))
}

pub fn initialize(version: &str) -> Value {
    let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
    let params = json!({
        "protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "c", "version": "1"}
    });
    message(0, "initialize", params)
}

/// A POST without a session.
pub fn post(body: impl ToString) -> Request<Bytes> {
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    request.body(body.to_string().into()).unwrap()
}

/// A GET or DELETE without a session.
pub fn bare(method: Method) -> Request<Bytes> {
    let request = Request::builder().method(method.clone()).uri("/mcp").header("host", "localhost");
    let accepted = (method == Method::GET).then_some("text/event-stream");
    accepted
        .into_iter()
        .fold(request, |request, kind| request.header("accept", kind))
        .body(Bytes::new())
        .unwrap()
}

/// The same with this header.
pub fn with_header(mut request: Request<Bytes>, name: &'static str, value: &str) -> Request<Bytes> {
    request.headers_mut().append(name, value.parse().unwrap());
    request
}

pub async fn send(service: &HttpService, request: Request<Bytes>) -> HttpReply {
    let response: Response<ReplyBody> = soon(service.clone().call(request.map(Full::new))).await.unwrap();
    let (parts, body) = response.into_parts();
    HttpReply { status: parts.status.as_u16(), headers: parts.headers, body }
}

impl Session {
    pub async fn open(service: &HttpService, version: &str) -> Self {
        Self::open_as(service, version, None).await
    }

    pub async fn open_as(service: &HttpService, version: &str, user: Option<&'static str>) -> Self {
        let session = Self::begin(service, version, user).await;
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(session.post(&told).await.status, 202);
        session
    }

    /// The first half of the handshake alone.
    pub async fn begin(service: &HttpService, version: &str, user: Option<&'static str>) -> Self {
        let mut request = post(initialize(version));
        if let Some(user) = user {
            request = with_header(request, "x-user", user);
        }
        let came = send(service, request).await;
        let id = came.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let reply = came.json().await;
        let version = reply["result"]["protocolVersion"].as_str().unwrap().to_owned();
        Self { service: service.clone(), id, version, user }
    }

    /// The same request, of this session.
    pub fn own(&self, request: Request<Bytes>) -> Request<Bytes> {
        let request = with_header(request, "mcp-session-id", &self.id);
        let request = with_header(request, "mcp-protocol-version", &self.version);
        self.user.into_iter().fold(request, |request, user| with_header(request, "x-user", user))
    }

    pub async fn post(&self, message: &Value) -> HttpReply {
        send(&self.service, self.own(post(message))).await
    }

    pub async fn get(&self, last_event_id: Option<&str>) -> HttpReply {
        let request = self.own(bare(Method::GET));
        let last = last_event_id.into_iter();
        send(&self.service, last.fold(request, |request, id| with_header(request, "last-event-id", id))).await
    }

    pub async fn delete(&self) -> HttpReply {
        send(&self.service, self.own(bare(Method::DELETE))).await
    }

    pub async fn cancel(&self, id: u32) {
        let told =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        assert_eq!(self.post(&told).await.status, 202);
    }
}

impl HttpReply {
    pub fn is_stream(&self) -> bool {
        self.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream")
    }

    pub async fn text(self) -> String {
        let body = soon(self.body.collect()).await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    pub async fn json(self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json");
        serde_json::from_str(&self.text().await).unwrap()
    }

    /// Status and JSON-RPC code: 0 for a result, text or nothing.
    #[track_caller]
    pub fn check(self, what: &str, expected: (u16, i64)) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let (status, is_json) = (
                self.status,
                self.headers.get("content-type").is_some_and(|kind| kind == "application/json"),
            );
            let text = self.text().await;
            let code = if is_json {
                let reply: Value = serde_json::from_str(&text).unwrap();
                reply["error"]["code"].as_i64().unwrap_or_default()
            } else {
                0
            };
            assert_eq!((status, code), expected, "{what}, from {place}: {text}");
        }
    }

    /// The next event; `None` at the end. One frame, one event.
    pub async fn event(&mut self) -> Option<Event> {
        assert!(self.is_stream(), "{:?}", self.headers);
        let frame = soon(self.body.frame()).await?.unwrap().into_data().unwrap();
        let text = std::str::from_utf8(&frame).unwrap();
        let mut event = Event::default();
        for line in text.strip_suffix("\n\n").unwrap_or_else(|| panic!("no event: {text:?}")).lines() {
            let (name, value) = line.split_once(':').unwrap();
            let value = Some(value.strip_prefix(' ').unwrap_or(value).to_owned());
            match name {
                "id" => event.id = value,
                "retry" => event.retry = value,
                "data" => event.data = value,
                "" => {}
                other => panic!("{other}"),
            }
        }
        Some(event)
    }

    /// The next message, however long it takes: for a clock that stands still.
    pub async fn message(&mut self) -> Value {
        loop {
            let frame = self.body.frame().await.expect("a message").unwrap().into_data().unwrap();
            let text = std::str::from_utf8(&frame).unwrap();
            let data = text.lines().find_map(|line| line.strip_prefix("data: "));
            // A comment keeps the connection; an event without data primes the client.
            if let Some(data) = data.filter(|data| !data.is_empty()) {
                return serde_json::from_str(data).unwrap();
            }
        }
    }

    /// The messages of all further events, with their ids; the priming event has an empty message.
    pub async fn rest(mut self) -> Vec<(String, Value)> {
        let mut found = Vec::new();
        while let Some(event) = self.event().await {
            let data = event.data.unwrap();
            let data = if data.is_empty() { Value::Null } else { serde_json::from_str(&data).unwrap() };
            found.push((event.id.unwrap(), data));
        }
        found
    }
}

impl Event {
    pub fn json(&self) -> Value {
        serde_json::from_str(self.data.as_deref().unwrap()).unwrap()
    }

    pub fn progress(&self) -> u64 {
        self.json()["params"]["progress"].as_f64().unwrap() as u64
    }

    /// The text of the tool's result.
    pub fn result(&self) -> String {
        text_of(&self.json())
    }
}

/// The text of a tool's result.
pub fn text_of(reply: &Value) -> String {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {reply}")).to_owned()
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Count {
    count: u32,
}

/// The tool `steps`: for each number from 1 up to its `count` it waits until the test has come so far, then tells its
/// progress. It gives back `done` one step later.
pub fn steps() -> (Tool, watch::Sender<u32>) {
    let (sender, reached) = watch::channel(0);
    (
        Tool::new("steps", lent(move |ctx, Count { count }| Box::pin(step(ctx, count, reached.clone())))),
        sender,
    )
}

fn lent<F: for<'a> Fn(&'a Ctx, Count) -> BoxFuture<'a, String>>(handler: F) -> F {
    handler
}

async fn step(ctx: &Ctx, count: u32, mut reached: watch::Receiver<u32>) -> String {
    for number in 1..=count + 1 {
        if reached.wait_for(|reached| *reached >= number).await.is_err() {
            // The test is over.
            std::future::pending::<()>().await;
        }
        if number <= count {
            ctx.report_progress(f64::from(number), None, None);
        }
    }
    "done".to_owned()
}
