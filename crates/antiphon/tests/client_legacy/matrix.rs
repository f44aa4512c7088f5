//! The compatibility matrix of the specification's versioning page: every mode of the client with every kind of
//! server, over streams and over HTTP.

use crate::scripted_server::{
    Peer, ReceivedRequest, ScriptedHttpServer, ScriptedReply, builder, error, hello, result, soon,
};
use antiphon::{
    client::{
        Client, ClientBuilder, ClientErrorKind, Era, Mode,
        calls::RequestFault,
        transport::{ChildCommand, ChildTransport},
    },
    wire::ProtocolVersion,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// The versions of a server.
#[derive(Clone, Copy, Debug)]
enum Server {
    Modern,
    /// A modern one of a revision that is not known here.
    Newer,
    /// Answers every version of the handshake with this one.
    Legacy(&'static str),
    /// A legacy one that says nothing to what it does not know.
    Silent,
    Dual,
    /// Speaks something of the handshake that is not known here.
    Older,
}

const MODERN: &str = "2026-07-28";

/// Returns the response of a server; `None` is silence.
fn answer(server: Server, request: &Value) -> Option<Value> {
    let id = &request["id"];
    let method = request["method"].as_str().unwrap();
    let version = &request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    let tools = json!([{"name": "echo", "inputSchema": {"type": "object"}}]);
    let modern = |supported: &[&str]| {
        if version.as_str().is_none_or(|version| !supported.contains(&version)) {
            return error(id, -32022, json!({"supported": supported, "requested": version}));
        }
        match method {
            "server/discover" => result(
                id,
                json!({"resultType": "complete", "supportedVersions": supported, "capabilities": {}}),
            ),
            _ => result(id, json!({"resultType": "complete", "tools": tools})),
        }
    };
    let legacy = |answers: &str| match method {
        "initialize" => Some(result(id, hello(answers))),
        "tools/list" if version.is_null() => Some(result(id, json!({"tools": tools}))),
        "logging/setLevel" => Some(result(id, json!({}))),
        _ => Some(error(id, -32601, Value::Null)),
    };
    match server {
        Server::Modern => Some(modern(&[MODERN])),
        Server::Newer => Some(modern(&["2099-01-01"])),
        Server::Legacy(answers) => legacy(answers),
        Server::Silent if !version.is_null() => None,
        Server::Silent => legacy("2025-06-18"),
        Server::Dual if version.is_null() => {
            legacy(request["params"]["protocolVersion"].as_str().unwrap_or(""))
        }
        Server::Dual => Some(modern(&[MODERN])),
        Server::Older => legacy("2023-01-01"),
    }
}

/// Lists the tools, and gives era and version, or the versions of the server, or why it failed.
async fn came(client: &Client) -> Result<(Era, String), String> {
    match client.list_tools().await {
        Ok(tools) => {
            assert_eq!(tools.len(), 1);
            // What was found out is kept.
            client.list_tools().await.unwrap();
            Ok((client.era().unwrap(), client.protocol_version().as_str().to_owned()))
        }
        Err(error) => Err(match error.kind() {
            ClientErrorKind::Request(RequestFault::Version { theirs, .. }) => theirs.join(","),
            ClientErrorKind::Request(RequestFault::Server(error)) => error.code.to_string(),
            ClientErrorKind::Request(RequestFault::Transport(error)) => format!("{:?}", error.kind()),
            ClientErrorKind::Request(RequestFault::Timeout(_)) => "timeout".into(),
            other => panic!("{other:?}"),
        }),
    }
}

async fn over_streams(builder: ClientBuilder, server: Server) -> Result<(Era, String), String> {
    let (client, mut peer) = Peer::of(builder);
    tokio::select! {
        came = came(&client) => came,
        () = async {
            while let Some(request) = peer.receive().await {
                if request.get("id").is_some() && let Some(answer) = answer(server, &request) {
                    peer.send(answer).await;
                }
            }
        } => panic!("the client went away"),
    }
}

/// Replies over HTTP as the servers of each era do.
fn over_http(server: Server, heard: &ReceivedRequest) -> ScriptedReply {
    match heard.verb.as_str() {
        "POST" if heard.body.get("id").is_none() => ScriptedReply::empty(202),
        "POST" => {
            let of_modern = heard.header("mcp-protocol-version") == Some(MODERN);
            match answer(server, &heard.body) {
                None => ScriptedReply::Silence,
                Some(answer) if answer.get("error").is_none() => ScriptedReply::json(200, answer),
                Some(_) if of_modern && matches!(server, Server::Legacy(_) | Server::Older) => {
                    ScriptedReply::typed(400, "text/plain", "Bad Request: Unsupported protocol version")
                }
                Some(answer) => ScriptedReply::json(400, answer),
            }
        }
        _ => ScriptedReply::empty(405),
    }
}

#[tokio::test(start_paused = true)]
async fn every_mode_with_every_server() {
    let pinned = |version: &str| Mode::Pinned(ProtocolVersion::new(version));
    let modern = || Ok((Era::Modern, MODERN));
    let legacy = |version| Ok((Era::Legacy, version));
    let old = Server::Legacy("2025-11-25");
    // Over streams, and over HTTP where that differs.
    let rows = [
        // Modern client.
        (pinned(MODERN), Server::Modern, modern(), None),
        (pinned(MODERN), Server::Dual, modern(), None),
        (pinned(MODERN), old, Err("-32601"), Some(Err("HttpStatus(400)"))),
        (pinned(MODERN), Server::Silent, Err("timeout"), None),
        (pinned(MODERN), Server::Newer, Err("2099-01-01"), None),
        // Dual-era client.
        (Mode::Auto, Server::Modern, modern(), None),
        (Mode::Auto, Server::Dual, modern(), None),
        (Mode::Auto, old, legacy("2025-11-25"), None),
        (Mode::Auto, Server::Legacy("2025-06-18"), legacy("2025-06-18"), None),
        (Mode::Auto, Server::Legacy("2025-03-26"), legacy("2025-03-26"), None),
        (Mode::Auto, Server::Legacy("2024-11-05"), legacy("2024-11-05"), None),
        (Mode::Auto, Server::Silent, legacy("2025-06-18"), Some(Err("timeout"))),
        (Mode::Auto, Server::Older, Err("2023-01-01"), None),
        (Mode::Auto, Server::Newer, Err("2099-01-01"), None),
        // Legacy client.
        (Mode::Legacy, Server::Modern, Err("2026-07-28"), None),
        (Mode::Legacy, Server::Dual, legacy("2025-11-25"), None),
        (Mode::Legacy, old, legacy("2025-11-25"), None),
        (Mode::Legacy, Server::Silent, legacy("2025-06-18"), None),
        (Mode::Legacy, Server::Older, Err("2023-01-01"), None),
        (pinned("2025-06-18"), Server::Dual, legacy("2025-06-18"), None),
        (pinned("2025-06-18"), Server::Legacy("2025-06-18"), legacy("2025-06-18"), None),
        (pinned("2025-06-18"), old, Err("2025-11-25"), None),
        (pinned("2025-06-18"), Server::Modern, Err("2026-07-28"), None),
    ];
    for (mode, server, streams, _) in rows.clone() {
        let found = over_streams(builder().mode(mode.clone()), server).await;
        let expected = streams.map(|(era, version)| (era, version.to_owned())).map_err(str::to_owned);
        assert_eq!(found, expected, "{mode:?} with {server:?} over streams");
    }
    tokio::time::resume();
    for (mode, server, streams, http) in rows {
        let played = ScriptedHttpServer::new(move |heard| over_http(server, heard)).await;
        let patient = builder().mode(mode.clone()).leg_timeout(Duration::from_millis(300));
        let found = came(&played.client(patient)).await;
        let expected = http.unwrap_or(streams).map(|(era, version)| (era, version.to_owned()));
        assert_eq!(found, expected.map_err(str::to_owned), "{mode:?} with {server:?} over HTTP");
    }
}

/// The probe is not answered in time, and the server is a modern one all the same: whoever answers first decides,
/// unless it only says that there are no sessions here.
#[tokio::test(start_paused = true)]
async fn a_modern_server_that_is_slow_to_start() {
    for refuses_first in [false, true] {
        let (client, mut peer) = Peer::of(builder().probe_timeout(Duration::from_secs(1)));
        let listed = tokio::spawn({
            let client = client.clone();
            async move { came(&client).await }
        });
        let probe = peer.receive_of("server/discover").await;
        let initialize = peer.receive_of("initialize").await;
        if refuses_first {
            peer.send(answer(Server::Modern, &initialize).unwrap()).await;
        }
        peer.send(answer(Server::Modern, &probe).unwrap()).await;
        for _ in 0..2 {
            let list = peer.receive_of("tools/list").await;
            peer.send(answer(Server::Modern, &list).unwrap()).await;
        }
        assert_eq!(listed.await.unwrap(), Ok((Era::Modern, MODERN.into())));
    }
}

/// A transport that knows no sessions is modern, whatever the client would like.
#[tokio::test]
async fn a_transport_without_sessions() {
    struct Plain;
    impl antiphon::client::transport::Transport for Plain {
        fn exchange<'a>(
            &'a self,
            _: antiphon::client::transport::OutgoingRequest,
            _: &'a mut (dyn FnMut(antiphon::client::transport::IncomingNotification) + Send),
        ) -> futures_util::future::BoxFuture<
            'a,
            Result<antiphon::client::transport::ServerReply, antiphon::client::transport::TransportError>,
        > {
            let tools =
                serde_json::value::to_raw_value(&json!({"tools": [{"name": "x", "inputSchema": {}}]}));
            Box::pin(async move { Ok(Ok(tools.unwrap())) })
        }
        fn close(&self) -> futures_util::future::BoxFuture<'_, ()> {
            Box::pin(async {})
        }
        fn target(&self) -> &str {
            "plain"
        }
    }
    for (mode, expected) in
        [(Mode::Auto, Ok((Era::Modern, MODERN.to_owned()))), (Mode::Legacy, Err("Unreachable".to_owned()))]
    {
        assert_eq!(came(&builder().mode(mode).connect(Plain)).await, expected);
    }
}

/// Old servers in Python do not survive what comes before `initialize`, and end only with the message after it: the
/// next process hears nothing but that.
#[tokio::test]
async fn a_server_that_does_not_survive_the_probe() {
    let script = r#"
        read first
        case "$first" in *server/discover*) read second; exit 1;; esac
        id() { sed 's/.*"id":\([0-9]*\).*/\1/'; }
        answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$(printf %s "$1" | id)" "$2"; }
        answer "$first" '{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}'
        read initialized
        while read list; do answer "$list" '{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}'; done
    "#;
    let command = ChildCommand::new("sh").arg("-c").arg(script);
    let child = Arc::new(ChildTransport::spawn(command).unwrap());
    let client = builder().probe_timeout(Duration::from_millis(50)).connect(child);
    assert_eq!(soon(came(&client)).await, Ok((Era::Legacy, "2024-11-05".to_owned())));
    client.close().await;
}
