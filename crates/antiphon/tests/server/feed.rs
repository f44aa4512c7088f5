//! The feed of changes: what one instance reports reaches the subscribers of the others, once, or as one change too many.

use crate::common;
use crate::common::{
    lines::{Peer, serve},
    request,
    session::{everything, initialize, plain},
};
use antiphon::{
    seal::{KeyRing, SecretKey},
    server::{
        Ctx, NoArguments, Prompt, Resource, ResourceTemplate, Server, Tool,
        offers::{CallerInfo, ListKind},
    },
    store::{
        CallStore as _, MemoryStore, SqliteOptions, SqliteStore, StoreError, StoreErrorKind, StoreFuture,
        changes::{ChangeChannel, ChangeFeed, ChangeWatch},
    },
    wire::content::ResourceContents,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{sync::watch, time::timeout};

fn server(feed: &Arc<dyn ChangeFeed>) -> Server {
    let read = async |_: &Ctx| ResourceContents::text("secret://r", "");
    let hidden = |caller: &CallerInfo| caller.client().is_some_and(|client| client.name == "admin");
    let builder = Server::builder("feed", "1").list_changed(true).resource_updates(true);
    let builder = builder.resource(Resource::new("secret://r", "r", read).visible_if(hidden));
    builder.change_feed(Arc::clone(feed)).build().unwrap()
}

fn tool(name: &str) -> Tool {
    Tool::new(name, async |_: &Ctx, _: NoArguments| "")
}

fn all_lists(uris: &[&str]) -> Value {
    json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": uris})
}

/// Opens a subscription to all lists and these resources.
async fn subscribe(server: &Server, uris: &[&str]) -> Peer {
    let mut peer = serve(server.clone(), 1 << 16);
    let filter = json!({ "notifications": all_lists(uris) });
    peer.send(request(7, "subscriptions/listen", filter).to_string()).await;
    assert_eq!(notified(&mut peer).await, "subscriptions/acknowledged");
    peer
}

/// Returns the next notification: its method, and the URI if it has one.
async fn notified(peer: &mut Peer) -> String {
    let message = peer.receive().await.expect("a message");
    let method = message["method"].as_str().unwrap_or_else(|| panic!("{message}"));
    let method = method.trim_start_matches("notifications/").to_owned();
    message["params"]["uri"].as_str().map_or(method.clone(), |uri| format!("{method} {uri}"))
}

/// Checks the next notification, and that no other one came before or comes behind it: `mark` reports a change of the server itself.
async fn check_only(peer: &mut Peer, server: &Server, expected: &[&str], case: &str) {
    let mut heard = Vec::new();
    for _ in expected {
        heard.push(notified(peer).await);
    }
    heard.sort_unstable();
    assert_eq!(heard, expected, "{case}");
    // A look of every feed, and more.
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.resource_updated("mark://");
    assert_eq!(notified(peer).await, "resources/updated mark://", "{case}");
}

/// The memory of one process, and one file.
async fn feeds(
    folder: &common::folder::Folder,
) -> [(&'static str, Arc<dyn ChangeFeed>, Arc<dyn ChangeFeed>); 2] {
    let memory = MemoryStore::new();
    let open = || SqliteStore::open(folder.path("calls.db"), SqliteOptions::default());
    let (first, second) = (open().await.unwrap(), open().await.unwrap());
    [
        ("memory", memory.change_feed().unwrap(), memory.change_feed().unwrap()),
        ("sqlite", first.change_feed().unwrap(), second.change_feed().unwrap()),
    ]
}

type Report = fn(&Server);

#[tokio::test(start_paused = true)]
async fn each_kind_of_change_reaches_each_instance_once() {
    let folder = common::folder::Folder::new("feed-kinds");
    for (name, feed, other_feed) in feeds(&folder).await {
        let (here, there) = (server(&feed), server(&other_feed));
        let (mut own, mut other) =
            (subscribe(&here, &["a://1", "mark://"]).await, subscribe(&there, &["a://1", "mark://"]).await);
        let cases: [(&str, Report); 12] = [
            ("tools/list_changed", |server| server.add_tool(tool("late")).unwrap()),
            ("tools/list_changed", |server| assert!(server.remove_tool("late"))),
            ("prompts/list_changed", |server| {
                server.add_prompt(Prompt::new("p", async |_: &Ctx, _: NoArguments| String::new())).unwrap();
            }),
            ("prompts/list_changed", |server| assert!(server.remove_prompt("p"))),
            ("resources/list_changed", |server| {
                let read = async |_: &Ctx| ResourceContents::text("r://1", "");
                server.add_resource(Resource::new("r://1", "r", read)).unwrap();
            }),
            ("resources/list_changed", |server| assert!(server.remove_resource("r://1"))),
            ("resources/list_changed", |server| {
                let read = async |_: &Ctx, _: Value| ResourceContents::text("t://1", "");
                server.add_template(ResourceTemplate::new("t://{id}", "t", read)).unwrap();
            }),
            ("resources/list_changed", |server| assert!(server.remove_template("t://{id}"))),
            ("tools/list_changed", |server| server.list_changed(ListKind::Tools, |_| true)),
            ("resources/updated a://1", |server| server.resource_updated("a://1")),
            // Many at once are one.
            ("resources/updated a://1", |server| (0..100).for_each(|_| server.resource_updated("a://1"))),
            ("resources/updated a://1", |server| {
                server.resource_updated("unknown://");
                server.resource_updated("a://1");
            }),
        ];
        for (expected, report) in cases {
            report(&here);
            assert_eq!(notified(&mut own).await, expected, "{name}: the instance itself");
            assert_eq!(notified(&mut other).await, expected, "{name}: another instance");
            // An instance does not receive its own change twice.
            check_only(&mut own, &here, &[], name).await;
            // The mark of the first instance.
            check_only(&mut other, &there, &["resources/updated mark://"], name).await;
            assert_eq!(notified(&mut own).await, "resources/updated mark://", "{name}: the other mark");
        }
        // The rule of a list does not travel; who sees a resource is decided where the subscriber is.
        let (mut guest, mut quiet) =
            (subscribe(&there, &["secret://r"]).await, subscribe(&there, &["mark://"]).await);
        here.list_changed(ListKind::Prompts, |_| false);
        assert_eq!(notified(&mut guest).await, "prompts/list_changed");
        here.resource_updated("secret://r");
        check_only(&mut quiet, &there, &["prompts/list_changed"], name).await;
        here.list_changed(ListKind::Tools, |_| true);
        assert_eq!(
            notified(&mut guest).await,
            "tools/list_changed",
            "{name}: the secret one was not reported"
        );
    }
}

/// Sessions of the earlier revisions are subscribers too.
#[tokio::test(start_paused = true)]
async fn a_session_is_notified_of_changes_elsewhere() {
    let feed = MemoryStore::new().change_feed().unwrap();
    let (here, there) = (server(&feed), server(&feed));
    let mut peer = serve(there.clone(), 1 << 16);
    peer.send(plain(0, "initialize", initialize("2025-11-25", everything())).to_string()).await;
    peer.receive().await.unwrap();
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
    peer.send(plain(1, "resources/subscribe", json!({"uri": "a://1"})).to_string()).await;
    let mut first = peer.receive().await.unwrap();
    // The session begins to receive changes: they may have come before that.
    while first.get("method").is_some() {
        first = peer.receive().await.unwrap();
    }
    assert_eq!(first["id"], 1);
    here.resource_updated("a://1");
    while notified(&mut peer).await != "resources/updated a://1" {}
    here.add_tool(tool("late")).unwrap();
    while notified(&mut peer).await != "tools/list_changed" {}
}

/// Servers with other audiences are other servers, in the same store.
#[tokio::test(start_paused = true)]
async fn other_servers_in_the_store_are_not_concerned() {
    let feed = MemoryStore::new().change_feed().unwrap();
    let build = |audience: &str| {
        let builder = Server::builder("feed", "1").resource_updates(true).audience(audience);
        builder.change_feed(Arc::clone(&feed)).build().unwrap()
    };
    let (ours, theirs) = (build("ours"), build("theirs"));
    let mut peer = subscribe(&theirs, &["a://1", "mark://"]).await;
    ours.resource_updated("a://1");
    ours.changes_published().await;
    check_only(&mut peer, &theirs, &[], "another audience").await;
}

/// The store of calls brings the feed where others may have the keys.
#[tokio::test(start_paused = true)]
async fn the_store_brings_the_feed() {
    let ring = || KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap();
    let store = Arc::new(MemoryStore::new());
    for (has_keys, is_single, is_shared) in [(true, false, true), (true, true, false), (false, false, false)]
    {
        let build = || {
            let builder = Server::builder("feed", "1").resource_updates(true).store(Arc::clone(&store));
            let builder = if has_keys { builder.keys(ring()) } else { builder };
            builder.single_instance(is_single).build().unwrap()
        };
        let (here, there) = (build(), build());
        let mut peer = subscribe(&there, &["a://1", "mark://"]).await;
        here.resource_updated("a://1");
        here.changes_published().await;
        let expected: &[&str] = if is_shared { &["resources/updated a://1"] } else { &[] };
        check_only(&mut peer, &there, expected, &format!("{has_keys} {is_single}")).await;
    }
}

/// A feed that a test breaks.
#[derive(Debug)]
struct Breakable {
    inner: Arc<dyn ChangeFeed>,
    /// Refuses what is published.
    refuses: AtomicBool,
    /// Loses what is published.
    is_silent: AtomicBool,
    /// The number of the connection: a watch of an earlier one is broken.
    connection: watch::Sender<u32>,
}

impl Breakable {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::new().change_feed().unwrap(),
            refuses: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            connection: watch::Sender::new(0),
        })
    }

    fn failure(&self) -> StoreError {
        StoreError::read(StoreErrorKind::Unreachable, "feed", "broken by the test")
    }
}

