//! Subscriptions over streams and over HTTP: what is sent, and how dropping, breaking and falling behind look there.

use crate::transport_support::{peer::*, soon};
use antiphon::{
    client::{
        Client, Mode, Subscription,
        events::{ReconnectPolicy, SubscriptionEvent as Event},
        transport::{Transport, TransportErrorKind},
    },
    wire::{ProtocolVersion, SubscriptionFilter},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

fn listen(transport: Arc<dyn Transport>) -> Subscription {
    let quick = ReconnectPolicy::default().min_interval(Duration::from_millis(1));
    let modern = Mode::Pinned(ProtocolVersion::V2026_07_28);
    let client = Client::builder("my-host", "1.0").mode(modern).connect(transport);
    client.listen(SubscriptionFilter::new().tools().resource("file:///a")).reconnect(quick)
}

/// A notification of the subscription `id`.
fn notification(id: &Value, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
    json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params}).to_string()
}

fn acknowledged(id: &Value) -> String {
    notification(id, "subscriptions/acknowledged", json!({"notifications": {"toolsListChanged": true}}))
}

fn ack() -> Event {
    Event::Acknowledged(SubscriptionFilter::new().tools())
}

/// Waits for the next event on the side, while the test plays the server.
async fn next(subscription: &mut Subscription) -> Option<Event> {
    soon(subscription.next()).await.map(|event| event.expect("an event"))
}

#[tokio::test]
async fn a_subscription_over_streams() {
    let (client, mut peer) = pair();
    let mut subscription = listen(client);
    let (event, id) = tokio::join!(next(&mut subscription), async {
        let request = peer.receive().await.unwrap();
        assert_eq!(request["method"], "subscriptions/listen");
        let id = request["id"].clone();
        // Another subscription's messages may come first.
        peer.send(notification(&json!(99), "tools/list_changed", json!({})) + "\n").await;
        peer.send(acknowledged(&id) + "\n").await;
        id
    });
    assert_eq!(event, Some(ack()));
    // While nobody waits, what is told waits as one each.
    for _ in 0..1000 {
        peer.send(notification(&id, "tools/list_changed", json!({})) + "\n").await;
        peer.send(notification(&id, "resources/updated", json!({"uri": "file:///a"})) + "\n").await;
    }
    peer.answers(&id, json!({"resultType": "complete"})).await;
    let mut events = Vec::new();
    while let Some(event) = next(&mut subscription).await.filter(|event| *event != Event::Closed) {
        events.push(event);
    }
    // Some may be taken while others still come.
    assert!(events.len() >= 2 && events.len() < 100, "{} events", events.len());
    assert_eq!(events[0], Event::ToolsListChanged);
    drop(subscription);
    assert_eq!(peer.receive().await, None, "an ended subscription is not cancelled");
}

#[tokio::test]
async fn dropping_a_subscription_over_streams_cancels_it() {
    let (client, mut peer) = pair();
    let mut subscription = listen(Arc::clone(&client) as Arc<dyn Transport>);
    let (event, id) = tokio::join!(next(&mut subscription), async {
        let id = peer.receive_id().await;
        peer.send(acknowledged(&id) + "\n").await;
        id
    });
    assert_eq!(event, Some(ack()));
    drop(subscription);
    let notice = peer.receive().await.unwrap();
    assert_eq!((&notice["method"], &notice["params"]["requestId"]), (&json!("notifications/cancelled"), &id));
    // What still comes for it harms nobody.
    peer.send(notification(&id, "tools/list_changed", json!({})) + "\n").await;
    let call = asking(&client, 1000, "tools/call");
    let id = peer.receive_id().await;
    peer.answers(&id, json!({"ok": true})).await;
    assert_eq!(call.await.unwrap().0, ok());
}

#[tokio::test]
async fn a_subscription_ends_with_its_streams() {
    let (client, mut peer) = pair();
    let mut subscription = listen(client);
    let (event, ()) = tokio::join!(next(&mut subscription), async {
        let id = peer.receive_id().await;
        peer.send(acknowledged(&id) + "\n").await;
    });
    assert_eq!(event, Some(ack()));
    drop(peer);
    let error = soon(subscription.next()).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("closed the connection"), "{error:?}");
    assert!(soon(subscription.next()).await.is_none());
}

