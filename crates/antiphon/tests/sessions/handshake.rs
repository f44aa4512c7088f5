//! A session on stdio: its handshake, and what needs nobody to be asked.

use crate::common::{
    gate::gate,
    lines::{holding, serve},
    session::{InSession, everything, initialize, plain},
    *,
};
use antiphon::{
    server::{Ctx, Json, Limits, NoArguments, Prompt, Server, Tool},
    wire::{
        CallToolResult, ContentBlock, LogLevel,
        content::{PromptMessage, ResourceLink},
    },
};
use serde_json::{Value, json};

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Size {
    width: u32,
}

/// A server of everything that a session may want.
fn server() -> Server {
    let change = |builder: antiphon::server::ServerBuilder| {
        builder
            .instructions("Ask first.")
            .list_changed(true)
            .resource_updates(true)
            .logging(true)
            .tool(
                Tool::new("size", async |_: &Ctx, _: NoArguments| Json(Size { width: 3 }))
                    .output_schema(&json!({"type": "object", "properties": {"width": {"type": "integer"}}})),
            )
            .tool(Tool::new("names", async |_: &Ctx, _: NoArguments| Json(vec!["a", "b"])))
            .tool(Tool::new("logs", async |ctx: &Ctx, _: NoArguments| {
                ctx.log(LogLevel::Debug, "a detail");
                ctx.log(LogLevel::Warning, "a warning");
                ctx.report_progress(1.0, Some(2.0), None);
                "logged"
            }))
    };
    fixture(change).server
}

/// > If the server supports the requested protocol version, it **MUST** respond with the same version. Otherwise, the
/// > server **MUST** respond with another protocol version it supports.
#[tokio::test]
async fn the_version_is_agreed_on() {
    for (wanted, agreed) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2023-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("next year", "2025-11-25"),
    ] {
        let session = InSession::open(&server(), wanted, json!({})).await;
        let result = &session.opened["result"];
        assert_eq!(result["protocolVersion"], agreed, "{wanted}");
        assert_eq!(
            (&result["serverInfo"]["name"], &result["instructions"]),
            (&json!("fixture"), &json!("Ask first."))
        );
        let changes = json!({"listChanged": true});
        assert_eq!(
            result["capabilities"],
            json!({"tools": changes, "prompts": changes, "logging": {},
                "resources": {"listChanged": true, "subscribe": true}})
        );
        assert_eq!(result.as_object().unwrap().len(), 4, "nothing of today: {result}");
    }
}

#[tokio::test]
async fn a_handshake_that_is_none() {
    let good = initialize("2025-11-25", json!({}));
    for (what, params, code) in [
        ("no params", Value::Null, -32602),
        ("a list", json!([]), -32600),
        ("no version", json!({"capabilities": {}}), -32602),
        ("capabilities that are none", with(&good, json!({"capabilities": 7})), -32602),
        ("a version that is none", with(&good, json!({"protocolVersion": 7})), -32602),
    ] {
        let mut peer = serve(server(), 1 << 16);
        let mut message = plain(1, "initialize", params.clone());
        if params.is_null() {
            message.as_object_mut().unwrap().remove("params");
        }
        peer.send(message.to_string()).await;
        assert_eq!(peer.receive_outcome().await, (json!(1), code), "{what}");
        // It may try again.
        peer.send(plain(2, "initialize", good.clone()).to_string()).await;
        assert_eq!(peer.receive_outcome().await, (json!(2), 0), "{what}");
        peer.send(plain(3, "initialize", good.clone()).to_string()).await;
        assert_eq!(peer.receive_outcome().await, (json!(3), 0), "{what}: another session");
    }
}

#[tokio::test]
async fn a_member_that_must_be_an_object_is_named() {
    let good = initialize("2025-11-25", json!({}));
    let capabilities = |value: Value| with(&good, json!({ "capabilities": value }));
    for (params, expected) in [
        (json!([]), "`params` must be an object"),
        (capabilities(json!([])), "params.capabilities must be an object"),
        (capabilities(json!([1])), "params.capabilities must be an object"),
        (capabilities(json!("all")), "params.capabilities must be an object"),
        (capabilities(json!(true)), "params.capabilities must be an object"),
        (capabilities(json!(null)), ""),
    ] {
        let mut peer = serve(server(), 1 << 16);
        peer.send(plain(1, "initialize", params.clone()).to_string()).await;
        let reply = peer.receive().await.unwrap();
        assert_eq!(reply["error"]["message"].as_str().unwrap_or_default(), expected, "{params}");
    }
}