impl ChangeFeed for Breakable {
    fn publish<'a>(&'a self, channel: ChangeChannel, message: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            match (self.refuses.load(SeqCst), self.is_silent.load(SeqCst)) {
                (true, _) => Err(self.failure()),
                (_, true) => Ok(()),
                _ => self.inner.publish(channel, message).await,
            }
        })
    }

    fn watch(&self, channel: ChangeChannel) -> StoreFuture<'_, Box<dyn ChangeWatch>> {
        Box::pin(async move {
            if self.refuses.load(SeqCst) {
                return Err(self.failure());
            }
            let (inner, broken) = (self.inner.watch(channel).await?, self.connection.subscribe());
            Ok(Box::new(BreakableWatch { inner, broken }) as Box<dyn ChangeWatch>)
        })
    }
}

struct BreakableWatch {
    inner: Box<dyn ChangeWatch>,
    broken: watch::Receiver<u32>,
}

impl ChangeWatch for BreakableWatch {
    fn next(&mut self) -> StoreFuture<'_, String> {
        Box::pin(async {
            tokio::select! {
                biased;
                _ = self.broken.changed() => Err(StoreError::read(StoreErrorKind::Unreachable, "watch", "broken by the test")),
                message = self.inner.next() => message,
            }
        })
    }
}

