//! Sessions over HTTP: their id, their streams, and what breaks.

use crate::scripted_server::{
    ReceivedRequest, ScriptedHttpServer, ScriptedReply, asks, builder, error, event, hello, notification,
    result, soon,
};
use antiphon::{
    client::{Call, ClientBuilder, ClientErrorKind, Era, Mode, asks::AskFault, calls::RequestFault},
    wire::ProtocolVersion,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};
use tokio::sync::mpsc;

/// A request by its id, and the stream on which its answer is to come.
type ParkedRequest = Arc<Mutex<Option<(Value, mpsc::UnboundedSender<String>)>>>;

fn done(id: &Value) -> Value {
    result(id, json!({"content": [{"type": "text", "text": "done"}]}))
}

/// Responds to the handshake, in the same way in every server of this file; `None` for other requests.
fn handshake(heard: &ReceivedRequest, session: &str) -> Option<ScriptedReply> {
    Some(match (heard.verb.as_str(), heard.method()) {
        ("POST", "server/discover") => ScriptedReply::json(400, error(&Value::Null, -32000, Value::Null)),
        ("POST", "initialize") => {
            let mut hello = hello("2025-11-25");
            hello["capabilities"] = json!({"tools": {}});
            ScriptedReply::json(200, result(&heard.body["id"], hello))
                .with("mcp-session-id", session)
                .with("set-cookie", "SRV=s1; path=/; HttpOnly")
        }
        ("POST", method) if method.starts_with("notifications/") => ScriptedReply::empty(202),
        ("POST", "") => ScriptedReply::empty(202),
        ("POST", _) if heard.header("mcp-protocol-version") == Some("2026-07-28") => {
            ScriptedReply::typed(400, "text/plain", "no session")
        }
        ("DELETE", _) => ScriptedReply::empty(405),
        _ => return None,
    })
}

#[tokio::test]
async fn a_session_from_its_beginning_to_its_end() {
    let played = ScriptedHttpServer::new(|heard| {
        handshake(heard, "s-1").unwrap_or_else(|| match heard.verb.as_str() {
            "GET" => ScriptedReply::empty(405),
            _ => ScriptedReply::json(200, done(&heard.body["id"])).with("set-cookie", "SRV=s2"),
        })
    })
    .await;
    let client = played.client(builder());
    for _ in 0..2 {
        client.call_tool("t", ()).await.unwrap();
    }
    assert_eq!(client.era(), Some(Era::Legacy));
    client.close().await;
    // The stream of the session is asked for before the first request that could make the server use it.
    let whole = [
        "POST tools/call",
        "POST initialize",
        "POST notifications/initialized",
        "GET",
        "POST tools/call",
        "POST tools/call",
        "DELETE",
    ];
    assert_eq!(played.short(), whole);
    for (at, heard) in played.requests().iter().enumerate() {
        let (session, version, cookie) = match at {
            0 => (None, Some("2026-07-28"), None),
            1 => (None, None, None),
            2..=4 => (Some("s-1"), Some("2025-11-25"), Some("SRV=s1")),
            _ => (Some("s-1"), Some("2025-11-25"), Some("SRV=s2")),
        };
        assert_eq!(heard.header("mcp-session-id"), session, "{heard:?}");
        assert_eq!(heard.header("mcp-protocol-version"), version, "{heard:?}");
        assert_eq!(heard.header("cookie"), cookie, "{heard:?}");
        assert_eq!(heard.header("mcp-method").is_some(), at == 0, "{heard:?}");
        let accept =
            if heard.verb == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
        assert_eq!(heard.header("accept"), Some(accept), "{heard:?}");
        assert_eq!(heard.path, "/mcp");
    }
}

/// Sends a request of another client, and waits for its answer: what was about to be sent before has been sent.
async fn fence(played: &ScriptedHttpServer) {
    let fence = played.client(builder().mode(Mode::Pinned(ProtocolVersion::V2026_07_28)));
    assert!(soon(fence.call_tool("fence", ())).await.is_err());
}

