//! Notifications of extensions, as messages: who receives them, and which are not accepted.

use crate::{
    common::{
        gate::soon,
        lines::serve,
        post::{correct, post, set},
        session::InSession,
    },
    requests::declaring,
    search::{QUERY, SEARCH, VIEWED, server},
};
use antiphon::{
    serve::http::{HttpOptions, HttpService},
    server::{
        Server,
        extensions::{Extension, ExtensionCtx},
    },
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::AsyncWriteExt as _;

fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn viewed(title: &str) -> Value {
    notification(VIEWED, json!({"title": title, "_meta": declaring(json!({SEARCH: {"most": 1}}))}))
}

#[tokio::test]
async fn a_notification_reaches_its_handler_over_http() {
    let (server, mut received) = server(|builder| builder);
    let service = HttpService::new(server, HttpOptions::default());
    let mut request = correct(&viewed("one"));
    set(&mut request, "x-user", &["ada"]);
    post(&service, request).await.check("a notification", (202, 0));
    let (title, seen) = received.next().await;
    assert_eq!(
        (title.as_str(), seen.subject.as_deref(), seen.settings),
        ("one", Some("ada"), Some(json!({"most": 1})))
    );
    assert_eq!((seen.method.as_str(), seen.has_headers), (VIEWED, true));
    // The error of a handler is for the log: the notification was accepted.
    post(&service, correct(&viewed("nothing"))).await.check("a handler that fails", (202, 0));
    let other_method = {
        let mut request = correct(&viewed("two"));
        set(&mut request, "mcp-method", &["tools/call"]);
        request
    };
    post(&service, other_method).await.check("another method in the header", (400, -32020));
    let without_metadata = correct(&notification(VIEWED, json!({"title": "two"})));
    post(&service, without_metadata).await.check("without the extension", (400, -32021));
    let malformed = notification(VIEWED, json!({"_meta": declaring(json!({SEARCH: {}}))}));
    let refused = post(&service, correct(&malformed)).await;
    refused.check("malformed params", (400, -32602));
    assert_eq!(
        (&refused.json()["error"]["message"], refused.json().get("id")),
        (&json!("params: missing field `title`"), None)
    );
    // Nobody handles these, which is no error.
    for method in ["notifications/unknown", QUERY, "notifications/initialized"] {
        let message = notification(method, json!({"_meta": declaring(json!({SEARCH: {}}))}));
        post(&service, correct(&message)).await.check(method, (202, 0));
    }
    assert!(received.is_empty());
}

#[tokio::test]
async fn a_notification_reaches_its_handler_on_pipes() {
    let (server, mut received) = server(|builder| builder);
    let mut peer = serve(server.clone(), 1 << 16);
    peer.send(viewed("one").to_string()).await;
    // None of these is accepted, and none has a reply.
    peer.send(notification(VIEWED, json!({"title": "two"})).to_string()).await;
    peer.send(notification(VIEWED, json!({"_meta": declaring(json!({SEARCH: {}}))})).to_string()).await;
    peer.send(viewed("nothing").to_string()).await;
    peer.send(viewed("three").to_string()).await;
    assert_eq!(soon(received.next()).await.0, "one");
    assert_eq!(soon(received.next()).await.0, "three");
    peer.writer.shutdown().await.unwrap();
    assert!(soon(peer.lines.next_line()).await.unwrap().is_none());

    // The last one is handled, although the input ends.
    let mut peer = serve(server, 1 << 16);
    peer.send(viewed("last").to_string()).await;
    peer.writer.shutdown().await.unwrap();
    soon(peer.serving).await.unwrap().unwrap();
    assert_eq!(soon(received.next()).await.0, "last");
}

#[tokio::test]
async fn a_notification_of_a_session_has_its_handshake() {
    let (server, mut received) = server(|builder| builder);
    let capabilities = json!({"extensions": {SEARCH: {"most": 7}}});
    let mut session = InSession::open(&server, "2025-11-25", capabilities.clone()).await;
    session.send(notification(VIEWED, json!({"title": "one"}))).await;
    let (title, seen) = soon(received.next()).await;
    assert_eq!(
        (title.as_str(), seen.version.as_str(), seen.settings),
        ("one", "2025-11-25", Some(json!({"most": 7})))
    );

    // The same over HTTP.
    let service = HttpService::new(server, HttpOptions::default());
    let legacy = |message: &Value| {
        let mut request = correct(message);
        set(&mut request, "mcp-protocol-version", &[]);
        set(&mut request, "mcp-method", &[]);
        request
    };
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": crate::common::session::initialize("2025-03-26", capabilities)});
    let opened = post(&service, legacy(&initialize)).await;
    let id = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let in_session = |message: &Value| {
        let mut request = legacy(message);
        set(&mut request, "mcp-session-id", &[&id]);
        request
    };
    let one = notification(VIEWED, json!({"title": "two"}));
    post(&service, in_session(&one)).await.check("in a session", (202, 0));
    assert_eq!(received.next().await.1.version, "2025-03-26");
    let malformed = in_session(&notification(VIEWED, json!({"title": 2})));
    post(&service, malformed).await.check("malformed, in a session", (400, -32602));
    post(&service, in_session(&json!([one, one]))).await.check("a batch", (202, 0));
    assert_eq!((received.next().await.0, received.next().await.0), ("two".to_owned(), "two".to_owned()));
    assert!(received.is_empty());
}

/// The response to a batch of 2025-03-26 waits for its requests. A notification that takes long is handled beside it.
#[tokio::test]
async fn a_batch_is_answered_while_its_notification_is_handled() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let (begun, mut handled) = tokio::sync::mpsc::unbounded_channel();
    let slow = {
        let gate = Arc::clone(&gate);
        Extension::new("com.example/slow").requires_client(false).notification(
            "notifications/com.example/slow.begun",
            move |_: ExtensionCtx, _: Value| {
                let (gate, begun) = (Arc::clone(&gate), begun.clone());
                async move {
                    begun.send("begun").map_err(|_| "gone")?;
                    gate.notified().await;
                    begun.send("ended").map_err(|_| "gone")
                }
            },
        )
    };
    let server = Server::builder("slow", "1").extension(slow).build().unwrap();
    let service = HttpService::new(server, HttpOptions::default());
    let legacy = |message: &Value, session: &[&str]| {
        let mut request = correct(message);
        set(&mut request, "mcp-protocol-version", &[]);
        set(&mut request, "mcp-method", &[]);
        set(&mut request, "mcp-session-id", session);
        request
    };
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": crate::common::session::initialize("2025-03-26", json!({}))});
    let opened = post(&service, legacy(&initialize, &[])).await;
    let id = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let batch = json!([
        notification("notifications/com.example/slow.begun", json!({})),
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    ]);
    let answered = soon(post(&service, legacy(&batch, &[&id]))).await;
    assert_eq!(answered.status, 200, "{:?}", answered.body);
    assert!(String::from_utf8_lossy(&answered.body).contains("\"id\":1"));
    assert_eq!(soon(handled.recv()).await, Some("begun"));
    gate.notify_one();
    assert_eq!(soon(handled.recv()).await, Some("ended"));
}