const EVERYTHING: [&str; 5] = [
    "prompts/list_changed",
    "resources/list_changed",
    "resources/updated a://1",
    "resources/updated b://2",
    "tools/list_changed",
];

/// Whatever is lost becomes a notification of everything.
#[tokio::test(start_paused = true)]
async fn a_lost_change_becomes_a_change_of_everything() {
    type Break = fn(&Breakable, bool);
    let cases: [(&str, Break); 3] = [
        ("the watch breaks, and what is published is lost", |feed, begins| {
            feed.is_silent.store(begins, SeqCst);
            feed.connection.send_modify(|connection| *connection += u32::from(begins));
        }),
        ("the connection is dead, without an error", |feed, begins| feed.is_silent.store(begins, SeqCst)),
        ("the store is away", |feed, begins| {
            feed.refuses.store(begins, SeqCst);
            feed.connection.send_modify(|connection| *connection += u32::from(begins));
        }),
    ];
    for (case, breaks) in cases {
        let feed = Breakable::new();
        let shared: Arc<dyn ChangeFeed> = feed.clone();
        let (here, there) = (server(&shared), server(&shared));
        let mut peer = subscribe(&there, &["a://1", "b://2", "mark://"]).await;
        breaks(&feed, true);
        here.resource_updated("a://1");
        tokio::time::sleep(Duration::from_secs(60)).await;
        breaks(&feed, false);
        let mut heard = Vec::new();
        for _ in 0..6 {
            heard.push(notified(&mut peer).await);
        }
        heard.sort_unstable();
        heard.retain(|method| !method.ends_with("mark://"));
        assert_eq!(heard, EVERYTHING, "{case}");
        // From now on, changes have names again. The one that waited may come last.
        tokio::time::sleep(Duration::from_secs(60)).await;
        here.resource_updated("b://2");
        while notified(&mut peer).await != "resources/updated b://2" {}
    }
}