/// A client that is not closed leaves nothing behind all the same.
#[tokio::test]
async fn a_client_that_is_dropped_ends_its_session() {
    #[derive(Clone, Copy, PartialEq)]
    enum ClientEnd {
        Dropped,
        Listening,
        Closed,
        Forgotten,
        Unnamed,
        HalfOpen,
    }
    use ClientEnd::{Closed, Dropped, Forgotten, HalfOpen, Listening, Unnamed};
    for (how, ended) in [
        (Dropped, vec!["s-1"]),
        (Listening, vec!["s-1"]),
        (Closed, vec!["s-1"]),
        (Forgotten, vec!["s-2"]),
        (Unnamed, vec![]),
        (HalfOpen, vec!["s-1"]),
    ] {
        let opened = AtomicUsize::new(0);
        let streams = Mutex::new(Vec::new());
        let played = ScriptedHttpServer::new(move |heard| {
            if heard.method() == "initialize" {
                opened.fetch_add(1, Ordering::SeqCst);
            }
            match (heard.verb.as_str(), heard.method()) {
                ("POST", "initialize") if how == Unnamed => {
                    return ScriptedReply::json(200, result(&heard.body["id"], hello("2025-11-25")));
                }
                ("POST", "notifications/initialized") if how == HalfOpen => return ScriptedReply::empty(500),
                ("GET", _) if how == Listening => {
                    let (sender, said) = ScriptedReply::open("");
                    streams.lock().unwrap().push(sender);
                    return said;
                }
                ("DELETE", _) => return ScriptedReply::empty(204),
                _ => {}
            }
            let session = format!("s-{}", opened.load(Ordering::SeqCst));
            handshake(heard, &session).unwrap_or_else(|| match heard.verb.as_str() {
                "GET" => ScriptedReply::empty(405),
                _ if how == Forgotten && heard.header("mcp-session-id") == Some("s-1") => {
                    ScriptedReply::empty(404)
                }
                _ => ScriptedReply::json(200, done(&heard.body["id"])),
            })
        })
        .await;
        let client = played.client(builder().mode(Mode::Legacy));
        let called = soon(client.call_tool("t", ())).await;
        assert_eq!(called.is_ok(), how != HalfOpen, "{called:?}");
        if how == Closed {
            soon(client.close()).await;
        }
        drop(client);
        if !ended.is_empty() {
            played.receive(|heard| heard.verb == "DELETE").await;
        }
        fence(&played).await;
        let deletes: Vec<ReceivedRequest> =
            played.requests().into_iter().filter(|heard| heard.verb == "DELETE").collect();
        let sessions: Vec<&str> = deletes.iter().filter_map(|heard| heard.header("mcp-session-id")).collect();
        assert_eq!(sessions, ended);
        assert!(deletes.iter().all(|heard| heard.header("mcp-protocol-version") == Some("2025-11-25")));
    }
}

/// A server that lets no client end its sessions is asked to once.
#[tokio::test]
async fn a_server_that_keeps_its_sessions() {
    let played =
        ScriptedHttpServer::new(|heard| handshake(heard, "s").unwrap_or(ScriptedReply::empty(405))).await;
    // It answers with a version that is not spoken here, hence the session ends with its handshake.
    let pinned = builder().mode(Mode::Pinned(ProtocolVersion::V2025_06_18));
    let client = played.client(pinned);
    for _ in 0..3 {
        soon(client.call_tool("t", ())).await.unwrap_err();
    }
    drop(client);
    fence(&played).await;
    let count = |what| played.short().iter().filter(|short| *short == what).count();
    assert_eq!((count("POST initialize"), count("DELETE")), (3, 1));
}

/// A call that is dropped with its client is cancelled, and then the session ends.
#[tokio::test]
async fn a_client_that_is_dropped_with_its_call() {
    let played = ScriptedHttpServer::new(|heard| {
        handshake(heard, "s").unwrap_or_else(|| match heard.verb.as_str() {
            "GET" => ScriptedReply::empty(405),
            _ => ScriptedReply::Silence,
        })
    })
    .await;
    let client = played.client(builder().mode(Mode::Legacy));
    let called = tokio::spawn(async move { client.call_tool("t", ()).await });
    played.receive(|heard| heard.method() == "tools/call").await;
    called.abort();
    played.receive(|heard| heard.verb == "DELETE").await;
    let last: Vec<String> = played.short().into_iter().skip_while(|what| what != "POST tools/call").collect();
    assert_eq!(last, ["POST tools/call", "POST notifications/cancelled", "DELETE"]);
}