/// A bridge passes several clients on to one child, one after another: each begins with its own `initialize`, and counts its
/// requests from the start.
#[tokio::test(start_paused = true)]
async fn a_second_initialize_replaces_the_session() {
    let cases = [
        ("one session", Limits::default().sessions(1)),
        ("one subscription", Limits::default().subscriptions(1)),
        ("the defaults", Limits::default()),
    ];
    for (case, limits) in cases {
        let (hold, mut gate) = gate();
        let mut peer = serve(fixture(|builder| builder.tool(hold).limits(limits)).server, 1 << 16);
        let mut stale: Option<Value> = None;
        for (at, version) in ["2025-11-25", "2025-06-18", "2025-11-25", "2025-06-18"].iter().enumerate() {
            let (name, what) = (format!("client {at}"), format!("client {at}, {case}"));
            peer.send(plain(0, "initialize", initialize(version, everything())).to_string()).await;
            let opened = peer.receive().await.unwrap();
            assert_eq!(opened["result"]["protocolVersion"], *version, "{what}: {opened}");
            peer.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
            // The requests in flight of the session before are cancelled, without a reply.
            if at > 0 {
                gate.dropped(&format!("client {}", at - 1)).await;
            }
            peer.send(
                plain(1, "tools/call", json!({"name": "hold", "arguments": {"name": name}})).to_string(),
            )
            .await;
            gate.started(&name).await;
            peer.send(
                plain(2, "tools/call", json!({"name": "ask", "arguments": {"name": name}})).to_string(),
            )
            .await;
            let asked = peer.receive().await.unwrap();
            assert_eq!(asked["method"], "elicitation/create", "{what}: {asked}");
            // A late answer to the session before answers nothing here.
            if let Some(stale) = stale.replace(asked["id"].clone()) {
                let late = json!({"action": "accept", "content": {"region": "late"}});
                peer.send(json!({"jsonrpc": "2.0", "id": stale, "result": late}).to_string()).await;
            }
            peer.send(
                plain(3, "tools/call", json!({"name": "echo", "arguments": {"name": name}})).to_string(),
            )
            .await;
            let echoed = peer.receive().await.unwrap();
            assert_eq!(
                (&echoed["id"], &echoed["result"]["content"][0]["text"]),
                (&json!(3), &json!(name)),
                "{what}"
            );
        }
        // The question cannot be answered any more.
        let ids: Vec<Value> = peer.ends().await.iter().map(|reply| reply["id"].clone()).collect();
        assert_eq!(ids, [2], "{case}");
    }
}

/// A request of 2026-07-28 on the same pipe belongs to no session.
#[tokio::test]
async fn a_second_initialize_leaves_other_requests_alone() {
    let (mut peer, mut gate) = holding();
    let open = plain(0, "initialize", initialize("2025-11-25", json!({}))).to_string();
    peer.send(&open).await;
    assert_eq!(peer.receive_outcome().await, (json!(0), 0));
    peer.holds(&mut gate, json!(7), "modern").await;
    peer.send(&open).await;
    assert_eq!(peer.receive_outcome().await, (json!(0), 0));
    gate.open("modern");
    assert_eq!(peer.receive_outcome().await, (json!(7), 0));
}

/// > The `initialize` request **MUST NOT** be part of a JSON-RPC batch
#[tokio::test]
async fn an_initialize_in_a_batch_is_refused() {
    let mut session = InSession::open(&server(), "2025-03-26", json!({})).await;
    session.send(json!([plain(1, "initialize", initialize("2025-11-25", json!({})))])).await;
    assert_eq!(session.peer.receive_outcome().await, (json!(1), -32600));
    assert_eq!(session.asks(2, "ping", json!({})).await["result"], json!({}));
}

/// Before the handshake there is no session, but one can ask whether anybody is there.
#[tokio::test]
async fn before_the_handshake() {
    let mut peer = serve(server(), 1 << 16);
    for (id, method, code) in [(1, "ping", 0), (2, "tools/list", -32602), (3, "no/such", -32602)] {
        peer.send(plain(id, method, json!({})).to_string()).await;
        assert_eq!(peer.receive_outcome().await, (json!(id), code), "{method}");
    }
}

