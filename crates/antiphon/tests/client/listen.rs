//! Events of a subscription, with a scripted server.

use antiphon::{
    client::{
        Client, ClientError, ClientErrorKind, Subscription,
        calls::RequestFault,
        events::{ReconnectPolicy, SubscriptionEvent},
        transport::{
            IncomingNotification, OutgoingRequest, ServerReply, Transport, TransportError,
            TransportErrorKind as Kind,
        },
    },
    wire::{ErrorCode, ErrorObject, SubscriptionFilter},
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json, value::to_raw_value};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// Notifications of the server in one request, and the end of its response.
#[derive(Clone)]
struct Script(Vec<ScriptedMessage>, End);

#[derive(Clone)]
enum ScriptedMessage {
    Ack,
    AckNothing,
    Tools,
    Updated(&'static str),
    Cancelled,
    /// Nothing for so long.
    Silence(u64),
}

#[derive(Clone)]
enum End {
    Response(Value),
    Error(i64),
    /// The server says that it has the newest version, but not this one.
    OtherVersion,
    Broken(Kind),
    ForGood,
    Never,
}

struct Fake {
    scripts: Mutex<VecDeque<Script>>,
    requests: Mutex<Vec<(Value, Instant)>>,
    /// Number of other requests: lists and resources.
    others: AtomicUsize,
    /// Number of requests after the last script; the server has stopped.
    late: AtomicUsize,
}

impl Fake {
    fn new(scripts: Vec<Script>) -> Arc<Self> {
        Arc::new(Self {
            scripts: Mutex::new(scripts.into()),
            requests: Mutex::default(),
            others: AtomicUsize::new(0),
            late: AtomicUsize::new(0),
        })
    }

    fn client(self: &Arc<Self>) -> Client {
        Client::builder("my-host", "1.0").connect(Arc::clone(self) as Arc<dyn Transport>)
    }

