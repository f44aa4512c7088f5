//! `subscriptions/listen`: what a subscription receives, over HTTP and stdio, from its acknowledgement to its end.

use crate::common;
use crate::common::{fixture, gate::soon, lines, request, socket};
use antiphon::{
    serve::http::HttpOptions,
    server::{Ctx, Limits, NoArguments, Prompt, Resource, Server, Tool},
    wire::content::ResourceContents,
};
use serde_json::{Value, json};

const ID: u32 = 7;

/// One open subscription, over either transport.
enum Listener {
    Http { client: socket::Client, _server: socket::Running },
    Stdio(lines::Peer),
}

impl Listener {
    async fn open(over: &str, server: &Server, filter: Value) -> Self {
        let message = listen(ID, filter);
        if over == "http" {
            let running = socket::serve_this(server.clone(), HttpOptions::default()).await;
            let mut client = socket::Client::new(&running).await;
            client.send(socket::text_of(&message)).await;
            let head = client.receive_head().await;
            assert!(head.starts_with("http/1.1 200 ok") && head.contains("text/event-stream"), "{head}");
            return Self::Http { client, _server: running };
        }
        let mut peer = lines::serve(server.clone(), 1 << 16);
        peer.send(message.to_string()).await;
        Self::Stdio(peer)
    }

    async fn receive(&mut self) -> Option<Value> {
        match self {
            Self::Http { client, .. } => client.receive_event().await,
            Self::Stdio(peer) => peer.receive().await,
        }
    }
}

fn listen(id: u32, filter: Value) -> Value {
    request(id, "subscriptions/listen", json!({ "notifications": filter }))
}

/// A notification of this subscription.
fn notification(method: &str, more: Value) -> Value {
    let params = common::with(&json!({"_meta": {"io.modelcontextprotocol/subscriptionId": ID}}), more);
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn acknowledged(filter: Value) -> Value {
    notification("notifications/subscriptions/acknowledged", json!({ "notifications": filter }))
}

fn updated(uri: &str) -> Value {
    notification("notifications/resources/updated", json!({ "uri": uri }))
}

fn changing() -> Server {
    fixture(|builder| builder.list_changed(true).resource_updates(true)).server
}

fn tool(name: &str) -> Tool {
    Tool::new(name, async |_: &Ctx, _: NoArguments| "")
}

const OVER: [&str; 2] = ["http", "stdio"];

#[tokio::test]
async fn the_acknowledgement_comes_first_and_says_what_is_honoured() {
    let all = json!({
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["ask://one", "b://2", "ask://one"]
    });
    let lists = json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
    let uris = json!({"resourceSubscriptions": ["ask://one", "b://2", "ask://one"]});
    let nothing = fixture(|builder| builder).server;
    let changing_lists = fixture(|builder| builder.list_changed(true)).server;
    let updates = fixture(|builder| builder.resource_updates(true)).server;
    for over in OVER {
        for (server, filter, honoured) in [
            (&changing(), &all, &all),
            (&changing(), &json!({"toolsListChanged": true}), &json!({"toolsListChanged": true})),
            (&changing(), &json!({"toolsListChanged": false}), &json!({})),
            (&changing(), &json!({"resourceSubscriptions": []}), &json!({"resourceSubscriptions": []})),
            (&changing(), &json!({"taskIds": ["a"], "promptsListChanged": null}), &json!({})),
            (&changing_lists, &all, &lists),
            (&updates, &all, &uris),
            (&nothing, &all, &json!({})),
        ] {
            let mut listener = Listener::open(over, server, filter.clone()).await;
            assert_eq!(listener.receive().await, Some(acknowledged(honoured.clone())), "{over} {filter}");
        }
    }
}

/// A subscription that can report nothing is no stream that stays open.
#[tokio::test]
async fn a_subscription_that_is_not_honoured_ends_behind_its_acknowledgement() {
    let plain = fixture(|builder| builder).server;
    let lists = fixture(|builder| builder.list_changed(true)).server;
    for over in OVER {
        let check = async |server: &Server, filter: Value| {
            let mut listener = Listener::open(over, server, filter.clone()).await;
            let first = listener.receive().await.unwrap();
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{over} {filter}");
            let last = soon(listener.receive()).await.unwrap();
            let members = (&last["id"], &last["result"]["resultType"]);
            assert_eq!(members, (&json!(ID), &json!("complete")), "{over} {filter}");
            if let Listener::Http { client, .. } = &mut listener {
                assert_eq!(client.receive_event().await, None, "{filter}");
            }
        };
        check(&plain, json!({"toolsListChanged": true})).await;
        check(&plain, json!({"resourceSubscriptions": ["ask://one"]})).await;
        check(&plain, json!({"taskIds": ["a"]})).await;
        check(&changing(), json!({})).await;
        check(&changing(), json!({"resourceSubscriptions": []})).await;
        check(&changing(), json!({"toolsListChanged": false, "promptsListChanged": null})).await;
        check(&lists, json!({"resourceSubscriptions": ["ask://one"]})).await;
    }
}

#[tokio::test]
async fn a_subscription_receives_its_filter_and_nothing_else() {
    for over in OVER {
        let server = changing();
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["ask://one"]});
        let mut listener = Listener::open(over, &server, filter.clone()).await;
        assert_eq!(listener.receive().await, Some(acknowledged(filter)));
        server.add_prompt(Prompt::new("p", async |_: &Ctx, _: NoArguments| String::new())).unwrap();
        let read = async |_: &Ctx| ResourceContents::text("r://1", "");
        server.add_resource(Resource::new("r://1", "r", read)).unwrap();
        server.resource_updated("ask://two");
        server.add_tool(tool("late")).unwrap();
        assert_eq!(
            listener.receive().await,
            Some(notification("notifications/tools/list_changed", json!({}))),
            "{over}"
        );
        server.resource_updated("ask://one");
        assert_eq!(listener.receive().await, Some(updated("ask://one")), "{over}");
        assert!(server.remove_tool("late"));
        assert_eq!(
            listener.receive().await,
            Some(notification("notifications/tools/list_changed", json!({}))),
            "{over}"
        );
        // What changed nothing is not told.
        assert!(!server.remove_tool("late"));
        server.resource_updated("ask://one");
        assert_eq!(listener.receive().await, Some(updated("ask://one")), "{over}");
    }
}