#[tokio::test]
async fn a_subscription_that_falls_behind_is_cancelled_and_opened_again() {
    let (client, mut peer) = pair();
    let mut subscription = listen(client);
    let (event, id) = tokio::join!(next(&mut subscription), async {
        let id = peer.receive_id().await;
        peer.send(acknowledged(&id) + "\n").await;
        id
    });
    assert_eq!(event, Some(ack()));
    // More than may wait, and then the only news: it must not be what is dropped.
    let long = "x".repeat(1024 * 1024);
    for _ in 0..17 {
        peer.send(notification(&id, "tools/list_changed", json!({"x": long})) + "\n").await;
    }
    peer.send(notification(&id, "resources/updated", json!({"uri": "file:///a"})) + "\n").await;
    let notice = peer.receive().await.unwrap();
    assert_eq!((&notice["method"], &notice["params"]["requestId"]), (&json!("notifications/cancelled"), &id));
    assert_eq!(next(&mut subscription).await, Some(Event::ToolsListChanged));
    let (event, again) = tokio::join!(next(&mut subscription), async {
        let id = peer.receive_id().await;
        peer.send(acknowledged(&id) + "\n").await;
        id
    });
    assert_eq!(event, Some(ack()));
    assert_ne!(again, id);
}

#[cfg(feature = "http")]
mod http {
    use super::*;
    use crate::transport_support::server::{Server, events, expect_close, json_response, receive, response};
    use tokio::io::AsyncWriteExt;

    async fn asked(connection: &mut tokio::net::TcpStream) -> Value {
        let (head, body) = receive(connection).await;
        assert!(head.contains("mcp-method: subscriptions/listen") && !head.contains("mcp-name"), "{head}");
        serde_json::from_slice::<Value>(&body).unwrap()["id"].clone()
    }

    #[tokio::test]
    async fn a_stream_that_breaks_is_opened_again_and_closed_when_dropped() {
        let server = Server::new().await;
        let mut subscription = listen(server.client());
        // Refused for a while; broken after an acknowledgement and a change; then there.
        let (event, mut first) = tokio::join!(next(&mut subscription), async {
            let mut connection = server.accepts().await;
            asked(&mut connection).await;
            connection
                .write_all(response("503 Service Unavailable", "text/html", "").as_bytes())
                .await
                .unwrap();
            drop(connection);
            let mut connection = server.accepts().await;
            let id = asked(&mut connection).await;
            let change = notification(&id, "tools/list_changed", json!({}));
            let stream = events(&[&acknowledged(&id), &change, &change]);
            connection.write_all(stream.as_bytes()).await.unwrap();
            connection
        });
        assert_eq!(event, Some(ack()));
        assert_eq!(next(&mut subscription).await, Some(Event::ToolsListChanged));
        first.shutdown().await.unwrap();
        let (event, mut second) = tokio::join!(next(&mut subscription), async {
            let mut connection = server.accepts().await;
            let id = asked(&mut connection).await;
            connection.write_all(events(&[&acknowledged(&id)]).as_bytes()).await.unwrap();
            connection
        });
        assert_eq!(event, Some(ack()));
        // > Closing the SSE response stream is the cancellation signal.
        drop(subscription);
        expect_close(&mut second).await;
    }

    #[tokio::test]
    async fn a_refusal_ends_it() {
        let error = r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}"#;
        for (answer, kind) in [
            (response("401 Unauthorized", "text/plain", ""), Some(TransportErrorKind::HttpStatus(401))),
            (response("404 Not Found", "text/html", ""), Some(TransportErrorKind::HttpStatus(404))),
            (json_response("404 Not Found", error), None),
        ] {
            let server = Server::new().await;
            let mut subscription = listen(server.client());
            let (event, ()) = tokio::join!(soon(subscription.next()), async {
                let mut connection = server.accepts().await;
                asked(&mut connection).await;
                connection.write_all(answer.as_bytes()).await.unwrap();
            });
            let error = event.unwrap().unwrap_err();
            let found = error.transport_error().map(|error| error.kind());
            assert_eq!(found, kind, "{error:?}");
            assert!(subscription.next().await.is_none());
        }
    }
}