    fn listen(self: &Arc<Self>) -> Subscription {
        listen(&self.client())
    }
}

fn listen(client: &Client) -> Subscription {
    let filter = SubscriptionFilter::new().tools().resource("file:///a");
    client.listen(filter).reconnect(ReconnectPolicy::default().attempts(2))
}

impl Transport for Fake {
    fn exchange<'a>(
        &'a self,
        request: OutgoingRequest,
        on_notification: &'a mut (dyn FnMut(IncomingNotification) + Send),
    ) -> BoxFuture<'a, Result<ServerReply, TransportError>> {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let kept = match &*request.method {
            "tools/list" => Some(json!({"resultType": "complete", "tools": [], "ttlMs": 1_000_000})),
            "resources/read" => Some(json!({"resultType": "complete", "contents": [], "ttlMs": 1_000_000})),
            _ => None,
        };
        if let Some(result) = kept {
            self.others.fetch_add(1, Ordering::SeqCst);
            return Box::pin(async move { Ok(Ok(to_raw_value(&result).unwrap())) });
        }
        assert_eq!((&*request.method, &request.name), ("subscriptions/listen", &None));
        assert_eq!(body["method"], "subscriptions/listen");
        assert_eq!(body["id"], serde_json::to_value(&request.id).unwrap());
        assert_eq!(
            body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
            request.version.as_str()
        );
        assert_eq!(
            body["params"]["notifications"],
            json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]})
        );
        let meta = json!({"io.modelcontextprotocol/subscriptionId": body["id"]});
        let id = body["id"].clone();
        let Some(Script(told, end)) = self.scripts.lock().unwrap().pop_front() else {
            self.late.fetch_add(1, Ordering::SeqCst);
            return Box::pin(async { Err(TransportError::new(Kind::Closed, "it has stopped").for_good()) });
        };
        self.requests.lock().unwrap().push((body, Instant::now()));
        Box::pin(async move {
            for told in told {
                let (method, params) = match told {
                    ScriptedMessage::Ack => (
                        "notifications/subscriptions/acknowledged",
                        json!({"notifications": {"toolsListChanged": true}, "_meta": meta}),
                    ),
                    ScriptedMessage::AckNothing => (
                        "notifications/subscriptions/acknowledged",
                        json!({"notifications": {"resourceSubscriptions": []}, "_meta": meta}),
                    ),
                    ScriptedMessage::Tools => ("notifications/tools/list_changed", json!({"_meta": meta})),
                    ScriptedMessage::Updated(uri) => {
                        ("notifications/resources/updated", json!({"uri": uri, "_meta": meta}))
                    }
                    ScriptedMessage::Cancelled => ("notifications/cancelled", json!({"requestId": id})),
                    ScriptedMessage::Silence(seconds) => {
                        tokio::time::sleep(Duration::from_secs(seconds)).await;
                        continue;
                    }
                };
                let params = Some(to_raw_value(&params).unwrap());
                on_notification(IncomingNotification::new(method, params));
            }
            match end {
                End::Response(result) => Ok(Ok(to_raw_value(&result).unwrap())),
                End::Error(code) => Ok(Err(ErrorObject::new(ErrorCode(code), "says the server"))),
                End::OtherVersion => Ok(Err(ErrorObject::unsupported_version(["2026-07-28"], "2026-07-28"))),
                End::Broken(kind) => Err(TransportError::new(kind, "it broke")),
                End::ForGood => Err(TransportError::new(Kind::Closed, "it broke").for_good()),
                End::Never => std::future::pending().await,
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn target(&self) -> &str {
        "fake:server"
    }
}

fn named(event: Result<SubscriptionEvent, ClientError>) -> String {
    match event {
        Ok(SubscriptionEvent::Acknowledged(filter)) => {
            assert_eq!(filter, SubscriptionFilter::new().tools());
            "acknowledged".into()
        }
        Ok(SubscriptionEvent::ToolsListChanged) => "tools".into(),
        Ok(SubscriptionEvent::Closed) => "closed".into(),
        Ok(SubscriptionEvent::ResourceUpdated { uri }) => uri,
        Ok(other) => panic!("nobody asked for {other:?}"),
        Err(error) => {
            assert!(error.to_string().starts_with("subscriptions/listen at fake:server: "), "{error}");
            match error.kind() {
                ClientErrorKind::Request(RequestFault::Server(error)) => format!("server {}", error.code),
                ClientErrorKind::Request(RequestFault::Transport(error)) => format!("{:?}", error.kind()),
                ClientErrorKind::Request(RequestFault::Timeout(limit)) => format!("timeout {limit:?}"),
                ClientErrorKind::Request(RequestFault::Version { .. }) => "version".into(),
                ClientErrorKind::Request(RequestFault::Result { .. }) => "result".into(),
                ClientErrorKind::Request(RequestFault::NothingAcknowledged) => {
                    assert!(error.is_nothing_acknowledged());
                    "nothing".into()
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Every event up to the end. Two attempts in a row are granted; every exchange of the script takes place.
async fn check(name: &str, scripts: &[Script], expected: &[&str]) {
    let fake = Fake::new(scripts.to_vec());
    let mut subscription = fake.listen();
    let mut events = Vec::new();
    while let Some(event) = subscription.next().await {
        events.push(named(event));
    }
    assert_eq!(events, expected, "{name}");
    assert!(subscription.next().await.is_none(), "{name}");
    let closed = usize::from(expected.last() == Some(&"closed"));
    assert_eq!(fake.late.load(Ordering::SeqCst), closed, "{name}");
    let requests = fake.requests.lock().unwrap();
    assert_eq!(requests.len(), scripts.len(), "{name}");
    let mut ids: Vec<_> = requests.iter().map(|(request, _)| request["id"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), scripts.len(), "{name}: an id was used twice");
}

fn ended() -> End {
    End::Response(json!({"resultType": "complete", "_meta": {"io.modelcontextprotocol/subscriptionId": 1}}))
}

fn broken(kind: Kind) -> Script {
    Script(vec![], End::Broken(kind))
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_the_server_ends() {
    use ScriptedMessage::*;
    for (name, told, end, expected) in [
        ("by its response", vec![Ack, Tools], ended(), &["acknowledged", "tools", "closed"][..]),
        (
            "after a long silence",
            vec![Ack, Silence(1_000_000), Tools],
            ended(),
            &["acknowledged", "tools", "closed"],
        ),
        ("at once", vec![], ended(), &[]),
        (
            "with an old server's empty result",
            vec![Ack],
            End::Response(json!({})),
            &["acknowledged", "closed"],
        ),
        ("by a notification", vec![Ack, Tools, Cancelled], End::Never, &["acknowledged", "tools"]),
        ("by both", vec![Ack, Cancelled], ended(), &["acknowledged", "closed"]),
        ("by nothing to report", vec![AckNothing], End::Never, &["nothing"]),
        ("by a notification, then by closing", vec![Ack, Cancelled], End::ForGood, &["acknowledged"]),
        (
            "by asking",
            vec![Ack],
            End::Response(json!({"resultType": "input_required"})),
            &["acknowledged", "result"],
        ),
        ("by no object", vec![Ack], End::Response(json!([])), &["acknowledged", "result"]),
        (
            "after changes that nobody took yet",
            vec![Ack, Tools, Updated("file:///a"), Tools, Updated("file:///b"), Updated("file:///a")],
            ended(),
            &["acknowledged", "tools", "file:///a", "closed"],
        ),
    ] {
        check(name, &[Script(told, end)], expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_retry_cures_ends_it_and_the_rest_is_tried_again() {
    use ScriptedMessage::*;
    for (end, text) in [
        (End::Error(-32601), "server -32601"),
        (End::Error(-32602), "server -32602"),
        (End::Error(-32022), "version"),
        (End::Error(-5), "server -5"),
        (End::ForGood, "Closed"),
        (End::Broken(Kind::HttpStatus(401)), "HttpStatus(401)"),
        (End::Broken(Kind::HttpStatus(404)), "HttpStatus(404)"),
        (End::Broken(Kind::Malformed), "Malformed"),
    ] {
        check(text, &[Script(vec![], end)], &[text]).await;
    }
    let good = || Script(vec![Ack, Tools], ended());
    for end in [
        End::Error(-32603),
        End::Broken(Kind::Closed),
        End::Broken(Kind::Unreachable),
        End::Broken(Kind::TooLarge),
        End::Broken(Kind::HttpStatus(503)),
        End::Never,
    ] {
        check("cured", &[Script(vec![], end.clone()), good()], &["acknowledged", "tools", "closed"]).await;
        let again = &["acknowledged", "acknowledged", "tools", "closed"];
        if !matches!(end, End::Never) {
            check("after an acknowledgement", &[Script(vec![Ack], end), good()], again).await;
        }
    }
    let other = Script(vec![], End::OtherVersion);
    check("another version", &[other.clone(), good()], &["acknowledged", "tools", "closed"]).await;
    check("another version, for ever", &[other.clone(), other], &["version"]).await;
    let torn = Script(vec![Ack], End::Broken(Kind::Malformed));
    let again = &["acknowledged", "acknowledged", "tools", "closed"];
    check("garbage after an acknowledgement", &[torn, good()], again).await;
    // Changes before an acknowledgement do not count, nor do those that name the last request.
    check("no acknowledgement", &[Script(vec![Tools], ended())], &[]).await;
    let three = [broken(Kind::Unreachable), broken(Kind::Closed), broken(Kind::HttpStatus(502))];
    check("too often in a row", &three, &["HttpStatus(502)"]).await;
    let timeouts = vec![Script(vec![Tools, Silence(61), Ack], End::Never); 3];
    check("never acknowledged", &timeouts, &["timeout 60s"]).await;
    let mut flaps = Vec::new();
    for _ in 0..5 {
        flaps.extend([broken(Kind::Closed), Script(vec![Ack], End::Broken(Kind::Closed))]);
    }
    flaps.push(good());
    let acknowledged = [&["acknowledged"; 6][..], &["tools", "closed"]].concat();
    check("never twice in a row", &flaps, &acknowledged).await;
}

/// A server that stops says so, and another instance takes its place.
#[tokio::test(start_paused = true)]
async fn a_subscription_that_was_closed_is_opened_again() {
    use ScriptedMessage::*;
    let drained = || Script(vec![Ack], ended());
    let both = &["acknowledged", "closed", "acknowledged", "tools", "closed"];
    check("by the next instance", &[drained(), Script(vec![Ack, Tools], ended())], both).await;
    let late = &[drained(), broken(Kind::Unreachable), Script(vec![Ack, Tools], ended())];
    check("by one that starts later", late, both).await;
    let never = [drained(), broken(Kind::Unreachable), broken(Kind::HttpStatus(502))];
    check("by none", &never, &["acknowledged", "closed", "HttpStatus(502)"]).await;
    let other = [drained(), broken(Kind::HttpStatus(401))];
    check("by one that refuses", &other, &["acknowledged", "closed", "HttpStatus(401)"]).await;
    let without = [drained(), Script(vec![AckNothing], End::Never)];
    check("by one that reports nothing", &without, &["acknowledged", "closed", "nothing"]).await;
    // A pause, also after a response, and none without reconnects.
    let fake = Fake::new(vec![drained(), drained()]);
    let mut subscription = fake.listen();
    while subscription.next().await.is_some() {}
    let times: Vec<_> = fake.requests.lock().unwrap().iter().map(|(_, at)| *at).collect();
    assert!(times[1] - times[0] >= Duration::from_millis(250), "{times:?}");
    let fake = Fake::new(vec![drained()]);
    let mut subscription = fake.listen().reconnect(ReconnectPolicy::never());
    assert_eq!(named(subscription.next().await.unwrap()), "acknowledged");
    assert!(subscription.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_reconnect_waits_and_can_be_left_out() {
    let fake = Fake::new(vec![broken(Kind::Closed), broken(Kind::Closed), broken(Kind::Closed)]);
    assert_eq!(named(fake.listen().next().await.unwrap()), "Closed");
    let times: Vec<_> = fake.requests.lock().unwrap().iter().map(|(_, at)| *at).collect();
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (wait, most) in waits.iter().zip([500, 1000]) {
        let most = Duration::from_millis(most);
        // The timer is as exact as a millisecond.
        assert!(*wait >= most / 2 && *wait <= most + Duration::from_millis(1), "{waits:?}");
    }
    let fake = Fake::new(vec![broken(Kind::Closed)]);
    let mut subscription = fake.listen().reconnect(ReconnectPolicy::never());
    assert_eq!(named(subscription.next().await.unwrap()), "Closed");
    assert!(subscription.next().await.is_none());
    // Nothing is sent before somebody waits, and the acknowledgement has its own timeout.
    let fake = Fake::new(vec![Script(vec![], End::Never)]);
    let mut subscription =
        fake.listen().acknowledge_timeout(Duration::from_secs(3)).reconnect(ReconnectPolicy::never());
    tokio::time::advance(Duration::from_secs(100)).await;
    assert_eq!(fake.requests.lock().unwrap().len(), 0);
    let before = Instant::now();
    assert_eq!(named(subscription.next().await.unwrap()), "timeout 3s");
    assert!(before.elapsed() < Duration::from_secs(4));
    assert!(format!("{subscription:?}").contains("fake:server"));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_dropped_loses_nothing() {
    use ScriptedMessage::*;
    let scripts = vec![
        Script(vec![Silence(5), Ack, Tools], End::Broken(Kind::Closed)),
        Script(vec![Silence(5), Ack], ended()),
    ];
    let fake = Fake::new(scripts);
    let mut subscription = fake.listen();
    let mut events = Vec::new();
    // Every wait is dropped after a tenth of a second, in the exchange as well as in the pause.
    loop {
        match tokio::time::timeout(Duration::from_millis(100), subscription.next()).await {
            Ok(Some(event)) => events.push(named(event)),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    assert_eq!(events, ["acknowledged", "tools", "acknowledged", "closed"]);
    assert_eq!(fake.requests.lock().unwrap().len(), 2);
}

/// > the notification **invalidates** the cached response and it should be considered immediately stale.
#[tokio::test(start_paused = true)]
async fn what_changed_is_not_taken_from_the_cache() {
    use ScriptedMessage::*;
    let fake = Fake::new(vec![
        Script(vec![Ack, Silence(1), Tools, Silence(1), Updated("file:///a/b")], End::Broken(Kind::Closed)),
        Script(vec![Ack], ended()),
    ]);
    let client = fake.client();
    let mut subscription = listen(&client);
    let asks = async || {
        let before = fake.others.load(Ordering::SeqCst);
        client.list_tools().await.unwrap();
        let tools = fake.others.load(Ordering::SeqCst);
        client.read_resource("file:///a/b").await.unwrap();
        let resource = fake.others.load(Ordering::SeqCst);
        client.read_resource("file:///c").await.unwrap();
        (tools - before, resource - tools, fake.others.load(Ordering::SeqCst) - resource)
    };
    assert_eq!(asks().await, (1, 1, 1));
    // What is asked for again after each event: the tools, the resource, another resource.
    for (event, again) in [
        ("acknowledged", (0, 0, 0)),
        ("tools", (1, 0, 0)),
        ("file:///a/b", (0, 1, 0)),
        // The connection was gone for a while: any of it may have changed.
        ("acknowledged", (1, 1, 1)),
    ] {
        assert_eq!(named(subscription.next().await.unwrap()), event);
        assert_eq!(asks().await, again, "{event}");
    }
    assert_eq!(named(subscription.next().await.unwrap()), "closed");
    assert!(subscription.next().await.is_none());
}
