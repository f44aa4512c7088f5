//! Clients of earlier revisions over HTTP: the handshake, which session a request is of, and what is answered how.

use crate::common::{by_header, fixture, gate::gate, http_request, request};
use crate::legacy_http_support::{
    NEWEST, Session, bare, call, initialize, message, post, send, steps, text_of, with_header,
};
use antiphon::{
    serve::http::{HttpOptions, HttpService},
    server::ServerBuilder,
};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

fn service(change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> HttpService {
    HttpService::new(fixture(change).server, HttpOptions::default())
}

#[tokio::test]
async fn the_handshake_opens_a_session_of_the_version_that_both_know() {
    let service = service(|builder| builder);
    for (asked, agreed) in [
        (NEWEST, NEWEST),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("1999-01-01", NEWEST),
        ("2026-07-28", NEWEST),
    ] {
        let (one, other) = (Session::open(&service, asked).await, Session::open(&service, asked).await);
        assert_eq!(one.version, agreed, "{asked}");
        // > The session ID **MUST** only contain visible ASCII characters
        assert!(one.id.len() >= 32 && one.id.bytes().all(|byte| byte.is_ascii_graphic()), "{}", one.id);
        assert_ne!(one.id, other.id);
        let came = one.post(&message(1, "ping", json!({}))).await;
        assert_eq!(came.json().await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        let came = one.post(&call(2, "echo", json!({"name": "x"}))).await;
        assert_eq!(text_of(&came.json().await), "x");
    }
    // What goes with a modern request is not looked at.
    let said = with_header(post(initialize(NEWEST)), "mcp-method", "initialize");
    let came = send(&service, with_header(said, "mcp-protocol-version", NEWEST)).await;
    assert!(came.headers.contains_key("mcp-session-id"));
    came.check("with headers", (200, 0)).await;
    send(&service, post(message(1, "initialize", json!({})))).await.check("no version", (200, -32602)).await;
}

#[tokio::test]
async fn a_modern_server_has_no_sessions() {
    let service = service(|builder| builder.modern_only(true));
    let came = send(&service, post(initialize(NEWEST))).await;
    assert!(!came.headers.contains_key("mcp-session-id"));
    came.check("initialize", (400, -32022)).await;
    let id = |request| with_header(request, "mcp-session-id", "x");
    for (what, request, expected) in [
        ("GET", id(bare(Method::GET)), (405, 0)),
        ("DELETE", id(bare(Method::DELETE)), (405, 0)),
        ("a request", id(post(message(1, "ping", json!({})))), (400, -32602)),
        ("a response", id(post(json!({"jsonrpc": "2.0", "id": 1, "result": {}}))), (400, -32600)),
        ("a batch", post(json!([message(1, "ping", json!({}))])), (400, -32600)),
    ] {
        send(&service, request).await.check(what, expected).await;
    }
}

#[tokio::test]
async fn a_request_is_of_the_session_that_it_names() {
    let service = service(|builder| builder.bind_principal(by_header));
    let anna = Session::open_as(&service, "2025-06-18", Some("anna@app")).await;
    let bert = Session::open_as(&service, "2025-06-18", Some("bert@app")).await;
    let nobody = Session::open(&service, "2025-06-18").await;
    let ping = || post(message(1, "ping", json!({})));
    let list = || post(message(1, "tools/list", json!({})));
    let of = |session: &Session, user: &str| {
        let request = with_header(ping(), "mcp-session-id", &session.id);
        if user.is_empty() { request } else { with_header(request, "x-user", user) }
    };
    let version = |version: &str| with_header(of(&nobody, ""), "mcp-protocol-version", version);
    for (what, request, expected) in [
        ("hers", of(&anna, "anna@app"), (200, 0)),
        ("his", of(&bert, "bert@app"), (200, 0)),
        ("nobody's", of(&nobody, ""), (200, 0)),
        ("hers, by him", of(&anna, "bert@app"), (404, 0)),
        ("hers, by another client of hers", of(&anna, "anna@other"), (404, 0)),
        ("hers, by nobody", of(&anna, ""), (404, 0)),
        ("nobody's, by her", of(&nobody, "anna@app"), (404, 0)),
        ("hers, while nobody knows", of(&anna, "?"), (404, 0)),
        ("unknown", with_header(ping(), "mcp-session-id", "x"), (404, 0)),
        ("empty", with_header(ping(), "mcp-session-id", ""), (404, 0)),
        ("twice", with_header(of(&nobody, ""), "mcp-session-id", &nobody.id), (400, -32020)),
        ("its version", version("2025-06-18"), (200, 0)),
        ("another version", version(NEWEST), (400, -32600)),
        ("no version", version("x"), (400, -32600)),
        ("two versions", with_header(version("2025-06-18"), "mcp-protocol-version", "x"), (400, -32020)),
        ("no message", with_header(post("{"), "mcp-session-id", &nobody.id), (400, -32700)),
        ("an array", with_header(post("[]"), "mcp-session-id", &nobody.id), (400, -32600)),
        ("again", with_header(post(initialize(NEWEST)), "mcp-session-id", &nobody.id), (200, -32600)),
        ("GET by him", with_header(bare(Method::GET), "mcp-session-id", &anna.id), (404, 0)),
        ("DELETE by him", with_header(bare(Method::DELETE), "mcp-session-id", &anna.id), (404, 0)),
        ("a modern version", with_header(list(), "mcp-protocol-version", "2026-07-28"), (400, -32602)),
        ("hers, still", of(&anna, "anna@app"), (200, 0)),
    ] {
        send(&service, request).await.check(what, expected).await;
    }
    // > An `Mcp-Session-Id` header on a request: ignore it
    let modern = http_request(&request(1, "server/discover", json!({})), None);
    let (parts, body) = modern.into_parts();
    let modern = Request::from_parts(parts, body.collect().await.unwrap().to_bytes());
    send(&service, with_header(modern, "mcp-session-id", "x")).await.check("modern", (200, 0)).await;
    // Unknown, foreign and ended are one.
    anna.delete().await.check("DELETE", (204, 0)).await;
    let text = |session: &Session, user| {
        let (service, request) = (service.clone(), of(session, user));
        async move { send(&service, request).await.text().await }
    };
    let gone = text(&anna, "anna@app").await;
    assert!(gone.contains("`initialize`"), "{gone}");
    assert_eq!(text(&bert, "anna@app").await, gone);
}

#[tokio::test]
async fn get_and_delete_belong_to_a_session() {
    let service = service(|builder| builder);
    let session = Session::open(&service, NEWEST).await;
    let own = |method| session.own(bare(method));
    let accept = |kind: &'static str| {
        let mut request = own(Method::GET);
        request.headers_mut().insert("accept", kind.parse().unwrap());
        request
    };
    let evil = |method| {
        let mut request = own(method);
        request.headers_mut().insert("host", "evil.example.com".parse().unwrap());
        request
    };
    let origin = |method| with_header(own(method), "origin", "http://evil.example.com");
    for (what, request, expected) in [
        ("GET of nothing", bare(Method::GET), (405, 0)),
        ("DELETE of nothing", bare(Method::DELETE), (405, 0)),
        ("PUT", own(Method::PUT), (405, 0)),
        ("HEAD", own(Method::HEAD), (405, 0)),
        ("GET of JSON", accept("application/json"), (406, 0)),
        ("GET from elsewhere", evil(Method::GET), (421, 0)),
        ("DELETE from elsewhere", evil(Method::DELETE), (421, 0)),
        ("GET from a page", origin(Method::GET), (403, 0)),
        ("DELETE from a page", origin(Method::DELETE), (403, 0)),
    ] {
        send(&service, request).await.check(what, expected).await;
    }
    let mut stream = send(&service, accept("text/event-stream;q=0.9, text/html")).await;
    assert_eq!((stream.status, &stream.headers["cache-control"]), (200, &"no-store".parse().unwrap()));
    let primed = stream.event().await.unwrap();
    assert_eq!((primed.id.as_deref(), primed.retry.as_deref()), (Some("0-0"), Some("1000")));
    assert_eq!(primed.data.as_deref(), Some(""));
    session.get(None).await.check("a second GET", (409, 0)).await;
    drop(stream);
    let mut stream = session.get(None).await;
    assert!(stream.event().await.is_some());
    session.delete().await.check("DELETE", (204, 0)).await;
    assert_eq!(stream.event().await, None);
    session.get(None).await.check("GET of what has ended", (404, 0)).await;
    session.delete().await.check("DELETE of what has ended", (404, 0)).await;
    // Before 2025-11-25, nothing primes a client: an event without data was none.
    let session = Session::open(&service, "2025-06-18").await;
    let stream = session.get(None).await;
    session.delete().await.check("DELETE", (204, 0)).await;
    assert_eq!(stream.rest().await, []);
}

#[tokio::test]
async fn what_needs_no_push_needs_no_session() {
    let service = service(|builder| builder);
    let version = |request, version: &str| with_header(request, "mcp-protocol-version", version);
    let list = || post(message(1, "tools/list", json!({})));
    let echo = || post(call(1, "echo", json!({"name": "x"})));
    for (what, request, expected) in [
        ("a list", list(), (200, 0)),
        ("a list of a version", version(list(), NEWEST), (200, 0)),
        ("a list of no version", version(list(), "x"), (400, -32602)),
        ("a list of two", version(version(list(), NEWEST), NEWEST), (400, -32020)),
        ("a list of today", version(list(), "2026-07-28"), (400, -32602)),
        ("a call", echo(), (200, 0)),
        ("a ping", post(message(1, "ping", json!({}))), (200, 0)),
        ("no method", post(message(1, "no/such", json!({}))), (200, -32601)),
        ("a response", post(json!({"jsonrpc": "2.0", "id": 1, "result": {}})), (400, -32600)),
        ("a notification", post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})), (202, 0)),
        ("no message", post("{"), (400, -32700)),
    ] {
        let came = send(&service, request).await;
        assert!(!came.headers.contains_key("mcp-session-id"), "{what}");
        came.check(what, expected).await;
    }
    // Nobody can be asked, and it says so.
    let came = send(&service, post(call(1, "ask", json!({"name": "x"})))).await;
    let reply = came.json().await;
    assert!(reply["error"]["message"].as_str().unwrap().contains("not supported"), "{reply}");
}