/// The client cannot send anything without a runtime, and dropping it does nothing.
#[tokio::test]
async fn a_client_that_is_dropped_outside_of_a_runtime() {
    let played = ScriptedHttpServer::new(|heard| {
        handshake(heard, "s").unwrap_or_else(|| match heard.verb.as_str() {
            "GET" => ScriptedReply::empty(405),
            _ => ScriptedReply::json(200, done(&heard.body["id"])),
        })
    })
    .await;
    let client = played.client(builder().mode(Mode::Legacy));
    client.call_tool("t", ()).await.unwrap();
    std::thread::spawn(move || drop(client)).join().unwrap();
    fence(&played).await;
    assert!(!played.short().iter().any(|what| what == "DELETE"));
    // Nor does a runtime that ends wait for it.
    let client = played.client(builder().mode(Mode::Legacy));
    let ended = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move { client.call_tool("t", ()).await.unwrap() });
    });
    soon(ended).await.unwrap();
}

/// The first session is forgotten: by a status that says so the request is sent again, by another it is not.
#[tokio::test]
async fn a_session_that_is_forgotten() {
    let error = |code: i64, text: &str| {
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": text}}).to_string()
    };
    for (status, body, again) in [
        (404, String::new(), true),
        (400, error(-32000, "Bad Request: No valid session ID provided"), true),
        (400, error(-32001, "Session not found"), true),
        (400, "Invalid or missing session ID".to_owned(), true),
        (400, r#"{"error": "no valid session"}"#.to_owned(), false),
        (400, error(-32602, "Session not found"), false),
        (403, error(-32001, "Session not found"), false),
    ] {
        let what = format!("{status} {body}");
        let opened = AtomicUsize::new(0);
        let played = ScriptedHttpServer::new(move |heard| {
            if heard.method() == "initialize" {
                opened.fetch_add(1, Ordering::SeqCst);
            }
            let session = format!("s-{}", opened.load(Ordering::SeqCst));
            handshake(heard, &session).unwrap_or_else(|| match heard.verb.as_str() {
                "GET" => ScriptedReply::empty(405),
                _ if heard.header("mcp-session-id") == Some("s-1") => {
                    ScriptedReply::typed(status, "text/plain", body.clone())
                }
                _ => ScriptedReply::json(200, done(&heard.body["id"])),
            })
        })
        .await;
        let client = played.client(builder().mode(Mode::Legacy));
        assert_eq!(client.call_tool("t", ()).await.is_ok(), again, "{what}");
        let opened = played.short().iter().filter(|what| *what == "POST initialize").count();
        assert_eq!(opened, if again { 2 } else { 1 }, "{what}");
        let second = played.requests().into_iter().filter(|heard| heard.method() == "initialize").nth(1);
        assert!(second.is_none_or(|heard| heard.header("mcp-session-id").is_none()));
    }
}

/// A server that forgets every session gets the request twice, not without end.
#[tokio::test]
async fn a_session_that_is_forgotten_again() {
    let unknown = json!({"jsonrpc": "2.0", "id": null,
        "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"}});
    let played = ScriptedHttpServer::new(move |heard| {
        handshake(heard, "s").unwrap_or_else(|| match heard.verb.as_str() {
            "GET" => ScriptedReply::empty(405),
            _ => ScriptedReply::json(400, unknown.clone()),
        })
    })
    .await;
    let error = played.client(builder().mode(Mode::Legacy)).call_tool("t", ()).await.unwrap_err();
    assert!(error.transport_error().unwrap().is_session_lost() && !error.is_unknown_outcome(), "{error:?}");
    let count = |of: &str| played.short().iter().filter(|what| *what == of).count();
    assert_eq!((count("POST initialize"), count("POST tools/call")), (2, 2));
}

