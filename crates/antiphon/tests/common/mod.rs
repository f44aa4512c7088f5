//! A server with every kind of asking handler, and a function that sends one message over each transport.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test file uses its part; a failed unwrap fails the test"
)]

pub mod folder;
pub mod gate;
pub mod late_store;
pub mod leak_check;
pub mod lines;
pub mod log;
pub mod mortal;
pub mod one_tool;
pub mod post;
pub mod session;
pub mod socket;
pub mod tool_call;

use antiphon::{
    Clock, ManualClock,
    seal::{KeyRing, Principal, SecretKey},
    serve::{
        http::{HttpOptions, HttpService},
        stdio::serve_streams,
    },
    server::{
        Answer, Ask, Caller, Ctx, NoArguments, Prompt, Reply, Resource, ResourceTemplate, Server,
        ServerBuilder, Tool, asks::InputRequired,
    },
    wire::{
        content::ResourceContents,
        forms::{FormField, FormSchema},
    },
};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tower_service::Service as _;

/// The number of runs of a handler.
pub type Runs = Arc<AtomicUsize>;

pub fn runs(counter: &Runs) -> usize {
    counter.load(Ordering::SeqCst)
}

/// The time at which every test begins.
pub fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

pub fn ring(byte: u8) -> KeyRing {
    KeyRing::new(vec![SecretKey::from_bytes([byte; 32])]).unwrap()
}

/// The form that every handler of the fixture asks.
pub fn region() -> Ask {
    let schema = FormSchema::new(vec![FormField::text("region").title("Region")]);
    Ask::form("region", "Which region?", schema)
}

#[derive(serde::Deserialize)]
pub struct Region {
    pub region: String,
}

