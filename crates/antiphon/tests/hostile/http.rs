//! Bad peers on real sockets: what each gets, and that nothing of it stays behind.

use crate::common;
use crate::common::{
    fixture,
    gate::{Gate, HoldMode, gate, soon},
    leak_check::{LeakCheck, load},
    request,
    socket::{Client, Running, serve_held, text, text_of},
    with,
};
use antiphon::{
    serve::http::HttpOptions,
    server::{Ctx, Limits, NoArguments, Server, Tool},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// One connection, and one handler: each must be free again.
pub(crate) fn options() -> HttpOptions {
    HttpOptions::default().keep_alive_interval(SHORT).connections(1)
}

/// The same, for clients that are to be given up.
fn hasty() -> HttpOptions {
    options().header_timeout(SHORT).body_timeout(SHORT).write_timeout(SHORT)
}

fn limits() -> Limits {
    Limits::default().handlers(1).subscriptions(1)
}

fn server(limits: Limits) -> (Server, Gate) {
    let (hold, gate) = gate();
    let large = Tool::new("large", async |_: &Ctx, _: NoArguments| "x".repeat(64 << 20));
    let server = fixture(|builder| {
        builder.tool(hold).tool(large).limits(limits).list_changed(true).resource_updates(true).logging(true)
    });
    (server.server, gate)
}

pub(crate) async fn running(limits: Limits, options: HttpOptions) -> (Server, Running, LeakCheck) {
    let (server, gate) = server(limits);
    let running = serve_held(server.clone(), gate, options).await;
    let census = LeakCheck::of(&server);
    (server, running, census)
}

/// The call of `hold` under this name.
pub(crate) fn hold(name: &str, how: HoldMode) -> Value {
    let meta = with(&common::meta(), json!({"progressToken": name}));
    request(1, "tools/call", json!({"name": "hold", "arguments": {"name": name, "how": how}, "_meta": meta}))
}

fn listen(filter: Value) -> Value {
    request(1, "subscriptions/listen", json!({ "notifications": filter }))
}

/// A way in which a client leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaves {
    /// The client waits until the server closes.
    Never,
    /// The client closes its writing half, and reads to the end.
    HalfCloses,
    Closes,
    Resets,
}

impl Leaves {
    async fn go(self, mut stream: TcpStream) -> Vec<u8> {
        match self {
            Self::Never => {}
            // The server may have closed already.
            Self::HalfCloses => drop(stream.shutdown().await),
            Self::Closes => return Vec::new(),
            Self::Resets => {
                stream.set_zero_linger().unwrap();
                return Vec::new();
            }
        }
        let mut heard = Vec::new();
        // A reset is a close as well.
        let _ = soon(stream.read_to_end(&mut heard)).await;
        heard
    }
}

/// The status of each response in what was heard.
fn statuses(heard: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(heard);
    text.split("HTTP/1.").skip(1).map(|rest| rest[2..5].parse().unwrap()).collect()
}

/// A good client is served, and then all is as it was.
async fn still_serves(what: &str, running: &Running, census: &LeakCheck) {
    let mut good = Client::new(running).await;
    good.send(text(1, "echo", "x", "")).await;
    good.receive_result(1, "x").await;
    drop(good);
    census.is_back(what).await;
}

async fn check(
    (running, census): (&Running, &LeakCheck),
    what: &str,
    says: impl AsRef<[u8]>,
    leaves: Leaves,
    hears: &[u16],
) {
    let what = &format!("{what}, {leaves:?}");
    let mut stream = soon(TcpStream::connect(running.address)).await.unwrap();
    // The server may have closed before all is written.
    let _ = soon(stream.write_all(says.as_ref())).await;
    let heard = leaves.go(stream).await;
    assert_eq!(statuses(&heard), hears, "{what}: {}", String::from_utf8_lossy(&heard));
    census.is_back(what).await;
    still_serves(what, running, census).await;
}