/// The error that explains most, of the modern request, of `initialize`, and of the stream of 2024.
#[tokio::test]
async fn the_error_of_a_fallback_hides_none_that_explains_more() {
    let none = || (404, String::new());
    let refusal = |code: i64, text: &str| {
        (400, json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": text}}).to_string())
    };
    for (modern, initialize, stream, expected) in [
        (none(), refusal(-32000, "no licence"), none(), "no licence"),
        (refusal(-32000, "Bad Request"), refusal(-32001, "no licence"), none(), "Bad Request"),
        (refusal(-32601, "Method not found"), refusal(-32001, "no licence"), none(), "no licence"),
        (refusal(-32000, "no licence"), none(), none(), "no licence"),
        (refusal(-32000, "no licence"), refusal(-32601, "Method not found"), none(), "no licence"),
        (none(), none(), (401, String::new()), "401"),
        (none(), none(), (503, String::new()), "503"),
        (none(), (403, String::new()), none(), "403"),
        (none(), none(), none(), "404"),
        ((405, String::new()), none(), (200, "<p>".to_owned()), "405"),
        ((400, "what?".to_owned()), none(), none(), "400"),
    ] {
        let what = format!("{modern:?} {initialize:?} {stream:?}");
        let played = ScriptedHttpServer::new(move |heard| {
            let (status, body) = match (heard.verb.as_str(), heard.method()) {
                ("GET", _) => &stream,
                (_, "initialize") => &initialize,
                _ => &modern,
            };
            let kind = if body.starts_with('{') { "application/json" } else { "text/html" };
            ScriptedReply::typed(*status, kind, body.clone())
        })
        .await;
        let error = played.client(builder()).call_tool("t", ()).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{what}: {error}");
    }
}

/// The server closes the stream of a request before its answer; the client comes back for it, as it was told to.
#[tokio::test]
async fn a_stream_that_is_resumed() {
    let asked: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let times = Arc::clone(&asked);
    let played = ScriptedHttpServer::new(move |heard| {
        handshake(heard, "s").unwrap_or_else(|| {
            times.lock().unwrap().push(Instant::now());
            match (heard.verb.as_str(), heard.header("last-event-id")) {
                ("GET", None) => ScriptedReply::empty(405),
                // Told in an event without data, too.
                ("GET", Some("e-1")) => ScriptedReply::events("id: e-2\nretry: 30\n\n"),
                ("GET", Some("e-2")) => {
                    ScriptedReply::events(format!("id: e-3\n{}", event(&notification("x", json!({})))))
                }
                ("GET", Some("e-3")) => ScriptedReply::empty(503),
                _ => ScriptedReply::events("id: e-1\nretry: 40\ndata: \n\n"),
            }
        })
    })
    .await;
    let client = played.client(builder().mode(Mode::Legacy));
    let called = tokio::spawn(async move { client.call_tool("t", ()).await });
    let resumed = |id: &'static str| move |heard: &ReceivedRequest| heard.header("last-event-id") == Some(id);
    let first = played.receive(resumed("e-1")).await;
    assert_eq!(
        (first.header("mcp-session-id"), first.header("accept")),
        (Some("s"), Some("text/event-stream"))
    );
    played.receive(resumed("e-2")).await;
    played.receive(resumed("e-3")).await;
    called.abort();
    let times = asked.lock().unwrap().clone();
    let waits: Vec<u128> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    // The stream of the session, the call, and the resumptions: no sooner than told.
    assert!(waits[1] >= 40 && waits[2] >= 30 && waits[3] >= 30, "{waits:?}");
}

#[tokio::test]
async fn the_answer_comes_on_the_resumed_stream_or_not_at_all() {
    let call = json!(2);
    for (said, expected) in [
        (ScriptedReply::events as fn(String) -> ScriptedReply, true),
        ((|_| ScriptedReply::empty(405)) as fn(String) -> ScriptedReply, false),
        ((|_| ScriptedReply::typed(200, "text/html", "<p>")) as fn(String) -> ScriptedReply, false),
    ] {
        let answer = event(&done(&call));
        let played = ScriptedHttpServer::new(move |heard| {
            handshake(heard, "s").unwrap_or_else(|| {
                match (heard.verb.as_str(), heard.header("last-event-id")) {
                    ("GET", None) => ScriptedReply::empty(405),
                    ("GET", Some(_)) => said(answer.clone()),
                    _ => ScriptedReply::events("id: e\nretry: 1\ndata:\n\n"),
                }
            })
        })
        .await;
        let client = played.client(builder().mode(Mode::Legacy));
        let called = client.call_tool("t", ()).await;
        assert_eq!(called.is_ok(), expected, "{called:?}");
        // Nobody asks for the stream again once the answer is there.
        assert_eq!(played.short().iter().filter(|what| *what == "GET").count(), 2);
    }
}

fn form() -> Value {
    json!({"message": "Where?", "requestedSchema": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}})
}

