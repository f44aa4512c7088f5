//! Any requests in a session over HTTP: messages, batches, answers, and event ids for resumption. Each request is
//! answered once, each event has a unique id, a stream resumes only with such an id and only if the stream was opened,
//! and a session that has ended stays ended.

#![no_main]

use antiphon::{
    serve::http::{HttpOptions, HttpService, ReplyBody},
    server::{Answer, Ask, Ctx, NoArguments, Reply, Tool},
    wire::{
        forms::{FormField, FormSchema},
        messages::Incoming,
    },
};
use antiphon_fuzz::{block_on, count_requests, messages, server};
use antiphon_wire::sse::SseDecoder;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};
use tower_service::Service as _;

/// Longer than the wait of an answer for its stream, and shorter than the interval between messages on a silent stream.
const SILENCE: Duration = Duration::from_secs(5);

fuzz_target!(|input: (u8, &[u8])| {
    let (version, requests) = input;
    let version = ["2025-03-26", "2025-06-18", "2025-11-25"][usize::from(version % 3)];
    block_on(async {
        let mut session = Session::open(version).await;
        // A byte that is not valid in UTF-8 separates the requests.
        for request in requests.split(|byte| *byte == 0xFF).take(16) {
            session.send(request).await;
        }
    });
});

fn service() -> HttpService {
    let echo = Tool::new("echo", async |ctx: &Ctx, arguments: Map<String, Value>| {
        ctx.report_progress(1.0, None, None);
        Value::from(arguments).to_string()
    });
    let ask = Tool::new("ask", async |ctx: &Ctx, _: NoArguments| {
        let mut region = FormField::text("region");
        region.required = true;
        let form = Ask::form("region", "Which region?", FormSchema::new(vec![region]));
        Ok::<_, antiphon::Error>(match ctx.by_hand().form::<Map<String, Value>>(&form)? {
            None => Reply::from(form),
            Some(Answer::Accept(form)) => {
                assert!(form["region"].is_string(), "{form:?}");
                Reply::Complete("answered".to_owned())
            }
            Some(_) => Reply::Complete("not answered".to_owned()),
        })
    });
    let server = server().list_changed(true).tool(echo).tool(ask).build().expect("two tools");
    HttpService::new(server, HttpOptions::default())
}

struct Session {
    service: HttpService,
    id: HeaderValue,
    version: &'static str,
    is_over: bool,
    /// The number of POSTs. Each may have opened a stream.
    posts: usize,
    /// The number of answers that each id may still receive.
    asked: HashMap<String, usize>,
    /// The events so far, by id.
    events: HashMap<String, Vec<u8>>,
    /// The id of the server's last request, as JSON.
    question: String,
    /// The open streams without new events.
    silent: Vec<ReplyBody>,
}