/// > MCP implementations [...] **MUST** support receiving JSON-RPC batches.
#[tokio::test]
async fn batches_are_of_one_version() {
    let service = service(|builder| builder);
    let ping = |id| message(id, "ping", json!({}));
    let pong = |id| json!({"jsonrpc": "2.0", "id": id, "result": {}});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    let answered = json!({"jsonrpc": "2.0", "id": 7, "result": {}});
    let many = Value::from(vec![told.clone(); 65]);
    let most = Value::from(vec![told.clone(); 64]);
    for version in ["2025-03-26", ""] {
        let session = Session::open(&service, "2025-03-26").await;
        for (what, batch, expected) in [
            ("requests", json!([ping(1), ping(2)]), Ok(json!([pong(1), pong(2)]))),
            ("one", json!([ping(1)]), Ok(json!([pong(1)]))),
            ("with others", json!([told, ping(3), answered, told]), Ok(json!([pong(3)]))),
            ("notifications", json!([told, told]), Err((202, 0))),
            ("responses", json!([answered, answered]), Err((202, 0))),
            ("as many as there may be", most.clone(), Err((202, 0))),
            ("nothing", json!([]), Err((400, -32600))),
            ("too many", many.clone(), Err((400, -32600))),
        ] {
            let came = match version {
                "" => send(&service, post(&batch)).await,
                _ => session.post(&batch).await,
            };
            match expected {
                Ok(replies) => assert_eq!(came.json().await, replies, "{what}"),
                Err(expected) => came.check(what, expected).await,
            }
        }
        let batch = json!([1, ping(1), initialize("2025-03-26"), call(2, "echo", json!({"name": "x"}))]);
        let came =
            if version.is_empty() { send(&service, post(&batch)).await } else { session.post(&batch).await };
        let replies = came.json().await;
        let codes: Vec<_> = (0..4).map(|index| replies[index]["error"]["code"].as_i64()).collect();
        assert_eq!(codes, [Some(-32600), None, Some(-32600), None], "{replies}");
        let why =
            if version.is_empty() { "`initialize` is sent alone" } else { "the session is open already" };
        assert!(replies[2]["error"]["message"].as_str().unwrap().starts_with(why), "{replies}");
        assert_eq!(text_of(&replies[3]), "x");
    }
    for version in ["2025-06-18", NEWEST] {
        let session = Session::open(&service, version).await;
        session.post(&json!([ping(1)])).await.check(version, (400, -32600)).await;
        let request = with_header(post(json!([ping(1)])), "mcp-protocol-version", version);
        send(&service, request).await.check(version, (400, -32600)).await;
    }
}