type TextLog = Arc<Mutex<Vec<String>>>;

fn person(log: &TextLog) -> ClientBuilder {
    let log = Arc::clone(log);
    builder().mode(Mode::Legacy).on_elicit_form(move |ask| {
        let of = &ask.context;
        let arguments = of.arguments.as_ref().map_or("none", |text| text.get());
        log.lock().unwrap().push(format!("{} {} {arguments} {}", of.method, of.target, of.round));
        async move { Ok(ask.accept(json!({}))?) }
    })
}

/// The callbacks receive the request that a question belongs to, if the stream shows it.
#[tokio::test]
async fn questions_on_the_stream_of_a_call_and_of_the_session() {
    for (on_call, context) in [(true, "tools/call t {\"a\":1} 1"), (false, "initialize  none 1")] {
        let streams: Arc<Mutex<Vec<mpsc::UnboundedSender<String>>>> = Arc::default();
        let kept = Arc::clone(&streams);
        let played = ScriptedHttpServer::new(move |heard| {
            if heard.verb == "POST" && heard.method().is_empty() {
                // The answer ends the call.
                assert_eq!(heard.body["result"], json!({"action": "accept", "content": {"size": 1}}));
                let streams = kept.lock().unwrap();
                streams.last().unwrap().send(event(&done(&json!(2)))).unwrap();
            }
            handshake(heard, "s").unwrap_or_else(|| {
                let ask = event(&asks("q", "elicitation/create", form()));
                let first = if on_call && heard.verb == "POST" { ask.clone() } else { String::new() };
                let (sender, said) = ScriptedReply::open(first);
                let mut streams = kept.lock().unwrap();
                if !on_call && heard.verb == "POST" {
                    streams[0].send(ask).unwrap();
                }
                streams.push(sender);
                said
            })
        })
        .await;
        let log = TextLog::default();
        let client = played.client(person(&log));
        let result = soon(client.call_tool("t", json!({"a": 1}))).await.unwrap();
        assert_eq!(serde_json::to_value(&result).unwrap()["content"][0]["text"], "done");
        assert_eq!(*log.lock().unwrap(), [context]);
        let answer = played.receive(|heard| heard.body.get("result").is_some()).await;
        assert_eq!((answer.header("mcp-session-id"), &answer.body["id"]), (Some("s"), &json!("q")));
        client.close().await;
    }
}

/// > Disconnection SHOULD NOT be interpreted as the client cancelling its request.
#[tokio::test]
async fn a_call_that_is_dropped_or_whose_callback_fails_is_cancelled() {
    for fails in [false, true] {
        let played = ScriptedHttpServer::new(move |heard| {
            handshake(heard, "s").unwrap_or_else(|| match heard.verb.as_str() {
                "GET" => ScriptedReply::empty(405),
                _ if fails => {
                    ScriptedReply::open(event(&asks("q", "elicitation/create", form()))).1.with("x", "y")
                }
                _ => ScriptedReply::Silence,
            })
        })
        .await;
        let failing = builder()
            .mode(Mode::Legacy)
            .on_elicit_form(async |_| Err(antiphon::client::CallbackError::new("no terminal")));
        let client = played.client(failing);
        let called = tokio::spawn(async move { client.call(Call::tool("t", ()).unwrap()).await });
        let call = played.receive(|heard| heard.method() == "tools/call").await;
        if fails {
            let error = soon(called).await.unwrap().unwrap_err();
            assert!(
                matches!(error.kind(), ClientErrorKind::Ask(AskFault::Callback { key, .. }) if key == "q"),
                "{error:?}"
            );
            let log = played.receive(|heard| heard.body.get("error").is_some()).await;
            // What failed here is nobody's business there.
            let error = json!({"code": -32603, "message": "The question could not be answered"});
            assert_eq!(log.body["error"], error);
        } else {
            called.abort();
        }
        let cancelled = played.receive(|heard| heard.method() == "notifications/cancelled").await;
        assert_eq!(cancelled.body["params"]["requestId"], call.body["id"]);
        assert_eq!(cancelled.header("mcp-session-id"), Some("s"));
    }
}

