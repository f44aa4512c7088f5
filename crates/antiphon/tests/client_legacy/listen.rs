//! Subscriptions on a session.

use crate::scripted_server::{
    Peer, ReceivedRequest, ScriptedHttpServer, ScriptedReply, builder, error, hello, notification, result,
    soon,
};
use antiphon::{
    client::{
        Mode,
        events::{ReconnectPolicy, SubscriptionEvent as Event},
    },
    wire::SubscriptionFilter,
};
use serde_json::{Value, json};
use std::sync::Mutex;

#[tokio::test(start_paused = true)]
async fn the_notifications_of_a_session() {
    let (client, mut peer) = Peer::of(builder().mode(Mode::Legacy));
    let filter = SubscriptionFilter::new().tools().prompts().resource("a:1").resource("a:2");
    let mut subscription = client.listen(filter).reconnect(ReconnectPolicy::never());
    let (first, ()) = tokio::join!(subscription.next(), async {
        peer.initializes("2025-11-25").await;
        let one = peer.receive_of("resources/subscribe").await;
        assert_eq!(one["params"], json!({"uri": "a:1"}));
        peer.send(result(&one["id"], json!({}))).await;
        let two = peer.receive_of("resources/subscribe").await;
        peer.send(error(&two["id"], -32002, Value::Null)).await;
    });
    // Prompts do not change there, and one resource is unknown.
    let granted = SubscriptionFilter::new().tools().resource("a:1");
    assert_eq!(first.unwrap().unwrap(), Event::Acknowledged(granted));
    for (told, event) in [
        (notification("tools/list_changed", json!({})), Some(Event::ToolsListChanged)),
        (notification("resources/list_changed", json!({})), None),
        (
            notification("resources/updated", json!({"uri": "a:1"})),
            Some(Event::ResourceUpdated { uri: "a:1".into() }),
        ),
    ] {
        peer.send(told).await;
        if let Some(event) = event {
            assert_eq!(subscription.next().await.unwrap().unwrap(), event);
        }
    }
    // A second one to the same resource subscribes no second time, and the first may go.
    let mut second = client.listen(SubscriptionFilter::new().resource("a:1"));
    assert!(matches!(second.next().await, Some(Ok(Event::Acknowledged(_)))));
    drop(subscription);
    peer.send(notification("resources/updated", json!({"uri": "a:1"}))).await;
    assert!(matches!(second.next().await, Some(Ok(Event::ResourceUpdated { .. }))));
    drop(second);
    let last = peer.receive_of("resources/unsubscribe").await;
    assert_eq!(last["params"], json!({"uri": "a:1"}));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_its_session() {
    let (client, mut peer) = Peer::of(builder());
    let mut subscription = client.listen(SubscriptionFilter::new().tools());
    let (first, _) = tokio::join!(subscription.next(), peer.handshake("2025-06-18"));
    assert!(matches!(first, Some(Ok(Event::Acknowledged(_)))));
    drop(peer);
    assert!(subscription.next().await.unwrap().is_err());
    assert!(subscription.next().await.is_none());
}

/// > When a client receives HTTP 404 in response to a request containing an `MCP-Session-Id`, it **MUST** start a new
/// > session
///
/// A client that only listens learns it from its GET, and would hear nothing for ever.
#[tokio::test]
async fn a_subscription_goes_on_in_another_session_when_the_first_is_forgotten() {
    let streams = Mutex::new(Vec::new());
    let played = ScriptedHttpServer::new(move |heard: &ReceivedRequest| {
        let mut streams = streams.lock().unwrap();
        match (heard.verb.as_str(), heard.method(), heard.header("mcp-session-id")) {
            ("POST", "initialize", _) => {
                let id = if streams.is_empty() { "s-1" } else { "s-2" };
                ScriptedReply::json(200, result(&heard.body["id"], hello("2025-11-25")))
                    .with("mcp-session-id", id)
            }
            ("POST", _, _) => ScriptedReply::empty(202),
            // The stream of the first session ends with something that is no message; the server is slow to see it, and
            // then forgets the session.
            ("GET", _, Some("s-1")) if streams.len() < 2 => {
                streams.push(None);
                if streams.len() == 1 {
                    ScriptedReply::events("id: 1\nretry: 10\ndata: nonsense\n\n")
                } else {
                    ScriptedReply::empty(409)
                }
            }
            ("GET", _, Some("s-2")) => {
                let (sender, said) = ScriptedReply::open("");
                streams.push(Some(sender));
                said
            }
            _ => ScriptedReply::empty(404),
        }
    })
    .await;
    let client = played.client(builder().mode(Mode::Legacy));
    let mut subscription = client.listen(SubscriptionFilter::new().tools());
    let acknowledged = Event::Acknowledged(SubscriptionFilter::new().tools());
    assert_eq!(soon(subscription.next()).await.unwrap().unwrap(), acknowledged);
    while soon(subscription.next()).await.expect("it goes on").expect("no error") != acknowledged {}
    let begun = played.short().iter().filter(|what| *what == "POST initialize").count();
    assert_eq!(begun, 2);
}