/// A request in pieces that do not fit together.
#[tokio::test]
async fn a_broken_client_costs_its_connection_alone() {
    use Leaves::{Closes, HalfCloses, Never, Resets};
    let (_server, running, census) = running(limits(), hasty()).await;
    let on = (&running, &census);
    let good = text(1, "echo", "x", "");
    let (head, body) = good.split_once("\r\n\r\n").unwrap();
    let (bare, _) = head.split_once("Content-Length").unwrap();
    let chunked = |chunks: &str| format!("{bare}Transfer-Encoding: chunked\r\n\r\n{chunks}");
    let whole = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for leaves in [Never, HalfCloses, Closes, Resets] {
        check(on, "nothing", "", leaves, &[]).await;
        check(on, "half a head", &head[..90], leaves, &[]).await;
    }
    for leaves in [Closes, Resets] {
        check(on, "half a body", &good[..good.len() - 9], leaves, &[]).await;
        check(on, "a whole request", &good, leaves, &[]).await;
        check(on, "two", format!("{good}{good}"), leaves, &[]).await;
    }
    check(on, "half a body", &good[..good.len() - 9], Never, &[408]).await;
    // What is left of a body is taken for the next head.
    let short = good.replace(&format!("Length: {}", body.len()), "Length: 9");
    check(on, "a length too short", short, Never, &[400, 400]).await;
    for (what, chunks, status) in [
        ("chunks as they should be", &*whole, 200),
        ("a chunk of a length beyond all", "fffffffffffffffff\r\n", 400),
        ("a chunk of length -1", "-1\r\nx\r\n", 400),
        ("a chunk longer than it says", "1\r\nxyz\r\n", 400),
        ("a chunk that lacks its end", &whole[..whole.len() - 5], 408),
        ("chunks with a trailer", &whole.replace("0\r\n", "0\r\nMcp-Method: x\r\n"), 200),
        ("a trailer without end", &whole.replace("0\r\n\r\n", "0\r\nx:"), 408),
        ("a flood of chunk extensions", &format!("1;{}\r\n", "x".repeat(1 << 20)), 400),
    ] {
        check(on, what, chunked(chunks), Never, &[status]).await;
    }
    check(on, "HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Never, &[]).await;
    check(on, "a tunnel", "CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", Never, &[404]).await;
    let many: String = (0..200).map(|number| format!("x-{number}: y\r\n")).collect();
    check(on, "many headers", format!("{bare}{many}\r\n"), Never, &[431]).await;
    check(on, "a long header", format!("{bare}x: {}\r\n\r\n", "y".repeat(1 << 20)), Never, &[431]).await;
}

/// A body that is still on its way must not cost the client the answer.
#[tokio::test]
async fn a_refusal_before_the_body_reaches_the_client() {
    let (_server, running, census) = running(limits(), hasty().connections(2)).await;
    let good = text(1, "echo", "x", "");
    let (head, _) = good.split_once("Content-Length").unwrap();
    let length = 3 << 20;
    for (from, to, status) in [
        ("/mcp", "/other", 404),
        ("POST", "PUT", 405),
        ("application/json\r\n", "text/plain\r\n", 415),
        ("localhost", "evil.example.com", 421),
        ("HOST: localhost", "Host: localhost\r\nOrigin: null", 403),
        ("application/json, text/event-stream", "text/html", 406),
    ] {
        let mut client = Client::new(&running).await;
        client.send(format!("{}Content-Length: {length}\r\n\r\n", head.replacen(from, to, 1))).await;
        // It has its answer before it sends any of the body, and may send all of it all the same.
        assert_eq!(client.receive().await.status, status, "{from}");
        client.send(vec![b' '; length]).await;
        drop(client);
        census.is_back(from).await;
        // The same if it sends first and listens then.
        let mut client = Client::new(&running).await;
        client.send(format!("{}Content-Length: {length}\r\n\r\n", head.replacen(from, to, 1))).await;
        client.send(vec![b' '; length]).await;
        assert_eq!(client.receive().await.status, status, "{from}");
        drop(client);
        still_serves(from, &running, &census).await;
    }
}

/// > The server **MUST** treat a client disconnect as cancellation of that request.
#[tokio::test]
async fn a_client_that_goes_in_any_phase_drops_its_handler() {
    let (server, mut running, census) = running(limits(), options()).await;
    for leaves in [Leaves::Closes, Leaves::HalfCloses, Leaves::Resets] {
        for how in [HoldMode::Waits, HoldMode::Reports, HoldMode::Floods] {
            let mut client = Client::new(&running).await;
            client.send(text_of(&hold("a", how))).await;
            running.gate.started("a").await;
            if how != HoldMode::Waits {
                client.receive_head().await;
                client.receive_event().await.unwrap();
            }
            assert_eq!(load(&server), (0, 1));
            leaves.go(client.stream).await;
            running.gate.dropped("a").await;
            census.is_back("a handler").await;
        }
        let mut client = Client::new(&running).await;
        client.send(text_of(&listen(json!({"toolsListChanged": true})))).await;
        client.receive_head().await;
        client.receive_event().await.unwrap();
        assert_eq!(load(&server), (1, 0));
        leaves.go(client.stream).await;
        census.is_back("a subscription").await;
    }
    still_serves("after all", &running, &census).await;
}

/// Bytes behind a request hide the end of its connection. A stream notices it at its next write, and a silent handler
/// ends with its time.
#[tokio::test]
async fn a_client_that_goes_behind_pipelined_requests_is_missed_in_time() {
    let limits = limits().handler_timeout(Duration::from_millis(300));
    let (_server, mut running, census) = running(limits, options()).await;
    for leaves in [Leaves::Closes, Leaves::Resets] {
        for first in [
            hold("a", HoldMode::Waits),
            hold("a", HoldMode::Reports),
            listen(json!({"toolsListChanged": true})),
        ] {
            let mut client = Client::new(&running).await;
            client.send([text_of(&first), text(2, "echo", "x", "")].concat()).await;
            let holds = first["params"]["name"] == "hold";
            if holds {
                running.gate.started("a").await;
            } else {
                client.receive_head().await;
            }
            leaves.go(client.stream).await;
            if holds {
                running.gate.dropped("a").await;
            }
            census.is_back("pipelined").await;
        }
    }
    still_serves("after all", &running, &census).await;
}

/// A connection whose client takes in little.
async fn narrow(running: &Running) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    soon(socket.connect(running.address)).await.unwrap()
}