/// A batch whose requests send notifications gets a stream as its response.
#[tokio::test]
async fn a_batch_can_be_a_stream() {
    let (tool, reached) = steps();
    let service = service(|builder| builder.tool(tool));
    let session = Session::open(&service, "2025-03-26").await;
    reached.send_replace(9);
    let batch = json!([call(1, "steps", json!({"count": 1})), call(2, "steps", json!({"count": 1}))]);
    let events = session.post(&batch).await.rest().await;
    let tokens: Vec<_> =
        events[..2].iter().map(|(_, told)| told["params"]["progressToken"].clone()).collect();
    assert_eq!(tokens, ["token 1", "token 2"]);
    assert_eq!(events.len(), 3);
    assert_eq!((text_of(&events[2].1[0]), text_of(&events[2].1[1])), ("done".to_owned(), "done".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn json_or_a_stream() {
    let (tool, reached) = steps();
    let service = service(|builder| builder.tool(tool));
    for version in [NEWEST, "2025-06-18", "2025-03-26"] {
        let primes = version == NEWEST;
        let session = Session::open(&service, version).await;
        reached.send_replace(9);
        // Nothing is told before: JSON.
        let came = session.post(&call(1, "steps", json!({"count": 0}))).await;
        assert_eq!(text_of(&came.json().await), "done");
        // Something is: a stream, that ends with the response.
        let events = session.post(&call(2, "steps", json!({"count": 2}))).await.rest().await;
        let ids: Vec<&str> = events.iter().map(|(id, _)| id.as_str()).collect();
        let stream = ids[0].split('-').next().unwrap();
        let expected: Vec<String> =
            (if primes { 0 } else { 1 }..4).map(|number| format!("{stream}-{number}")).collect();
        assert_eq!(ids, expected);
        assert_eq!(text_of(&events.last().unwrap().1), "done");
        // Nothing for a second: a stream, so that the client has something to come back with.
        reached.send_replace(0);
        let mut came = session.post(&call(3, "steps", json!({"count": 0}))).await;
        if primes {
            let event = came.event().await.unwrap();
            assert_eq!((event.data.as_deref(), event.retry.as_deref()), (Some(""), Some("1000")));
        }
        // Then a comment now and then, as on any stream.
        assert_eq!(came.event().await.unwrap().data, None);
        reached.send_replace(9);
        assert_eq!(came.event().await.unwrap().result(), "done");
        assert_eq!(came.event().await, None);
    }
}

#[tokio::test]
async fn both_eras_are_served_at_once() {
    let (tool, mut gate) = gate();
    let service = service(|builder| builder.tool(tool));
    let session = Session::open(&service, NEWEST).await;
    let modern = |id, name: &str| {
        let message = request(id, "tools/call", json!({"name": "hold", "arguments": {"name": name}}));
        let (parts, _) = http_request(&message, None).into_parts();
        Request::from_parts(parts, Bytes::from(message.to_string()))
    };
    let names = ["modern one", "legacy one", "modern two", "legacy two"];
    let legacy = |id, name: &str| session.own(post(call(id, "hold", json!({"name": name}))));
    let requests = [modern(1, names[0]), legacy(1, names[1]), modern(2, names[2]), legacy(2, names[3])];
    let mut calls = Vec::new();
    for (request, name) in requests.into_iter().zip(names) {
        let service = service.clone();
        calls.push(tokio::spawn(async move { send(&service, request).await }));
        gate.started(name).await;
    }
    for name in names.iter().rev() {
        gate.open(name);
        gate.ended(name).await;
    }
    for (call, name) in calls.into_iter().zip(names) {
        let came = call.await.unwrap();
        assert_eq!(text_of(&came.json().await), name);
    }
}