#[tokio::test]
async fn every_list_has_its_notification() {
    for over in OVER {
        let server = changing();
        let filter =
            json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true});
        let mut listener = Listener::open(over, &server, filter.clone()).await;
        listener.receive().await.unwrap();
        server.add_tool(tool("late")).unwrap();
        assert_eq!(listener.receive().await.unwrap()["method"], "notifications/tools/list_changed");
        assert!(server.remove_prompt("ask"));
        assert_eq!(listener.receive().await.unwrap()["method"], "notifications/prompts/list_changed");
        assert!(server.remove_resource("ask://one"));
        assert_eq!(listener.receive().await.unwrap()["method"], "notifications/resources/list_changed");
        assert!(server.remove_template("ask://many/{id}"));
        assert_eq!(listener.receive().await.unwrap()["method"], "notifications/resources/list_changed");
    }
}

#[tokio::test]
async fn the_server_ends_a_subscription_with_its_response() {
    for over in OVER {
        let server = changing();
        let mut listener = Listener::open(over, &server, json!({"toolsListChanged": true})).await;
        listener.receive().await.unwrap();
        // What is known by then is still told.
        server.add_tool(tool("late")).unwrap();
        server.drain();
        assert_eq!(listener.receive().await.unwrap()["method"], "notifications/tools/list_changed");
        let response = listener.receive().await.unwrap();
        assert_eq!(response["id"], ID, "{over}");
        assert_eq!(response["result"]["resultType"], "complete");
        let meta = &response["result"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], ID);
        assert_eq!(meta["io.modelcontextprotocol/serverInfo"]["name"], "fixture");
        match &mut listener {
            Listener::Http { client, .. } => assert_eq!(client.receive_event().await, None),
            // For clients that wait for the notification instead.
            Listener::Stdio(peer) => {
                let cancelled = peer.receive().await.unwrap();
                assert_eq!(
                    (&cancelled["method"], &cancelled["params"]["requestId"]),
                    (&json!("notifications/cancelled"), &json!(ID))
                );
            }
        }
        // A new one ends at once.
        let mut late = Listener::open(over, &server, json!({})).await;
        assert_eq!(late.receive().await, Some(acknowledged(json!({}))));
        assert_eq!(late.receive().await.unwrap()["id"], ID);
    }
}

