//! Sessions of earlier revisions under access tokens: every POST, GET and DELETE brings one, of the user who opened it.
#![cfg(feature = "auth")]

use crate::auth_support::*;
use crate::common::{
    answers,
    post::{HttpReply, post, set},
};
use crate::scopes::{asking, guarded};
use antiphon::{
    serve::http::HttpService,
    server::{Ctx, NoArguments, Resource, Tool},
    wire::content::ResourceContents,
};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use std::{
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering},
    time::Duration,
};
use tower_service::Service as _;

const VERSION: &str = "2025-11-25";

fn message(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": params})
}

fn initialize() -> Value {
    let info = json!({"name": "c", "version": "1"});
    message("initialize", json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": info}))
}

/// A request as a client of an earlier revision sends it.
fn legacy(method: Method, body: Option<&Value>, session: Option<&str>) -> Request<Bytes> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut request = Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session).header("mcp-protocol-version", VERSION);
    }
    request.body(body.into()).unwrap()
}

async fn as_user(service: &HttpService, mut request: Request<Bytes>, token: Option<&str>) -> HttpReply {
    if let Some(token) = token {
        set(&mut request, "authorization", &[&format!("Bearer {token}")]);
    }
    post(service, request).await
}

async fn open(service: &HttpService, token: &str) -> String {
    let got = as_user(service, legacy(Method::POST, Some(&initialize()), None), Some(token)).await;
    got.headers["mcp-session-id"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_session_is_of_whose_token_opened_it() {
    let key = Key::new("one", "ES256");
    let (service, _) = behind(trusting(&[&key]).required_scopes(["mcp"]), |builder| builder);
    let of = |user: &str| key.sign(&claims(user, "mcp"));
    let forged = Key::new("one", "ES256").sign(&claims("alice@app", "mcp"));
    let mut expired = claims("alice@app", "mcp");
    expired["exp"] = json!(now() - 60);
    let mut renewed = claims("alice@app", "mcp more");
    renewed["jti"] = json!("2");
    let session = open(&service, &of("alice@app")).await;
    let ping = message("ping", json!({}));
    let call = message("tools/call", json!({"name": "echo", "arguments": {"name": "x"}}));
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let batch = json!([ping]);
    for (what, method, body, good) in [
        ("a request", Method::POST, Some(&ping), 200),
        ("a call", Method::POST, Some(&call), 200),
        ("an answer", Method::POST, Some(&answer), 202),
        ("a notification", Method::POST, Some(&told), 202),
        ("a batch, which this revision has not", Method::POST, Some(&batch), 400),
        ("GET", Method::GET, None, 0),
        // The last: it ends the session.
        ("DELETE", Method::DELETE, None, 204),
    ] {
        for (who, token, status) in [
            ("nobody", None, 401),
            ("a forger", Some(forged.clone()), 401),
            ("an expired alice", Some(key.sign(&expired)), 401),
            ("alice with too few scopes", Some(key.sign(&claims("alice@app", ""))), 403),
            ("bob", Some(of("bob@other")), 404),
            ("another user of the same client", Some(of("mallory@app")), 404),
            ("alice by another client", Some(of("alice@other")), 404),
            ("alice, with another token", Some(key.sign(&renewed)), good),
        ] {
            // Her stream would stay open.
            if status == 0 {
                continue;
            }
            let request = legacy(method.clone(), body, Some(&session));
            let got = as_user(&service, request, token.as_deref()).await;
            assert_eq!(got.status, status, "{what} by {who}: {:?}", got.body);
            assert_eq!(challenge(&got).is_some(), matches!(status, 401 | 403), "{what} by {who}");
        }
    }
    // Neither a session nor an answer without one begins without a token.
    for body in [&initialize(), &message("tools/list", json!({})), &batch] {
        let got = as_user(&service, legacy(Method::POST, Some(body), None), None).await;
        assert_eq!((got.status, challenge(&got).is_some()), (401, true), "{body}");
    }
}

#[tokio::test]
async fn scopes_are_checked_in_sessions_and_without_one() {
    let key = Key::new("one", "ES256");
    let guarded = Tool::new("guarded", async |_: &Ctx, _: NoArguments| "done").scopes(["write"]);
    let resource = Resource::new("guarded://one", "one", async |_: &Ctx| {
        ResourceContents::text("guarded://one", "text")
    })
    .scopes(["write"]);
    let auth = trusting(&[&key]).required_scopes(["mcp"]);
    let (service, _) =
        behind(auth, |builder| builder.tool(guarded).resource(resource).resource_updates(true));
    let token = |scopes: &str| key.sign(&claims("alice@app", scopes));
    let session = open(&service, &token("mcp")).await;
    let expected = expected_challenge("error=\"insufficient_scope\", scope=\"mcp write\"");
    for (body, needs_session) in [
        (message("tools/call", json!({"name": "guarded"})), false),
        (message("resources/read", json!({"uri": "guarded://one"})), false),
        (message("resources/subscribe", json!({"uri": "guarded://one"})), true),
    ] {
        for session in [Some(&*session), None] {
            if needs_session && session.is_none() {
                continue;
            }
            let request = || legacy(Method::POST, Some(&body), session);
            let got = as_user(&service, request(), Some(&token("mcp"))).await;
            got.check(&body.to_string(), (403, -32600));
            assert_eq!(challenge(&got), Some(&*expected), "{body}");
            let got = as_user(&service, request(), Some(&token("mcp write"))).await;
            got.check(&body.to_string(), (200, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_session_ends_with_its_token() {
    let key = Key::new("one", "ES256");
    let (service, _) = behind(trusting(&[&key]), |builder| builder);
    let token = key.sign(&claims("alice@app", ""));
    let session = open(&service, &token).await;
    let began = tokio::time::Instant::now();
    let got = as_user(&service, legacy(Method::GET, None, Some(&session)), Some(&token)).await;
    // Five minutes, and a minute for clocks that differ.
    assert_eq!((got.status, began.elapsed().as_secs()), (200, 360));
    // Another token takes it up again.
    let ping = legacy(Method::POST, Some(&message("ping", json!({}))), Some(&session));
    assert_eq!(as_user(&service, ping, Some(&token)).await.status, 200);
}

/// A caller who knows the id of a session, but did not open it, does not keep it open.
#[tokio::test(start_paused = true)]
async fn a_stranger_keeps_no_session_alive() {
    let key = Key::new("one", "ES256");
    let (service, _) = behind(trusting(&[&key]), |builder| builder);
    let of = |user: &str| key.sign(&claims(user, ""));
    let ping = message("ping", json!({}));
    let ask = async |session: &str, user: &str| {
        let request = legacy(Method::POST, Some(&ping), Some(session));
        as_user(&service, request, Some(&of(user))).await.status
    };
    for (what, opens_with_a_ping, each, kept) in
        [("one that was used", true, 16 * 60, 30 * 60), ("one that was not", false, 40, 60)]
    {
        let session = open(&service, &of("alice@app")).await;
        if opens_with_a_ping {
            assert_eq!(ask(&session, "alice@app").await, 200, "{what}");
        }
        tokio::time::advance(Duration::from_secs(each)).await;
        assert_eq!(ask(&session, "bob@app").await, 404, "{what}");
        assert!(2 * each > kept, "{what}");
        tokio::time::advance(Duration::from_secs(each)).await;
        assert_eq!(ask(&session, "alice@app").await, 404, "{what}: it is still open");
    }
}

/// Updates of a resource need the scopes of reading it, with any token, also if an earlier token subscribed.
#[tokio::test(start_paused = true)]
async fn a_stream_needs_the_scopes_of_its_messages() {
    let key = Key::new("one", "ES256");
    let resource = |uri: &'static str| {
        Resource::new(uri, uri, async |_: &Ctx| ResourceContents::text("one://one", "text"))
    };
    let auth = trusting(&[&key]).required_scopes(["mcp"]);
    let (service, _) = behind(auth, |builder| {
        let guarded = resource("guarded://one").scopes(["write"]);
        builder.resource(guarded).resource(resource("open://one")).resource_updates(true)
    });
    let token = |scopes: &str| key.sign(&claims("alice@app", scopes));
    let session = open(&service, &token("mcp")).await;
    let named = async |method: &str, uri: &str, scopes: &str| {
        let body = message(method, json!({"uri": uri}));
        let request = legacy(Method::POST, Some(&body), Some(&session));
        as_user(&service, request, Some(&token(scopes))).await.check(method, (200, 0));
    };
    let listen = async |last: Option<&'static str>, scopes: &str| {
        let mut request = legacy(Method::GET, None, Some(&session));
        set(&mut request, "last-event-id", last.as_slice());
        as_user(&service, request, Some(&token(scopes))).await
    };
    named("resources/subscribe", "open://one", "mcp").await;
    assert_eq!(listen(None, "mcp").await.status, 200);
    named("resources/subscribe", "guarded://one", "mcp write").await;
    // The token that is used now is another.
    let expected = expected_challenge("error=\"insufficient_scope\", scope=\"mcp write\"");
    for last in [None, Some("0-0")] {
        let got = listen(last, "mcp").await;
        assert_eq!((got.status, challenge(&got)), (403, Some(&*expected)), "{last:?}: {:?}", got.body);
        assert_eq!(listen(last, "mcp write").await.status, 200, "{last:?}");
    }
    named("resources/unsubscribe", "guarded://one", "mcp").await;
    assert_eq!(listen(None, "mcp").await.status, 200);
}

/// An answer in a session continues its call, as a leg does: it needs the scopes of the call.
#[tokio::test]
async fn an_answer_needs_the_scopes_of_its_call() {
    let key = Key::new("one", "ES256");
    let token = |scopes: &str| key.sign(&claims("alice@app", scopes));
    let expected = expected_challenge("error=\"insufficient_scope\", scope=\"mcp write orders\"");
    for (method, params) in guarded() {
        let runs = Arc::<AtomicUsize>::default();
        let (service, _) = behind(trusting(&[&key]).required_scopes(["mcp"]), asking(&runs));
        let mut opening = initialize();
        opening["params"]["capabilities"] = json!({"elicitation": {}});
        let got = as_user(&service, legacy(Method::POST, Some(&opening), None), Some(&token("mcp"))).await;
        let session = got.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let mut call = legacy(Method::POST, Some(&message(method, params.clone())), Some(&session));
        set(&mut call, "authorization", &[&format!("Bearer {}", token("mcp write orders"))]);
        let mut stream = service.clone().call(call.map(Full::new)).await.unwrap().into_body();
        let mut heard = String::new();
        while !heard.contains("elicitation/create") {
            let frame = stream.frame().await.unwrap().unwrap();
            heard += std::str::from_utf8(frame.data_ref().unwrap()).unwrap();
        }
        let asked = heard.lines().filter_map(|line| line.strip_prefix("data: {")).next_back().unwrap();
        let asked: Value = serde_json::from_str(&format!("{{{asked}")).unwrap();
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answers()["region"]});
        for (scopes, status) in [("mcp", 403), ("mcp write", 403), ("mcp write orders", 202)] {
            let request = legacy(Method::POST, Some(&answer), Some(&session));
            let got = as_user(&service, request, Some(&token(scopes))).await;
            assert_eq!(got.status, status, "{method}, {scopes}: {:?}", got.body);
            assert_eq!(challenge(&got), (status == 403).then_some(&*expected), "{method}, {scopes}");
        }
        let rest = stream.collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&rest).contains("\"result\""), "{method}: {rest:?}");
        assert_eq!(runs.load(Ordering::SeqCst), 2, "{method}");
    }
}