#[tokio::test]
async fn requests_that_ask_nobody() {
    let mut session = InSession::open(&server(), "2025-11-25", json!({})).await;
    let ok = |result: Value| json!({"result": result});
    let failed = |code: i64, message: &str| json!({"error": {"code": code, "message": message}});
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let uri = json!({"uri": "ask://none"});
    for (method, params, wanted) in [
        ("ping", json!({}), ok(json!({}))),
        ("logging/setLevel", json!({"level": "error"}), ok(json!({}))),
        ("logging/setLevel", json!({"level": "loud"}), json!({"error": {"code": -32602}})),
        ("resources/subscribe", json!({"uri": "ask://one"}), ok(json!({}))),
        ("resources/unsubscribe", json!({"uri": "ask://one"}), ok(json!({}))),
        ("resources/subscribe", json!({}), json!({"error": {"code": -32602}})),
        ("tools/call", json!({"name": "echo", "arguments": {"name": "x"}}), ok(text("x"))),
        (
            "tools/call",
            json!({"name": "size"}),
            ok(with(&text("{\"width\":3}"), json!({"structuredContent": {"width": 3}}))),
        ),
        // Only objects are structured there.
        ("tools/call", json!({"name": "names"}), ok(text("[\"a\",\"b\"]"))),
        ("tools/call", json!({"name": "none"}), failed(-32602, "Unknown tool: none")),
        ("resources/read", uri.clone(), with(&failed(-32002, "Resource not found"), json!({}))),
        ("server/discover", json!({}), failed(-32601, "Method not found")),
        ("subscriptions/listen", json!({"notifications": {}}), failed(-32601, "Method not found")),
        ("no/such", json!({}), failed(-32601, "Method not found")),
        // What this client cannot be asked.
        (
            "tools/call",
            json!({"name": "ask", "arguments": {"name": "x"}}),
            failed(-32600, "Elicitation not supported"),
        ),
        (
            "prompts/get",
            json!({"name": "ask", "arguments": {"name": "x"}}),
            failed(-32600, "Elicitation not supported"),
        ),
        ("resources/read", json!({"uri": "ask://one"}), failed(-32600, "Elicitation not supported")),
        // It means nothing here.
        (
            "tools/call",
            json!({"name": "echo", "arguments": {"name": "x"}, "requestState": "r1.x"}),
            ok(text("x")),
        ),
    ] {
        let reply = session.asks(7, method, params.clone()).await;
        let mut got = reply.clone();
        got.as_object_mut().unwrap().retain(|name, _| name == "result" || name == "error");
        if let Some(error) = got.get_mut("error").and_then(Value::as_object_mut) {
            let wanted = wanted["error"].as_object().cloned().unwrap_or_default();
            error.retain(|name, _| wanted.contains_key(name));
        }
        assert_eq!((&reply["id"], got), (&json!(7), wanted), "{method} {params}");
    }
}

/// Lists have nothing in them that came later.
#[tokio::test]
async fn lists_in_the_form_of_the_version() {
    for (version, described) in
        [("2025-11-25", true), ("2025-06-18", true), ("2025-03-26", false), ("2024-11-05", false)]
    {
        let mut session = InSession::open(&server(), version, json!({})).await;
        for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
            let reply = session.asks(1, method, json!({})).await;
            let members: Vec<&String> = reply["result"].as_object().unwrap().keys().collect();
            assert_eq!(members.len(), 1, "{version} {method}: {members:?}");
        }
        let tools = session.asks(2, "tools/list", json!({})).await;
        let size =
            tools["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "size").unwrap();
        assert_eq!(size.get("outputSchema").is_some(), described, "{version}");
        let called = session.asks(3, "tools/call", json!({"name": "size"})).await;
        assert_eq!(called["result"].get("structuredContent").is_some(), described, "{version}");
    }
}