#[tokio::test]
async fn a_shutdown_ends_subscriptions_and_does_not_wait_for_them() {
    let running = socket::serve_this(changing(), HttpOptions::default()).await;
    let mut client = socket::Client::new(&running).await;
    client.send(socket::text_of(&listen(ID, json!({"toolsListChanged": true})))).await;
    client.receive_head().await;
    client.receive_event().await.unwrap();
    running.shutdown.send(()).unwrap();
    assert_eq!(client.receive_event().await.unwrap()["id"], ID);
    assert_eq!(client.receive_event().await, None);
    soon(running.ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn subscriptions_of_one_channel_have_their_own_ids_and_are_cancelled_one_by_one() {
    let server = changing();
    let mut peer = lines::serve(server.clone(), 1 << 16);
    let id_of =
        |message: &Value| message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
    for id in [1, 2] {
        peer.send(listen(id, json!({"toolsListChanged": true})).to_string()).await;
        assert_eq!(id_of(&peer.receive().await.unwrap()), id);
    }
    server.add_tool(tool("late")).unwrap();
    let mut heard = [id_of(&peer.receive().await.unwrap()), id_of(&peer.receive().await.unwrap())];
    heard.sort_by_key(Value::as_u64);
    assert_eq!(heard, [1, 2]);
    peer.send(lines::cancelled(r#","params":{"requestId":1}"#)).await;
    // Answered behind the cancellation, so it has been read.
    peer.send(lines::discover(9)).await;
    assert_eq!(peer.receive().await.unwrap()["id"], 9);
    assert!(server.remove_tool("late"));
    assert_eq!(id_of(&peer.receive().await.unwrap()), 2);
    assert_eq!(peer.ends().await, Vec::<Value>::new());
}

/// A message that is refused, over both transports.
async fn check_refused(server: &Server, filter: Value, code: i64) {
    let message = listen(ID, filter);
    for over in [common::Over::Http, common::Over::Stdio] {
        let (status, reply) = common::send(over, server, &message, None).await;
        assert_eq!(reply["error"]["code"], code, "{reply}");
        let expected = if over == common::Over::Http && code == -32602 { 400 } else { 200 };
        assert_eq!(status, expected, "{reply}");
    }
}

#[tokio::test]
async fn what_a_subscription_may_ask_for_is_bounded() {
    let limits = Limits::default().subscription_uris(2).subscription_uri_bytes(10).subscriptions(1);
    let server = fixture(|builder| builder.resource_updates(true).limits(limits)).server;
    check_refused(&server, json!({"resourceSubscriptions": ["a", "b", "c"]}), -32602).await;
    check_refused(&server, json!({"resourceSubscriptions": ["0123456789", "1"]}), -32602).await;
    check_refused(&server, json!({"resourceSubscriptions": [1]}), -32602).await;
    check_refused(&server, json!([]), -32602).await;
    check_refused(&server, json!(null), -32602).await;
    let mut first = Listener::open("stdio", &server, json!({"resourceSubscriptions": ["a"]})).await;
    first.receive().await.unwrap();
    check_refused(&server, json!({"resourceSubscriptions": ["b"]}), -32603).await;
    drop(first);
    // Each URI takes 512 bytes beside its text.
    let limits = Limits::default().all_subscription_uri_bytes(2 * 512 + 10);
    let server = fixture(|builder| builder.resource_updates(true).limits(limits)).server;
    let mut first = Listener::open("stdio", &server, json!({"resourceSubscriptions": ["0123456"]})).await;
    first.receive().await.unwrap();
    check_refused(&server, json!({"resourceSubscriptions": ["7890"]}), -32603).await;
    let mut second = Listener::open("stdio", &server, json!({"resourceSubscriptions": ["789"]})).await;
    second.receive().await.unwrap();
}

#[tokio::test]
async fn a_change_that_happens_often_is_sent_once_to_a_slow_client() {
    let server = changing();
    // A pipe that holds hardly more than one message.
    let mut peer = lines::serve(server.clone(), 64);
    peer.send(listen(ID, json!({"resourceSubscriptions": ["a", "b"]})).to_string()).await;
    peer.receive().await.unwrap();
    for _ in 0..10_000 {
        server.resource_updated("a");
        server.resource_updated("b");
        tokio::task::yield_now().await;
    }
    server.drain();
    let mut heard = Vec::new();
    loop {
        let message = peer.receive().await.unwrap();
        if message["id"] == ID {
            break;
        }
        heard.push(message["params"]["uri"].as_str().unwrap().to_owned());
    }
    // What was being written when the client stopped, and one of each behind it.
    assert!((2..=6).contains(&heard.len()), "{heard:?}");
    heard.sort();
    heard.dedup();
    assert_eq!(heard, ["a", "b"]);
}
