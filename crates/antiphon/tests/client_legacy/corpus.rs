//! Recorded responses of real servers: each file of `tests/corpus` is played, and the client must read it correctly.

use crate::scripted_server::{
    Peer, ReceivedRequest, ScriptedHttpServer, ScriptedReply, builder, hello, result,
};
use antiphon::{
    client::{
        Client, ClientErrorKind, Era, Mode,
        calls::RequestFault,
        transport::{
            IncomingNotification, OutgoingRequest, ServerReply, SessionLink, SessionTransport,
            StreamTransport, Transport, TransportError, TransportErrorKind, memory,
        },
    },
    wire::ProtocolVersion,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

type Entries = Vec<Value>;

/// The entries of a file, by transport.
fn read(file: &str) -> BTreeMap<String, Entries> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(file);
    let all: Entries = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut by_transport = BTreeMap::<String, Entries>::new();
    for entry in all {
        by_transport.entry(entry["transport"].as_str().unwrap().to_owned()).or_default().push(entry);
    }
    by_transport
}

/// The answer to a probe, as the answer to the request of this id.
fn text_of(entry: &Value, text: &Value, id: &Value) -> String {
    let request = entry["request"].get("body").or(entry["request"].get("line"));
    let sent: Value = serde_json::from_str(request.and_then(Value::as_str).unwrap_or("{}")).unwrap();
    let mut text = text.as_str().unwrap_or_default().to_owned();
    for (before, after) in [(":", ","), (":", "}"), (": ", ","), (": ", "}")] {
        let member = |id: &Value| format!("\"id\"{before}{id}{after}");
        text = text.replace(&member(&sent["id"]), &member(id));
    }
    text
}

fn probe(message: &Value, of_session: bool) -> String {
    let method = message["method"].as_str().unwrap_or_default();
    let is_modern = message["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some();
    match method {
        "server/discover" => method.to_owned(),
        "initialize" => format!("initialize {}", message["params"]["protocolVersion"].as_str().unwrap()),
        _ if is_modern => format!("{method}, modern"),
        _ if of_session => format!("a session: {method}"),
        _ => format!("{method}, legacy, without a session"),
    }
}

fn find<'a>(entries: &'a [Value], probe: &str) -> Option<&'a Value> {
    entries.iter().find(|entry| entry["probe"] == probe)
}

fn over_http(entries: &[Value], heard: &ReceivedRequest) -> ScriptedReply {
    let of_session = heard.header("mcp-session-id").is_some();
    let probe = match heard.verb.as_str() {
        "POST" => probe(&heard.body, of_session || heard.method().starts_with("notifications/")),
        verb if of_session => format!("a session: {verb}"),
        verb => format!("{verb}, without a session"),
    };
    let entry = find(entries, &probe).unwrap_or_else(|| panic!("nothing was recorded for `{probe}`"));
    scripted_reply(entry, &heard.body["id"])
}

