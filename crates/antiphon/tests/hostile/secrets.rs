//! Secrets that the server never logs, and the warnings that it logs about keys and shown errors.

use crate::common::{log::take_log, post, *};
use antiphon::{
    seal::{KeyRing, Principal},
    serve::http::{
        HttpOptions, HttpService,
        auth::{ResourceServer, StaticTokens},
    },
    server::{Bearer, Server},
};
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

const TOKEN: &str = "token-5b1f";
const FORGED: &str = "forged-e07d";
const VERSION: &str = "2025-11-25";

/// A request of an earlier revision, with a session and an access token.
fn legacy(method: &str, body: &Value, session: Option<&str>, token: &str) -> Request<Bytes> {
    let mut request = Request::builder().method(method).uri("/mcp").header("host", "localhost");
    for (name, value) in [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", &format!("Bearer {token}")),
    ] {
        request = request.header(name, value);
    }
    if let Some(session) = session {
        request = request.header("mcp-session-id", session).header("mcp-protocol-version", VERSION);
    }
    request.body(body.to_string().into()).unwrap()
}

fn initialize() -> Value {
    let params = json!({
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}
    });
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// A service that knows one access token.
fn guarded() -> HttpService {
    let tokens = StaticTokens::new().token(TOKEN, Bearer::new(Principal::user("alice")));
    let auth = ResourceServer::builder("https://api.example.com/mcp").verifier(tokens).build().unwrap();
    HttpService::new(fixture(|builder| builder).server, HttpOptions::default().authorize(auth))
}

async fn open(service: &HttpService) -> String {
    let got = post::post(service, legacy("POST", &initialize(), None, TOKEN)).await;
    got.headers["mcp-session-id"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_log_holds_no_session_id_and_no_access_token() {
    take_log();
    let service = guarded();
    let id = open(&service).await;
    let altered = id.to_uppercase();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let call = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"name": "x"}}
    });
    for (what, request, status) in [
        ("a ping", legacy("POST", &ping, Some(&id), TOKEN), 200),
        ("a call", legacy("POST", &call, Some(&id), TOKEN), 200),
        (
            "no such method",
            legacy("POST", &json!({"jsonrpc": "2.0", "id": 3, "method": "x"}), Some(&id), TOKEN),
            200,
        ),
        ("no message", legacy("POST", &json!("x"), Some(&id), TOKEN), 400),
        ("another session", legacy("POST", &ping, Some(&altered), TOKEN), 404),
        ("a forged token", legacy("POST", &ping, Some(&id), FORGED), 401),
        ("two tokens", legacy("POST", &ping, Some(&id), &format!("{TOKEN} {FORGED}")), 400),
        ("the end", legacy("DELETE", &Value::Null, Some(&id), TOKEN), 204),
        ("after the end", legacy("POST", &ping, Some(&id), TOKEN), 404),
    ] {
        assert_eq!(post::post(&service, request).await.status, status, "{what}");
    }
    drop(service);
    let log = take_log();
    assert!(log.contains("legacy") || log.contains("session"), "the sessions are in the log at all: {log}");
    for secret in [&*id, &*altered, TOKEN, FORGED] {
        assert!(!log.contains(secret), "{secret} is in {log}");
    }
}

/// 256 bits are 43 characters of base64url.
#[tokio::test]
async fn a_session_id_has_256_random_bits() {
    let service = guarded();
    let ids = [open(&service).await, open(&service).await, open(&service).await];
    for (at, id) in ids.iter().enumerate() {
        assert_eq!(id.len(), 43, "{id}");
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{id}");
        for other in &ids[..at] {
            // Random texts of this length agree in some characters, but not in half of them.
            let same = id.bytes().zip(other.bytes()).filter(|(one, other)| one == other).count();
            assert!(same < 20, "{id} and {other}");
        }
    }
}

#[tokio::test]
async fn a_random_key_is_logged_over_http_and_a_ring_is_not() {
    let random = || Server::builder("random", "1").keys(KeyRing::random().unwrap()).build().unwrap();
    for (server, logged) in [(random(), true), (fixture(|builder| builder).server, false)] {
        take_log();
        drop(HttpService::new(server, HttpOptions::default()));
        let log = take_log();
        assert_eq!(log.contains("state is sealed with a random key"), logged, "{log}");
    }
}

#[tokio::test]
async fn an_unknown_key_is_logged_once() {
    let (ours, theirs) = (fixture(|builder| builder), fixture(|builder| builder.keys(ring(8))));
    let params = json!({"name": "ask", "arguments": {"name": "orders"}});
    let (_, first) = send(Over::Stdio, &theirs.server, &request(1, "tools/call", params.clone()), None).await;
    let retry = with(&params, json!({"requestState": state_of(&first), "inputResponses": answers()}));
    take_log();
    for _ in 0..3 {
        let (_, reply) =
            send(Over::Stdio, &ours.server, &request(2, "tools/call", retry.clone()), None).await;
        assert_eq!(reply["error"]["data"]["reason"], "invalid_request_state");
    }
    let log = take_log();
    assert_eq!(log.matches("a shared key ring is probably missing").count(), 1, "{log}");
    assert_eq!(log.matches("unknown_key").count(), 3, "each refusal has its reason: {log}");
}

#[test]
fn shown_errors_are_warned_of() {
    for shows in [true, false] {
        take_log();
        fixture(|builder| builder.show_errors(shows));
        let log = take_log();
        assert_eq!(log.contains("use `show_errors` for development only"), shows, "{log}");
    }
}