/// The deprecated transport: one stream for all answers, and an endpoint that it names.
#[tokio::test]
async fn http_and_sse_comes_last() {
    let rows: [(&str, Result<Era, &str>); 6] = [
        ("event: endpoint\r\ndata: /messages/?session_id=7\r\n\r\n", Ok(Era::Legacy)),
        ("event: endpoint\ndata: SAME/messages?session_id=7\n\n", Ok(Era::Legacy)),
        ("event: endpoint\ndata: http://evil.example/messages\n\n", Err("405")),
        ("event: endpoint\ndata: //evil.example/messages\n\n", Err("405")),
        ("event: message\ndata: {}\n\n", Err("405")),
        ("", Err("405")),
    ];
    for (first, expected) in rows {
        let stream: Arc<Mutex<Option<mpsc::UnboundedSender<String>>>> = Arc::default();
        let kept = Arc::clone(&stream);
        let own = Arc::new(Mutex::new(String::new()));
        let url = Arc::clone(&own);
        let played = ScriptedHttpServer::new(move |heard| match (heard.verb.as_str(), heard.path.as_str()) {
            ("POST", "/mcp") => ScriptedReply::typed(405, "text/plain", "Method Not Allowed"),
            ("GET", "/mcp") if first.is_empty() => ScriptedReply::typed(200, "text/html", "<p>"),
            ("GET", "/mcp") => {
                let (sender, said) = ScriptedReply::open(first.replace("SAME", &url.lock().unwrap()));
                *kept.lock().unwrap() = Some(sender);
                said
            }
            ("POST", path) if path.starts_with("/messages") && path.ends_with("?session_id=7") => {
                // > the client **MUST** include the `MCP-Protocol-Version` header on all subsequent requests
                let version = (heard.method() != "initialize").then_some("2025-06-18");
                assert_eq!(heard.header("mcp-protocol-version"), version, "{heard:?}");
                let id = &heard.body["id"];
                let answer = match heard.method() {
                    "initialize" => Some(result(id, hello("2025-06-18"))),
                    "tools/call" => Some(asks("q", "elicitation/create", form())),
                    "" => Some(done(&json!(4))),
                    "logging/setLevel" => Some(result(id, json!({}))),
                    _ => None,
                };
                if let Some(answer) = answer {
                    kept.lock().unwrap().as_ref().unwrap().send(event(&answer)).unwrap();
                }
                ScriptedReply::typed(202, "text/plain", "Accepted")
            }
            _ => panic!("{heard:?}"),
        })
        .await;
        *own.lock().unwrap() = played.url.trim_end_matches("/mcp").to_owned();
        let client = played.client(person(&TextLog::default()).mode(Mode::Auto));
        let called = soon(client.call_tool("t", ())).await;
        match expected {
            Ok(era) => {
                assert!(called.is_ok(), "{called:?}");
                assert_eq!(client.era(), Some(era));
                assert_eq!(client.protocol_version().as_str(), "2025-06-18");
            }
            Err(status) => {
                let error = called.unwrap_err();
                let ClientErrorKind::Request(RequestFault::Transport(fault)) = error.kind() else {
                    panic!("{error:?}")
                };
                assert!(fault.to_string().contains(status), "{fault}");
            }
        }
        client.close().await;
    }
}