/// A change that cannot be published waits; too many that wait are a change of everything.
#[tokio::test(start_paused = true)]
async fn changes_wait_for_the_store() {
    for (number, is_all) in [(1, false), (1000, false), (1100, true)] {
        let feed = Breakable::new();
        let shared: Arc<dyn ChangeFeed> = feed.clone();
        let (here, there) = (server(&shared), server(&shared));
        let mut peer = subscribe(&there, &["n://0", "other://"]).await;
        feed.refuses.store(true, SeqCst);
        (0..number).for_each(|number| here.resource_updated(&format!("n://{number}")));
        let early = timeout(Duration::from_secs(30), here.changes_published()).await;
        assert!(early.is_err(), "{number}: nothing can be published");
        feed.refuses.store(false, SeqCst);
        here.changes_published().await;
        let mut heard = Vec::new();
        for _ in 0..if is_all { 5 } else { 1 } {
            heard.push(notified(&mut peer).await);
        }
        assert!(heard.contains(&"resources/updated n://0".to_owned()), "{number}: {heard:?}");
        assert_eq!(heard.contains(&"resources/updated other://".to_owned()), is_all, "{number}: {heard:?}");
    }
}

/// A subscription opens also if the feed fails, or says nothing; it is notified of everything when changes are received.
#[tokio::test(start_paused = true)]
async fn a_subscription_opens_without_the_feed() {
    for is_silent in [true, false] {
        let feed = Breakable::new();
        let shared: Arc<dyn ChangeFeed> = feed.clone();
        feed.is_silent.store(is_silent, SeqCst);
        feed.refuses.store(!is_silent, SeqCst);
        let there = server(&shared);
        let mut peer = subscribe(&there, &["a://1", "b://2"]).await;
        there.resource_updated("a://1");
        assert_eq!(notified(&mut peer).await, "resources/updated a://1", "changes of the instance itself");
        feed.is_silent.store(false, SeqCst);
        feed.refuses.store(false, SeqCst);
        let mut heard = Vec::new();
        for _ in EVERYTHING {
            heard.push(notified(&mut peer).await);
        }
        heard.sort_unstable();
        assert_eq!(heard, EVERYTHING, "{is_silent}");
    }
}

/// A server that is gone leaves no task behind.
#[tokio::test(start_paused = true)]
async fn the_tasks_of_the_feed_end_with_the_server() {
    let feed = Breakable::new();
    let shared: Arc<dyn ChangeFeed> = feed.clone();
    let here = server(&shared);
    drop(subscribe(&here, &["a://1"]).await);
    feed.refuses.store(true, SeqCst);
    here.resource_updated("a://1");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(feed.connection.receiver_count(), 1);
    drop((here, shared));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(feed.connection.receiver_count(), 0, "the watch");
    assert_eq!(Arc::strong_count(&feed), 1, "the publisher and the reader");
}

/// A server may outlive the runtime that it was first used in: what waits is published in the next one, and changes are received there.
#[test]
fn a_runtime_that_ends_takes_no_change_with_it() {
    let memory = MemoryStore::new();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (here, there) = (server(&memory.change_feed().unwrap()), server(&memory.change_feed().unwrap()));
    runtime().block_on(async {
        drop(subscribe(&there, &[]).await);
        here.resource_updated("a://1");
    });
    runtime().block_on(async {
        let mut peer = subscribe(&there, &["a://1", "b://2"]).await;
        timeout(Duration::from_secs(60), here.changes_published()).await.unwrap();
        while notified(&mut peer).await != "resources/updated a://1" {}
        here.resource_updated("b://2");
        while notified(&mut peer).await != "resources/updated b://2" {}
    });
}