fn scripted_reply(entry: &Value, id: &Value) -> ScriptedReply {
    let answer = &entry["answer"];
    if answer["silence"] == true {
        return ScriptedReply::Silence;
    }
    if answer["closed"] == true {
        return ScriptedReply::Close;
    }
    let headers: Vec<(String, String)> = answer["headers"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
        .collect();
    let text = text_of(entry, &answer["body"], id);
    if answer["open"] == true {
        let (sender, ScriptedReply::Stream(_, text, receiver)) = ScriptedReply::open(text) else {
            unreachable!()
        };
        // It stays open for as long as the test lasts.
        std::mem::forget(sender);
        return ScriptedReply::Stream(headers, text, receiver);
    }
    ScriptedReply::Whole(u16::try_from(answer["status"].as_u64().unwrap()).unwrap(), headers, text)
}

/// One process after another, each a pair of streams: as with a child that is started again.
struct Reborn {
    entries: Arc<Entries>,
    current: Mutex<Arc<StreamTransport>>,
}

impl Reborn {
    fn new(entries: Entries) -> Self {
        let entries = Arc::new(entries);
        let current = Mutex::new(Arc::new(start(&entries)));
        Self { entries, current }
    }
}

/// Starts what the entries say.
fn start(entries: &Arc<Entries>) -> StreamTransport {
    let (transport, reader, writer) = memory::duplex();
    let (mut peer, entries) = (Peer::new(reader, writer), Arc::clone(entries));
    tokio::spawn(async move {
        while let Some(message) = peer.receive().await {
            let name = probe(&message, true);
            match find(&entries, &name) {
                Some(entry) if entry["answer"]["closed"] == true => return,
                Some(entry) if entry["answer"]["silence"] == true => {}
                Some(entry) => {
                    peer.send_line(&text_of(entry, &entry["answer"]["line"], &message["id"])).await
                }
                // What comes after the handshake was not recorded over stdio.
                None if message["method"] == "tools/list" => {
                    peer.send(result(&message["id"], tools())).await;
                }
                None if message.get("id").is_none() => {}
                None => panic!("nothing was recorded for `{name}`"),
            }
        }
    });
    transport
}

fn tools() -> Value {
    json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
}

impl Transport for Reborn {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        let current = Arc::clone(&self.current.lock().unwrap());
        Box::pin(async move {
            let reply = current.exchange(request, on_notification).await;
            reply.map_err(|error| TransportError::new(error.kind(), error.to_string()))
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn target(&self) -> &str {
        "reborn"
    }

    fn sessions(&self) -> Option<&dyn SessionTransport> {
        Some(self)
    }
}

impl SessionTransport for Reborn {
    fn probes_first(&self) -> bool {
        true
    }

    fn open(&self) -> Result<Arc<dyn SessionLink>, TransportError> {
        let mut current = self.current.lock().unwrap();
        if let Ok(link) = current.sessions().unwrap().open() {
            return Ok(link);
        }
        *current = Arc::new(start(&self.entries));
        current.sessions().unwrap().open()
    }
}

async fn listed(client: &Client) -> Result<(Era, String), String> {
    let listed = client.list_tools().await;
    match listed {
        Ok(tools) => {
            assert_eq!(tools[0].name, "echo");
            Ok((client.era().unwrap(), client.protocol_version().as_str().to_owned()))
        }
        Err(error) => match error.kind() {
            ClientErrorKind::Request(RequestFault::Version { theirs, .. }) => Err(theirs.join(",")),
            other => panic!("{other:?}"),
        },
    }
}

async fn check(
    file: &str,
    transport: &str,
    entries: &Entries,
    mode: Mode,
    expected: Result<(Era, &str), &str>,
) {
    let name = format!("{file}, {transport}, {mode:?}");
    let builder = builder().mode(mode);
    let came = if transport.starts_with("stdio") {
        listed(&builder.connect(Reborn::new(entries.clone()))).await
    } else {
        let entries = entries.clone();
        let played = ScriptedHttpServer::new(move |heard| over_http(&entries, heard)).await;
        let client = played.client(builder);
        let came = listed(&client).await;
        client.close().await;
        for heard in played.requests() {
            // A session id counts only on the answer to `initialize`.
            let before = matches!(heard.method(), "initialize" | "server/discover");
            assert!(!before || heard.header("mcp-session-id").is_none(), "{name}: {heard:?}");
        }
        came
    };
    let expected = expected.map(|(era, version)| (era, version.to_owned())).map_err(str::to_owned);
    assert_eq!(came, expected, "{name}");
}

#[tokio::test]
async fn what_recorded_servers_are() {
    let modern = Ok((Era::Modern, "2026-07-28"));
    let legacy = |version| Ok((Era::Legacy, version));
    let mut played = 0;
    for (file, is_modern) in [
        ("python-1.json", false),
        ("python-2.json", true),
        ("typescript-1.json", false),
        ("typescript-2.json", true),
        ("rmcp-2.json", false),
        ("rmcp-3.json", true),
    ] {
        for (transport, entries) in read(file) {
            // HTTP+SSE answers on another stream: see the tests of that transport.
            if transport == "sse" {
                continue;
            }
            let newest = legacy("2025-11-25");
            check(file, &transport, &entries, Mode::Auto, if is_modern { modern } else { newest }).await;
            let only_modern = transport.ends_with("modern only");
            let refused = Err("2026-07-28");
            check(file, &transport, &entries, Mode::Legacy, if only_modern { refused } else { newest }).await;
            for version in ["2025-06-18", "2025-03-26"] {
                let mode = Mode::Pinned(ProtocolVersion::new(version));
                let expected = if only_modern { refused } else { legacy(version) };
                check(file, &transport, &entries, mode, expected).await;
            }
            played += 1;
        }
    }
    assert_eq!(played, 22, "a recording is missing, or a new one is not looked at");
}

/// Returns the era that the client detects from one response to `server/discover`. The server accepts a handshake.
async fn replay_entry(entry: &Value) -> (Option<Era>, Result<(), String>) {
    let entries = vec![entry.clone()];
    let is_http = entry["transport"] == "http";
    let builder = builder()
        .probe_timeout(Duration::from_millis(if is_http { 300 } else { 1000 }))
        .leg_timeout(Duration::from_millis(if is_http { 300 } else { 60_000 }));
    let legacy = |message: &Value| match message["method"].as_str() {
        Some("initialize") => Some(result(&message["id"], hello("2025-11-25"))),
        Some("logging/setLevel") => Some(result(&message["id"], json!({}))),
        _ => None,
    };
    let (client, _server) = if is_http {
        let played_entries = entries.clone();
        let server = ScriptedHttpServer::new(move |heard| match (heard.verb.as_str(), legacy(&heard.body)) {
            ("POST", Some(answer)) => ScriptedReply::json(200, answer),
            ("POST", None) if heard.method() == "server/discover" => {
                scripted_reply(&played_entries[0], &heard.body["id"])
            }
            ("POST", None) => ScriptedReply::empty(202),
            _ => ScriptedReply::empty(405),
        })
        .await;
        (server.client(builder), Some(server))
    } else {
        let mut with_handshake = entries;
        let mut initialize = entry.clone();
        initialize["probe"] = "initialize 2025-11-25".into();
        initialize["request"]["line"] = r#"{"id":1}"#.into();
        initialize["answer"] = json!({"line": result(&json!(1), hello("2025-11-25")).to_string()});
        with_handshake[0]["probe"] = "server/discover".into();
        with_handshake.push(initialize);
        (builder.connect(Reborn::new(with_handshake)), None)
    };
    let discovered = client.discover().await.map(|_| ()).map_err(|error| match error.kind() {
        ClientErrorKind::Request(RequestFault::Version { .. }) => "version".to_owned(),
        ClientErrorKind::Request(RequestFault::Transport(error)) => match error.kind() {
            TransportErrorKind::HttpStatus(status) => status.to_string(),
            kind => format!("{kind:?}"),
        },
        ClientErrorKind::Request(fault) => fault.to_string(),
        other => panic!("{other:?}"),
    });
    (client.era(), discovered)
}

async fn check_all(transport: &str, expected_rows: usize) {
    let entries = read("handmade.json").remove(transport).unwrap();
    assert_eq!(entries.len(), expected_rows, "not every recording is looked at");
    for entry in entries {
        let (era, came) = replay_entry(&entry).await;
        let name = format!("{}: {era:?} {came:?}", entry["probe"]);
        match entry["means"].as_str().unwrap() {
            "modern" => assert_eq!(era, Some(Era::Modern), "{name}"),
            "legacy" => assert_eq!((era, came), (Some(Era::Legacy), Ok(())), "{name}"),
            "fault" => assert!(era.is_none() && came.is_err(), "{name}"),
            "no revision" => assert_eq!((era, came), (None, Err("version".into())), "{name}"),
            // It names the version that it has just refused, and refuses it again.
            "another revision" => {
                assert_eq!((era, came), (Some(Era::Modern), Err("version".into())), "{name}");
            }
            other => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn what_other_answers_over_http_say_of_the_era() {
    check_all("http", 51).await;
}

#[tokio::test(start_paused = true)]
async fn what_other_answers_over_stdio_say_of_the_era() {
    check_all("stdio", 19).await;
}
