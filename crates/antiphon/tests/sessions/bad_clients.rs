//! Bad clients in sessions, on pipes and on real sockets: stuck, slow, lying, vanishing. Nothing of them stays behind.

use crate::common::{
    fixture,
    gate::{Gate, HoldMode, LONGEST, gate, soon},
    leak_check::LeakCheck,
    lines::serve,
    session::{everything, initialize, plain},
    socket::{Client, Running, post, serve_held},
    with,
};
use antiphon::{
    serve::http::HttpOptions,
    server::{Limits, Server},
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;

/// The time of a handler, of a question, and of an idle session.
const SHORT: Duration = Duration::from_millis(500);

fn server() -> (Server, Gate) {
    let (hold, gate) = gate();
    let limits = Limits::default().handler_timeout(SHORT);
    let server = fixture(|builder| {
        builder
            .tool(hold)
            .list_changed(true)
            .resource_updates(true)
            .logging(true)
            .limits(limits)
            .answer_timeout(SHORT)
    });
    (server.server, gate)
}

fn hold(id: u32, how: HoldMode) -> Value {
    let arguments = json!({"name": format!("{id}"), "how": how});
    plain(id, "tools/call", json!({"name": "hold", "arguments": arguments, "_meta": {"progressToken": id}}))
}

fn ask(id: u32) -> Value {
    plain(id, "tools/call", json!({"name": "ask", "arguments": {"name": "x"}}))
}

fn cancel(id: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

fn answer(id: u32, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Messages of a client in its session before it leaves.
fn phases() -> Vec<(&'static str, Vec<Value>)> {
    let accept = |content: Value| json!({"action": "accept", "content": content});
    let subscribe = plain(1, "resources/subscribe", json!({"uri": "ask://one"}));
    vec![
        ("nothing", vec![]),
        ("a call that waits", vec![hold(1, HoldMode::Waits)]),
        ("a call that tells", vec![hold(1, HoldMode::Reports)]),
        ("a call that floods", vec![hold(1, HoldMode::Floods)]),
        ("as many calls as it may, and more", (1..=100).map(|id| hold(id, HoldMode::Waits)).collect()),
        ("a call that asks", vec![ask(1)]),
        ("calls that ask", (1..=50).map(ask).collect()),
        ("an answer that does not fit", vec![ask(1), answer(1, accept(json!({"region": 7})))]),
        ("an answer of another kind", vec![ask(1), answer(1, json!({"roots": []}))]),
        (
            "an error for an answer",
            vec![ask(1), json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}})],
        ),
        ("answers to nothing", (1..=200).map(|id| answer(id, accept(json!({})))).collect()),
        ("a call, cancelled", vec![hold(1, HoldMode::Waits), cancel(json!(1))]),
        ("a call that asks, cancelled", vec![ask(1), cancel(json!(1))]),
        ("what is not there, cancelled", (1..=200).map(|id| cancel(json!(id))).collect()),
        ("two handshakes", vec![plain(1, "initialize", initialize("2025-11-25", everything()))]),
        ("a subscription", vec![subscribe.clone(), subscribe]),
        ("no method", vec![plain(1, "no/such", json!({}))]),
        ("one id, twice", vec![hold(1, HoldMode::Waits), ask(1)]),
    ]
}

/// A way in which a client on pipes leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Departure {
    /// The client closes both ends at once.
    AtOnce,
    /// The client closes what it writes, and reads the rest.
    ReadsOn,
    /// The client closes in the middle of a line.
    HalfWay,
}