/// Content of a later type is replaced by a known type: a client may refuse the whole result for one such block.
#[tokio::test]
async fn content_in_the_form_of_the_version() {
    let change = |builder: antiphon::server::ServerBuilder| {
        builder
            .tool(Tool::new("blocks", async |_: &Ctx, _: NoArguments| {
                let link = ResourceLink::new(antiphon::wire::Resource::new("report://1", "report"));
                CallToolResult::new(vec![
                    ContentBlock::text("see"),
                    ContentBlock::ResourceLink(Box::new(link)),
                    ContentBlock::audio("UklGRg==", "audio/wav"),
                ])
            }))
            .tool(Tool::new("bare", async |_: &Ctx, _: NoArguments| {
                let mut result = CallToolResult::new(vec![]);
                result.structured_content = Some(json!({"width": 3}));
                result
            }))
            .prompt(Prompt::new("linked", async |_: &Ctx, _: NoArguments| {
                let link = ResourceLink::new(antiphon::wire::Resource::new("report://1", "report"));
                vec![PromptMessage::user(ContentBlock::ResourceLink(Box::new(link)))]
            }))
    };
    let server = fixture(change).server;
    let text = json!({"type": "text", "text": "report: report://1"});
    let link = json!({"type": "resource_link", "uri": "report://1", "name": "report"});
    let sound = json!({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"});
    let embedded = json!({"type": "resource",
        "resource": {"uri": "data:audio/wav,", "mimeType": "audio/wav", "blob": "UklGRg=="}});
    for (version, link, sound, bare) in [
        ("2025-11-25", &link, &sound, json!([])),
        ("2025-06-18", &link, &sound, json!([])),
        ("2025-03-26", &text, &sound, json!([{"type": "text", "text": "{\"width\":3}"}])),
        ("2024-11-05", &text, &embedded, json!([{"type": "text", "text": "{\"width\":3}"}])),
    ] {
        let mut session = InSession::open(&server, version, json!({})).await;
        let reply = session.asks(1, "tools/call", json!({"name": "blocks"})).await;
        let see = json!({"type": "text", "text": "see"});
        assert_eq!(reply["result"]["content"], json!([see, link, sound]), "{version}");
        let reply = session.asks(2, "tools/call", json!({"name": "bare"})).await;
        assert_eq!(reply["result"]["content"], bare, "{version}");
        let reply = session.asks(3, "prompts/get", json!({"name": "linked"})).await;
        assert_eq!(reply["result"]["messages"], json!([{"role": "user", "content": link}]), "{version}");
    }
}

/// Results are rewritten by their method: a member of the author's own stays, whatever its name is elsewhere.
#[tokio::test]
async fn members_of_the_author_stay_in_every_version() {
    fn own() -> Value {
        json!({"tools": "none", "messages": 3, "ttlMs": [], "contents": {"resultType": "own"}})
    }
    let change = |builder: antiphon::server::ServerBuilder| {
        builder.tool(Tool::new("own", async |_: &Ctx, _: NoArguments| {
            let mut result = CallToolResult::text("done");
            result.extra = own().as_object().unwrap().clone();
            let mut meta = antiphon::wire::Meta::default();
            meta.0.insert("example.com/trace".to_owned(), json!(7));
            result.meta = Some(meta);
            result
        }))
    };
    let server = fixture(change).server;
    let content = json!({"content": [{"type": "text", "text": "done"}], "_meta": {"example.com/trace": 7}});
    for version in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let mut session = InSession::open(&server, version, json!({})).await;
        let reply = session.asks(1, "tools/call", json!({"name": "own"})).await;
        assert_eq!(reply["result"], with(&content, own()), "{version}");
    }
}

#[tokio::test]
async fn progress_and_logs_go_before_the_reply() {
    let mut session = InSession::newest(&server()).await;
    let call = json!({"name": "logs", "_meta": {"progressToken": "p"}});
    // What is worth telling, until the client says what it wants.
    for (level, wanted) in
        [(None, vec!["warning"]), (Some("debug"), vec!["debug", "warning"]), (Some("error"), vec![])]
    {
        if let Some(level) = level {
            session.asks(1, "logging/setLevel", json!({"level": level})).await;
        }
        let mut heard = Vec::new();
        session.send(plain(2, "tools/call", call.clone())).await;
        loop {
            let message = session.receive().await;
            match message["method"].as_str() {
                Some("notifications/message") => {
                    heard.push(message["params"]["level"].as_str().unwrap().to_owned())
                }
                Some("notifications/progress") => assert_eq!(message["params"]["progressToken"], "p"),
                _ => break assert_eq!(message["id"], 2),
            }
        }
        assert_eq!(heard, wanted, "{level:?}");
    }
}

#[tokio::test]
async fn changes_are_sent_as_notifications() {
    let server = server();
    let mut session = InSession::newest(&server).await;
    session.asks(1, "resources/subscribe", json!({"uri": "ask://one"})).await;
    server.resource_updated("ask://one");
    server.resource_updated("ask://other");
    let told = session.receive().await;
    assert_eq!(
        (&told["method"], &told["params"]),
        (&json!("notifications/resources/updated"), &json!({"uri": "ask://one"}))
    );
    assert!(server.remove_tool("size"));
    assert_eq!(session.receive().await["method"], "notifications/tools/list_changed");
    session.asks(2, "resources/unsubscribe", json!({"uri": "ask://one"})).await;
    server.resource_updated("ask://one");
    assert!(server.remove_tool("names"));
    assert_eq!(session.receive().await["method"], "notifications/tools/list_changed");
}

/// Requests that speak for themselves are served beside the session.
#[tokio::test]
async fn both_eras_on_one_stream() {
    let mut session = InSession::newest(&server()).await;
    session.send(request(1, "tools/call", json!({"name": "ask", "arguments": {"name": "x"}}))).await;
    let modern = session.receive().await;
    assert_eq!(modern["result"]["resultType"], "input_required");
    let legacy = session.asks(2, "tools/call", json!({"name": "ask", "arguments": {"name": "x"}})).await;
    assert_eq!(legacy["method"], "elicitation/create");
}

/// > MCP implementations [...] **MUST** support receiving JSON-RPC batches.
#[tokio::test]
async fn batches_of_the_one_version_that_has_them() {
    let batch = json!([plain(1, "ping", json!({})), plain(2, "ping", json!({}))]);
    for (version, ids) in [("2025-03-26", vec![json!(1), json!(2)]), ("2025-06-18", vec![Value::Null])] {
        let mut session = InSession::open(&server(), version, json!({})).await;
        session.send(batch.clone()).await;
        session.send(plain(9, "ping", json!({}))).await;
        let mut heard = Vec::new();
        loop {
            match session.peer.receive_outcome().await.0 {
                id if id == 9 => break,
                id => heard.push(id),
            }
        }
        heard.sort_by_key(Value::to_string);
        assert_eq!(heard, ids, "{version}");
    }
}

#[tokio::test]
async fn sessions_are_bounded() {
    let limits = Limits::default().sessions(2);
    let server = fixture(|builder| builder.limits(limits)).server;
    let first = InSession::open(&server, "2025-11-25", everything()).await;
    let second = InSession::open(&server, "2025-11-25", everything()).await;
    let third = InSession::open(&server, "2025-11-25", everything()).await;
    assert_eq!(third.opened["error"]["data"], json!({"reason": "busy", "retryAfterMs": 1000}));
    assert!(first.peer.ends().await.is_empty());
    let fourth = InSession::open(&server, "2025-11-25", everything()).await;
    assert!(fourth.opened.get("result").is_some());
    drop(second);
}

/// The subscriptions of a session have the same limits as `subscriptions/listen`.
#[tokio::test]
async fn subscriptions_of_a_session_are_bounded() {
    let limits = Limits::default().subscription_uris(2).subscription_uri_bytes(30);
    let server = fixture(|builder| builder.resource_updates(true).limits(limits)).server;
    let mut session = InSession::newest(&server).await;
    let long = "ask://".to_owned() + &"x".repeat(20);
    for (method, uri, refused) in [
        ("resources/subscribe", "ask://1", false),
        ("resources/subscribe", "ask://1", false),
        ("resources/subscribe", "ask://2", false),
        ("resources/subscribe", "ask://3", true),
        ("resources/unsubscribe", "ask://1", false),
        ("resources/subscribe", &long, true),
        ("resources/subscribe", "ask://3", false),
    ] {
        let reply = session.asks(1, method, json!({"uri": uri})).await;
        let limit = json!({"reason": "limit", "limit": "subscription"});
        assert_eq!(reply["error"]["data"] == limit, refused, "{method} {uri}: {reply}");
        assert_eq!(reply.get("result").is_none(), refused, "{method} {uri}: {reply}");
    }
}