/// Statuses that the caller can act on: a token, a proxy, a page. None of them is a sign of an old server.
#[tokio::test]
async fn errors_that_are_returned_without_a_fallback() {
    for (said, expected) in
        [(401, "401"), (403, "403"), (429, "429"), (500, "500"), (503, "503"), (302, "302")]
    {
        let played = ScriptedHttpServer::new(move |_| ScriptedReply::typed(said, "text/html", "<p>")).await;
        let error = played.client(builder()).call_tool("t", ()).await.unwrap_err();
        let ClientErrorKind::Request(RequestFault::Transport(fault)) = error.kind() else {
            panic!("{error:?}")
        };
        assert!(fault.to_string().contains(expected), "{fault}");
        assert_eq!(played.short(), ["POST tools/call"]);
    }
}

/// A tool that has run is not called a second time to find out what the server is.
#[tokio::test]
async fn a_result_of_either_era_is_taken_as_it_is() {
    let played = ScriptedHttpServer::new(|heard| ScriptedReply::json(200, done(&heard.body["id"]))).await;
    let client = played.client(builder());
    client.call_tool("t", ()).await.unwrap();
    assert_eq!((client.era(), played.short()), (None, vec!["POST tools/call".to_owned()]));
}

/// An error that both eras know is the request's own where the server can be discovered.
#[tokio::test]
async fn an_error_that_both_eras_know() {
    let played = ScriptedHttpServer::new(|heard| match heard.method() {
        "server/discover" => {
            let found =
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}});
            ScriptedReply::json(200, result(&heard.body["id"], found))
        }
        _ => ScriptedReply::json(400, error(&heard.body["id"], -32602, Value::Null)),
    })
    .await;
    let client = played.client(builder());
    for _ in 0..2 {
        let error = client.call_tool("t", ()).await.unwrap_err();
        assert_eq!(error.server_error().unwrap().code.0, -32602);
    }
    assert_eq!(client.era(), Some(Era::Modern));
    assert_eq!(played.short(), ["POST tools/call", "POST server/discover", "POST tools/call"]);
}

/// The first request of all wishes for a task of the draft, and is refused: the era is detected, and the call is sent without the
/// wish.
#[tokio::test]
async fn a_first_call_whose_wish_for_a_task_is_refused() {
    let modern = |status: u16| {
        ScriptedHttpServer::new(move |heard| match heard.method() {
            "server/discover" => {
                let found = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}});
                ScriptedReply::json(200, result(&heard.body["id"], found))
            }
            _ if heard.body["params"].get("task").is_some() => {
                ScriptedReply::json(status, error(&heard.body["id"], -32601, Value::Null))
            }
            _ => ScriptedReply::json(200, done(&heard.body["id"])),
        })
    };
    let call = async |played: &ScriptedHttpServer, era: Era, requests: &[&str]| {
        let client = played.client(builder().draft_tasks(true));
        for _ in 0..2 {
            assert_eq!(soon(client.call_tool("t", ())).await.unwrap().first_text(), Some("done"));
        }
        assert_eq!(client.era(), Some(era));
        let calls: Vec<String> = played
            .short()
            .into_iter()
            .filter(|sent| !sent.contains("notifications") && sent != "GET")
            .collect();
        assert_eq!(calls, requests);
    };
    const CALL: &str = "POST tools/call";
    for status in [200, 400, 404] {
        let requests = [CALL, "POST server/discover", CALL, CALL, CALL];
        call(&modern(status).await, Era::Modern, &requests).await;
    }
    // A server of sessions refuses the first request because of its revision.
    for status in [200, 400, 404] {
        let played = ScriptedHttpServer::new(move |heard| {
            let is_modern = heard.header("mcp-protocol-version") == Some("2026-07-28");
            match (heard.verb.as_str(), heard.method()) {
                ("POST", "tools/call") if is_modern => {
                    ScriptedReply::json(status, error(&heard.body["id"], -32601, Value::Null))
                }
                ("POST", "tools/call") if heard.body["params"].get("task").is_none() => {
                    ScriptedReply::json(200, done(&heard.body["id"]))
                }
                _ => handshake(heard, "s-1").unwrap_or(ScriptedReply::empty(405)),
            }
        });
        let requests = [CALL, "POST server/discover", "POST initialize", CALL, CALL];
        call(&played.await, Era::Legacy, &requests).await;
    }
}