fn answer_text(answer: Answer<Region>) -> String {
    match answer {
        Answer::Accept(Region { region }) => format!("in {region}"),
        Answer::Decline => "declined".to_owned(),
        Answer::Cancel => "cancelled".to_owned(),
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub struct Named {
    /// Name of the database to make.
    #[schemars(length(min = 1))]
    #[allow(dead_code)]
    pub name: String,
}

/// The server under test, its clock, and the runs of its handlers.
pub struct Fixture {
    pub server: Server,
    pub clock: ManualClock,
    pub runs: Runs,
}

/// `ask` as tool, prompt, resource `ask://one` and template `ask://many/{id}`, a second tool `other`, and `echo`.
pub fn fixture(change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Fixture {
    let (clock, hand) = Clock::manual(start());
    let runs = Runs::default();
    let count = |runs: &Runs| {
        let runs = runs.clone();
        move || {
            runs.fetch_add(1, Ordering::SeqCst);
        }
    };
    macro_rules! asking {
        ($args:ty, $made:expr) => {{
            let count = count(&runs);
            move |ctx: &Ctx, _: $args| {
                count();
                let answer = ctx.by_hand().form::<Region>(&region());
                async move {
                    Ok::<_, antiphon::Error>(match answer? {
                        None => Reply::from(region()),
                        Some(answer) => Reply::Complete($made(answer_text(answer))),
                    })
                }
            }
        }};
    }
    let resource = {
        let count = count(&runs);
        move |ctx: &Ctx| {
            count();
            let answer = ctx.by_hand().form::<Region>(&region());
            async move {
                Ok::<_, antiphon::Error>(match answer? {
                    None => Reply::from(region()),
                    Some(answer) => Reply::Complete(ResourceContents::text("ask://one", answer_text(answer))),
                })
            }
        }
    };
    let contents = |text: String| ResourceContents::text("ask://many/1", text);
    let builder = Server::builder("fixture", "1.0")
        .clock(clock)
        .keys(ring(7))
        .tool(Tool::new("ask", asking!(Named, |text: String| text)))
        .tool(Tool::new("other", asking!(Named, |text: String| text)))
        .tool(Tool::new("echo", {
            let count = count(&runs);
            move |_: &Ctx, named: Named| {
                count();
                async move { named.name }
            }
        }))
        .tool(Tool::new("shed", async |ctx: &Ctx, _: NoArguments| match ctx.by_hand().state() {
            None => Reply::from(InputRequired::state_only("half")),
            Some(state) => Reply::Complete(format!("{state} and whole")),
        }))
        .prompt(Prompt::new("ask", asking!(Named, |text: String| text)))
        .resource(Resource::new("ask://one", "one", resource))
        .template(ResourceTemplate::new(
            "ask://many/{id}",
            "many",
            asking!(serde_json::Map<String, Value>, contents),
        ));
    Fixture { server: change(builder).build().unwrap(), clock: hand, runs }
}

/// Returns the principal in the header `x-user`, as `subject@client`; `None` without the header, an error for `?`.
pub fn by_header(caller: &Caller<'_>) -> Result<Option<Principal>, String> {
    let Some(user) = caller.headers.and_then(|headers| headers.get("x-user")) else { return Ok(None) };
    match user.to_str().unwrap().split_once('@') {
        Some((subject, client)) => {
            Ok(Some(Principal::user(subject).with_client_id(client).with_issuer("https://issuer.example")))
        }
        None if user == "?" => Err("the directory is down".to_owned()),
        None => Ok(Some(Principal::client(user.to_str().unwrap()))),
    }
}

/// The three methods that may ask, with the params of a first leg.
pub fn askable() -> [(&'static str, Value); 4] {
    [
        ("tools/call", json!({"name": "ask", "arguments": {"name": "orders"}})),
        ("prompts/get", json!({"name": "ask", "arguments": {"name": "orders"}})),
        ("resources/read", json!({"uri": "ask://one"})),
        ("resources/read", json!({"uri": "ask://many/1"})),
    ]
}

pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
    })
}

/// A request with complete metadata, unless `params` brings its own.
pub fn request(id: u32, method: &str, params: Value) -> Value {
    let mut params = params;
    if params.get("_meta").is_none() {
        params["_meta"] = meta();
    }
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// `params` with more members.
pub fn with(params: &Value, more: Value) -> Value {
    let mut params = params.clone();
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

/// One accepted answer to [`region`].
pub fn answers() -> Value {
    json!({"region": {"action": "accept", "content": {"region": "eu"}}})
}

/// The transport of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Over {
    Http,
    Stdio,
}

/// Sends one message, as `user` over HTTP, and gives the status (200 on stdio) and the reply.
pub async fn send(over: Over, server: &Server, message: &Value, user: Option<&str>) -> (u16, Value) {
    match over {
        Over::Stdio => (200, over_stdio(server, &message.to_string()).await),
        Over::Http => over_http(server, message, user).await,
    }
}

/// The HTTP request that a correct client sends for this message.
pub fn http_request(message: &Value, user: Option<&str>) -> http::Request<Full<bytes::Bytes>> {
    let method = message["method"].as_str().unwrap();
    let mut request = http::Request::post("http://127.0.0.1/mcp")
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    let name = message["params"].get(if method == "resources/read" { "uri" } else { "name" });
    if let Some(name) = name.and_then(Value::as_str) {
        request = request.header("mcp-name", &*antiphon_wire::header::encode(name));
    }
    if let Some(user) = user {
        request = request.header("x-user", user);
    }
    request.body(Full::from(message.to_string())).unwrap()
}

async fn over_http(server: &Server, message: &Value, user: Option<&str>) -> (u16, Value) {
    let mut service = HttpService::new(server.clone(), HttpOptions::default());
    let response = service.call(http_request(message, user)).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&body))))
}

async fn over_stdio(server: &Server, line: &str) -> Value {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(serve_streams(input, output, server.clone()));
    let (read, mut write) = tokio::io::split(ours);
    write.write_all(line.as_bytes()).await.unwrap();
    write.write_all(b"\n").await.unwrap();
    let reply = BufReader::new(read).lines().next_line().await.unwrap().unwrap();
    drop(write);
    serving.abort();
    serde_json::from_str(&reply).unwrap()
}

/// The state of an `input_required` reply.
pub fn state_of(reply: &Value) -> String {
    reply["result"]["requestState"].as_str().unwrap_or_else(|| panic!("no state in {reply}")).to_owned()
}