#[tokio::test]
async fn a_client_on_pipes_that_goes_in_any_phase_leaves_nothing() {
    for (what, says) in phases() {
        for goes in [Departure::AtOnce, Departure::ReadsOn, Departure::HalfWay] {
            let (server, _gate) = server();
            let census = LeakCheck::of(&server);
            let mut peer = serve(server.clone(), 1 << 20);
            peer.send(plain(0, "initialize", initialize("2025-11-25", everything())).to_string()).await;
            peer.receive().await.unwrap();
            for message in &says {
                peer.send(message.to_string()).await;
            }
            match goes {
                Departure::AtOnce => {}
                Departure::ReadsOn => {
                    soon(peer.writer.shutdown()).await.unwrap();
                    while peer.receive().await.is_some() {}
                }
                Departure::HalfWay => soon(peer.writer.write_all(b"{\"jsonrpc\":")).await.unwrap(),
            }
            drop((peer.lines, peer.writer));
            // Whether that ended it well or with a broken pipe.
            drop(soon(peer.serving).await.unwrap());
            census.is_back(&format!("{what}, {goes:?}")).await;
        }
    }
}

/// A session of its own over HTTP, whose client says what it likes.
struct Bad<'a> {
    running: &'a Running,
    id: String,
}

impl<'a> Bad<'a> {
    async fn open(running: &'a Running) -> Self {
        let mut client = Client::new(running).await;
        client.send(post(&plain(0, "initialize", initialize("2025-11-25", everything())), "")).await;
        while !client.ahead.windows(4).any(|four| four == b"\r\n\r\n") {
            use tokio::io::AsyncReadExt as _;
            assert_ne!(soon(client.stream.read_buf(&mut client.ahead)).await.unwrap(), 0);
        }
        let head = String::from_utf8_lossy(&client.ahead).into_owned();
        let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
        client.receive().await;
        Self { running, id }
    }

    fn own(&self) -> String {
        format!("Mcp-Session-Id: {}\r\n", self.id)
    }

    /// Sends this on a connection of its own.
    async fn send(&self, text: impl AsRef<[u8]>) -> Client {
        let mut client = Client::new(self.running).await;
        // The server may have closed before all is written.
        let _ = soon(client.stream.write_all(text.as_ref())).await;
        client
    }

    async fn ends(self) {
        let own = self.own();
        let mut client = self.send(format!("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n{own}\r\n")).await;
        assert!(client.receive_head().await.starts_with("http/1.1 204"));
    }
}

/// A way in which a client over HTTP leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaves {
    /// The client ends its session, with its connections open and unread.
    Ends,
    /// The client closes its connections, and sends nothing more.
    Closes,
    /// The same, rudely.
    Resets,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_over_http_that_goes_in_any_phase_leaves_nothing() {
    for leaves in [Leaves::Ends, Leaves::Closes, Leaves::Resets] {
        let (server, gate) = server();
        let running =
            serve_held(server.clone(), gate, HttpOptions::default().session_idle_timeout(SHORT)).await;
        let census = LeakCheck::of(&server);
        for (_, says) in phases() {
            let bad = Bad::open(&running).await;
            let own = bad.own();
            let mut connections = Vec::new();
            // One that listens, and one that breaks off in the middle.
            let get =
                format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{own}\r\n");
            connections.push(bad.send(get).await);
            let whole = post(&ask(99), &own);
            connections.push(bad.send(&whole[..whole.len() - 9]).await);
            for message in says.iter().take(30) {
                connections.push(bad.send(post(message, &own)).await);
            }
            if leaves == Leaves::Resets {
                connections.iter().for_each(|client| client.stream.set_zero_linger().unwrap());
            }
            if leaves == Leaves::Ends {
                bad.ends().await;
            }
        }
        settles(&format!("{leaves:?}"), &running, &census).await;
    }
}

/// Good clients are served meanwhile, and then all is as it was.
async fn settles(what: &str, running: &Running, census: &LeakCheck) {
    let began = Instant::now();
    loop {
        // Sessions that nobody uses are looked for when another one begins.
        let good = Bad::open(running).await;
        let own = good.own();
        let echo = plain(1, "tools/call", json!({"name": "echo", "arguments": {"name": "x"}}));
        let mut client = good.send(post(&with(&echo, json!({})), &own)).await;
        client.receive_result(1, "x").await;
        drop(client);
        good.ends().await;
        if census.is_back_now() {
            return;
        }
        assert!(began.elapsed() < LONGEST, "{what}: something is left over");
        tokio::task::yield_now().await;
    }
}