#[tokio::test]
async fn a_client_that_stops_reading_is_left() {
    let (server, mut running, census) = running(limits(), hasty()).await;
    // A large reply.
    let mut client = narrow(&running).await;
    let large = text_of(&request(1, "tools/call", json!({"name": "large", "arguments": {}})));
    client.write_all(large.as_bytes()).await.unwrap();
    client.readable().await.unwrap();
    census.is_back_but("a large reply", 1).await;
    drop(client);
    census.is_back("a large reply").await;

    // Progress without end.
    let mut client = narrow(&running).await;
    client.write_all(text_of(&hold("a", HoldMode::Floods)).as_bytes()).await.unwrap();
    running.gate.started("a").await;
    running.gate.dropped("a").await;
    drop(client);
    census.is_back("a flood").await;

    // A subscription, and changes without end.
    let uris: Vec<String> = (0..200).map(|number| format!("{number}{}", "x".repeat(300))).collect();
    let mut client = narrow(&running).await;
    client.write_all(text_of(&listen(json!({"resourceSubscriptions": uris}))).as_bytes()).await.unwrap();
    client.readable().await.unwrap();
    assert_eq!(load(&server), (1, 0));
    soon(async {
        while load(&server) == (1, 0) {
            uris.iter().for_each(|uri| server.resource_updated(uri));
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(client);
    census.is_back("a subscription").await;
    still_serves("after all", &running, &census).await;
}

/// Many notifications, each with its answer that nobody reads, and many requests of one connection.
#[tokio::test]
async fn a_flood_is_answered_one_by_one_or_left() {
    let (_server, running, census) = running(limits(), hasty()).await;
    let notification = |method: &str| {
        let good = text(1, "echo", "x", "");
        let (head, _) = good.split_once("Content-Length").unwrap();
        let body = json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": 1}}).to_string();
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    // > notifications/cancelled is not used on this transport: it cancels nothing, and is accepted.
    let flood: String = ["notifications/x", "notifications/cancelled"].map(notification).concat().repeat(500);
    let mut client = Client::new(&running).await;
    let (mut read, mut write) = client.stream.split();
    let mut heard = vec![0; "HTTP/1.1 202 Accepted\r\n".len()];
    let (written, read) = tokio::join!(write.write_all(flood.as_bytes()), read.read_exact(&mut heard));
    written.unwrap();
    read.unwrap();
    assert_eq!(heard, b"HTTP/1.1 202 Accepted\r\n");
    drop(client);
    census.is_back("notifications").await;

    // Nobody reads: it is left, however much was sent.
    let mut client = narrow(&running).await;
    let requests = text(1, "echo", &"x".repeat(10_000), "").repeat(200);
    while let Ok(Ok(())) =
        tokio::time::timeout(common::gate::LONGEST, client.write_all(requests.as_bytes())).await
    {}
    drop(client);
    census.is_back("requests").await;
    still_serves("after all", &running, &census).await;
}

#[tokio::test]
async fn a_client_that_waits_for_leave_to_send_gets_it_or_an_answer() {
    let (_server, running, census) = running(limits(), hasty()).await;
    let good = text(1, "echo", "x", "Expect: 100-continue\r\n");
    let (head, body) = good.split_once("\r\n\r\n").unwrap();
    let mut client = Client::new(&running).await;
    client.send(format!("{head}\r\n\r\n")).await;
    assert_eq!(client.receive_head().await, "http/1.1 100 continue");
    client.send(body).await;
    client.receive_result(1, "x").await;
    drop(client);
    census.is_back("told to go on").await;
    // Refused at once: it need not send anything.
    for (from, to, status) in [("/mcp", "/", 404), ("localhost", "evil.example.com", 421)] {
        let mut client = Client::new(&running).await;
        client.send(format!("{}\r\n\r\n", head.replacen(from, to, 1))).await;
        assert_eq!(client.receive().await.status, status);
        drop(client);
        census.is_back("refused").await;
    }
    // It got leave, and then says nothing.
    check((&running, &census), "leave, and silence", format!("{head}\r\n\r\n"), Leaves::Never, &[100, 408])
        .await;
}

#[tokio::test]
async fn older_clients_get_what_they_can_read() {
    let (_server, mut running, census) = running(limits(), options()).await;
    let on = (&running, &census);
    let old = |text: &str| text.replacen("HTTP/1.1", "HTTP/1.0", 1);
    check(on, "HTTP/1.0", old(&text(1, "echo", "x", "")), Leaves::Never, &[200]).await;
    let unnamed = old(&text(1, "echo", "x", "")).replacen("HOST: localhost\r\n", "", 1);
    check(on, "HTTP/1.0 without a host", unnamed, Leaves::Never, &[421]).await;
    // Without chunks the end of the stream is that of the connection.
    let mut client = Client::new(&running).await;
    client.send(old(&text_of(&hold("a", HoldMode::Reports)))).await;
    running.gate.started("a").await;
    running.gate.open("a");
    soon(client.stream.read_to_end(&mut client.ahead)).await.unwrap();
    let heard = String::from_utf8(client.ahead).unwrap();
    let (head, body) = heard.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("200 OK") && !head.to_lowercase().contains("transfer-encoding"), "{head}");
    let events: Vec<&str> = body.strip_suffix("\n\n").unwrap().split("\n\n").collect();
    assert_eq!(events.len(), 2, "{body}");
    assert!(events.iter().all(|event| event.starts_with("data: {")), "{body}");
    drop(client.stream);
    census.is_back("an old stream").await;

    // HEAD has the head of 405 and nothing behind it, or the next response could not be found.
    let mut client = Client::new(&running).await;
    client.send("HEAD /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let head = client.receive_head().await;
    assert!(head.starts_with("http/1.1 405") && head.contains("allow: post"), "{head}");
    client.send(text(1, "echo", "x", "")).await;
    client.receive_result(1, "x").await;
}