impl Session {
    async fn open(version: &'static str) -> Self {
        let params = json!({
            "protocolVersion": version, "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "fuzzer", "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params});
        let service = service();
        let response = call(&service, Method::POST, HeaderMap::new(), message.to_string().into_bytes()).await;
        let id = response.headers()["mcp-session-id"].clone();
        let mut session = Self {
            service,
            id,
            version,
            is_over: false,
            posts: 0,
            asked: HashMap::new(),
            events: HashMap::new(),
            question: "0".to_owned(),
            silent: Vec::new(),
        };
        session.send(br#"P{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        session
    }

    /// Sends one request: `P` and a body, `G` and an event id, or `D`. `N` reads new events of the silent streams. In a
    /// body, `@` is replaced by the id of the last question.
    async fn send(&mut self, request: &[u8]) {
        let Some((kind, rest)) = request.split_first() else { return };
        let mut headers = HeaderMap::new();
        headers.insert("mcp-session-id", self.id.clone());
        headers.insert("mcp-protocol-version", HeaderValue::from_static(self.version));
        match kind {
            b'P' => {
                self.posts += 1;
                let question = self.question.as_bytes().to_vec();
                let body: Vec<u8> = rest
                    .iter()
                    .flat_map(|byte| if *byte == b'@' { question.clone() } else { vec![*byte] })
                    .collect();
                count_requests(&body, &mut self.asked);
                let response = call(&self.service, Method::POST, headers, body).await;
                let status = response.status().as_u16();
                assert!(
                    if self.is_over { status == 404 } else { [200, 202, 400].contains(&status) },
                    "{status}"
                );
                self.read(response).await;
            }
            b'G' => {
                let Ok(id) = HeaderValue::from_bytes(rest) else { return };
                let stream = id.to_str().ok().and_then(|id| id.split_once('-')?.0.parse().ok());
                let is_known = rest.is_empty() || stream.is_some_and(|stream: usize| stream <= self.posts);
                if !rest.is_empty() {
                    headers.insert("last-event-id", id);
                }
                let response = call(&self.service, Method::GET, headers, Vec::new()).await;
                let status = response.status().as_u16();
                match status {
                    404 => assert!(self.is_over),
                    200 | 204 => assert!(is_known && !self.is_over, "{status} for {rest:?}"),
                    409 | 410 => assert!(!self.is_over),
                    _ => assert!(status == 400 && !self.is_over, "{status}"),
                }
                self.read(response).await;
            }
            b'D' => {
                let response = call(&self.service, Method::DELETE, headers, Vec::new()).await;
                assert_eq!(response.status().as_u16(), if self.is_over { 404 } else { 204 });
                self.is_over = true;
            }
            _ => {
                for body in std::mem::take(&mut self.silent) {
                    self.read_stream(body).await;
                }
            }
        }
    }

    async fn read(&mut self, response: Response<ReplyBody>) {
        let (head, body) = response.into_parts();
        match head.headers.get("content-type").map(HeaderValue::as_bytes) {
            Some(b"application/json") => {
                let body = body.collect().await.expect("a body of ours").to_bytes();
                for message in messages(&body) {
                    self.check_message(message);
                }
            }
            Some(b"text/event-stream") => self.read_stream(body).await,
            _ => drop(body.collect().await.expect("a body of ours")),
        }
    }

    /// Reads a stream as long as events come.
    async fn read_stream(&mut self, mut body: ReplyBody) {
        loop {
            let Ok(frame) = tokio::time::timeout(SILENCE, body.frame()).await else {
                self.silent.push(body);
                return;
            };
            let Some(frame) = frame else { return };
            let data = frame.expect("a body of ours").into_data().expect("there are no trailers");
            let mut decoder = SseDecoder::new(1 << 20);
            decoder.push(&data);
            let id = decoder.last_id().map(str::to_owned);
            let events: Vec<_> = std::iter::from_fn(|| decoder.next_event()).collect();
            assert!(events.len() <= 1, "a frame is an event, or a comment");
            for event in events {
                let data = event.expect("an event within the limit").data;
                let id = id.clone().expect("an event has an id");
                // The event at the beginning of a stream, or before a resumption.
                if data.is_empty() {
                    self.events.entry(id).or_default();
                    continue;
                }
                match self.events.insert(id, data.clone()) {
                    Some(before) if !before.is_empty() => assert_eq!(before, data, "an id names one event"),
                    // The answers of a batch come in one event.
                    _ => messages(&data).into_iter().for_each(|message| self.check_message(message)),
                }
            }
        }
    }

    fn check_message(&mut self, message: &[u8]) {
        match Incoming::parse(message).expect("only messages go out") {
            Incoming::Response(response) => {
                let id = response.id.as_ref().map_or("null".to_owned(), ToString::to_string);
                let left = self.asked.get_mut(&id).unwrap_or_else(|| panic!("there is no request {id}"));
                *left = left.checked_sub(1).unwrap_or_else(|| panic!("{id} is answered twice"));
            }
            Incoming::Request(request) => {
                assert_eq!(request.method, "elicitation/create");
                self.question = serde_json::to_string(&request.id).expect("an id is JSON");
            }
            Incoming::Notification(notification) => {
                assert!(notification.method.starts_with("notifications/"))
            }
        }
    }
}

async fn call(
    service: &HttpService,
    method: Method,
    headers: HeaderMap,
    body: Vec<u8>,
) -> Response<ReplyBody> {
    let accept =
        if method == Method::GET { "text/event-stream" } else { "application/json, text/event-stream" };
    let mut request = Request::new(Full::new(VecDeque::from(body)));
    *request.method_mut() = method;
    *request.uri_mut() = "/mcp".parse().expect("a path");
    *request.headers_mut() = headers;
    for (name, value) in [("host", "localhost"), ("content-type", "application/json"), ("accept", accept)] {
        request.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    service.clone().call(request).await.expect("no response fails")
}