#[tokio::test]
async fn a_callback_that_fails_ends_the_call_whatever_the_server_makes_of_it() {
    let call = ParkedRequest::default();
    let played = ScriptedHttpServer::new(move |heard| {
        // The server ends the call before it has taken in the client's error.
        if heard.verb == "POST" && heard.body.get("error").is_some() {
            let (id, more) = call.lock().unwrap().take().unwrap();
            more.send(event(&done(&id))).unwrap();
            return ScriptedReply::Silence;
        }
        handshake(heard, "s-1").unwrap_or_else(|| match heard.verb.as_str() {
            "GET" => ScriptedReply::empty(405),
            _ => {
                let form =
                    json!({"message": "Where?", "requestedSchema": {"type": "object", "properties": {}}});
                let (more, said) = ScriptedReply::open(event(&asks(1, "elicitation/create", form)));
                *call.lock().unwrap() = Some((heard.body["id"].clone(), more));
                said
            }
        })
    })
    .await;
    let client = played
        .client(builder().on_elicit_form(async |_| Err(std::io::Error::other("nobody is there").into())));
    let fault = soon(client.call_tool("t", ())).await.unwrap_err();
    assert!(matches!(fault.kind(), ClientErrorKind::Ask(AskFault::Callback { .. })), "{fault:?}");
}

/// The stream of `initialize` may bring a ping before its answer, which waits for ours.
#[tokio::test]
async fn a_ping_on_the_stream_of_the_handshake() {
    let handshake = ParkedRequest::default();
    let played = ScriptedHttpServer::new(move |heard| match (heard.verb.as_str(), heard.method()) {
        ("POST", "initialize") => {
            let (sender, said) = ScriptedReply::open(event(&asks("p", "ping", json!({}))));
            *handshake.lock().unwrap() = Some((heard.body["id"].clone(), sender));
            said.with("mcp-session-id", "s")
        }
        ("POST", "") => {
            assert_eq!(heard.body, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
            assert_eq!(heard.header("mcp-session-id"), Some("s"));
            let (id, more) = handshake.lock().unwrap().take().unwrap();
            more.send(event(&result(&id, hello("2025-03-26")))).unwrap();
            ScriptedReply::empty(202)
        }
        ("POST", "tools/call") => ScriptedReply::json(200, done(&heard.body["id"])),
        ("POST", "logging/setLevel") => ScriptedReply::json(200, result(&heard.body["id"], json!({}))),
        ("POST", _) => ScriptedReply::empty(202),
        _ => ScriptedReply::empty(405),
    })
    .await;
    let client = played.client(builder().mode(Mode::Legacy));
    soon(client.call_tool("t", ())).await.unwrap();
}

/// A server that pings without end, and takes no answer, holds so many of them and no more.
#[tokio::test]
async fn pings_on_the_stream_of_the_handshake_are_bounded() {
    const PINGS: usize = 16;
    let (answers, handshake) = (Arc::new(AtomicUsize::new(0)), ParkedRequest::default());
    let seen = Arc::clone(&answers);
    let played = ScriptedHttpServer::new(move |heard| match (heard.verb.as_str(), heard.method()) {
        ("POST", "initialize") => {
            let pings = (0..10 * PINGS).map(|id| event(&asks(id, "ping", json!({})))).collect::<String>();
            let (sender, said) = ScriptedReply::open(pings);
            *handshake.lock().unwrap() = Some((heard.body["id"].clone(), sender));
            said.with("mcp-session-id", "s")
        }
        ("POST", "") => {
            if seen.fetch_add(1, Ordering::SeqCst) + 1 == PINGS {
                let (id, more) = handshake.lock().unwrap().take().unwrap();
                more.send(event(&result(&id, hello("2025-03-26")))).unwrap();
            }
            ScriptedReply::Silence
        }
        ("POST", "tools/call") => ScriptedReply::json(200, done(&heard.body["id"])),
        ("POST", "logging/setLevel") => ScriptedReply::json(200, result(&heard.body["id"], json!({}))),
        ("POST", _) => ScriptedReply::empty(202),
        _ => ScriptedReply::empty(405),
    })
    .await;
    let client = played.client(builder().mode(Mode::Legacy));
    soon(client.call_tool("t", ())).await.unwrap();
    assert_eq!(answers.load(Ordering::SeqCst), PINGS);
}
