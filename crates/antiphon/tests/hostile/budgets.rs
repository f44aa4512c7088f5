//! The memory and the places of one server, shared by callers of whom some take all they can: what is reserved for others
//! stays theirs, and everything comes back.

use crate::common::{
    by_header, fixture,
    gate::{Gate, gate, soon},
    lines, meta, post, request, with,
};
use antiphon::{
    serve::http::{HttpOptions, HttpService, PeerAddress, ReplyBody},
    server::{Limits, Server},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, poll, stream};
use http::Request;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use std::{future::Future, io, pin::Pin, task::Poll};

const MIB: usize = 1 << 20;

/// The number that the server's `Debug` output has for this name.
fn number(server: &Server, name: &str) -> usize {
    let text = format!("{server:?}");
    let (_, rest) = text.split_once(&format!("{name}: ")).unwrap_or_else(|| panic!("{name} in {text}"));
    rest.split(|next: char| !next.is_ascii_digit()).next().unwrap().parse().unwrap()
}

fn reserved(server: &Server) -> usize {
    number(server, "request_bytes")
}

fn server(change: impl FnOnce(Limits) -> Limits) -> (Server, Gate) {
    let (hold, gate) = gate();
    let limits = change(Limits::default());
    let builder = |builder: antiphon::server::ServerBuilder| {
        builder.tool(hold).limits(limits).bind_principal(by_header).list_changed(true)
    };
    (fixture(builder).server, gate)
}

/// A caller over HTTP: an address, a user.
type From = (Option<&'static str>, Option<&'static str>);

const NOBODY: From = (None, None);
const ANNA: From = (None, Some("anna@app"));

fn from<B>((peer, user): From, mut request: Request<B>) -> Request<B> {
    if let Some(peer) = peer {
        request.extensions_mut().insert(PeerAddress::new(peer.parse().unwrap()));
    }
    if let Some(user) = user {
        post::set(&mut request, "x-user", &[user]);
    }
    request
}

/// A call of `hold` of at least this length.
fn hold(name: &str, length: usize) -> Value {
    let padding = "x".repeat(length);
    request(1, "tools/call", json!({"name": "hold", "arguments": {"name": name, "padding": padding}}))
}

fn echo() -> Value {
    request(1, "tools/call", json!({"name": "echo", "arguments": {"name": "x"}}))
}

type Parts = Vec<Result<Bytes, io::Error>>;

/// A body of these parts, after which nothing comes for ever, unless it ends.
fn in_parts(parts: Parts, ends: bool) -> UnsyncBoxBody<Bytes, io::Error> {
    let frames = stream::iter(parts).map(|part| part.map(Frame::data));
    match ends {
        true => StreamBody::new(frames).boxed_unsync(),
        false => StreamBody::new(frames.chain(stream::pending())).boxed_unsync(),
    }
}

/// This much of a body, in pieces as a socket brings them.
fn pieces(bytes: usize) -> Parts {
    let piece = Bytes::from(vec![b' '; 64 * 1024]);
    let whole = (0..bytes / piece.len()).map(|_| Ok(piece.clone()));
    whole.chain([Ok(piece.slice(..bytes % piece.len()))]).collect()
}

/// A response that is awaited, of which a body without end is read at once.
async fn begun(
    service: &HttpService,
    request: Request<UnsyncBoxBody<Bytes, io::Error>>,
) -> Result<post::HttpReply, Pin<Box<dyn Future<Output = post::HttpReply>>>> {
    let service = service.clone();
    let mut response: Pin<Box<dyn Future<Output = post::HttpReply>>> =
        Box::pin(async move { post::post_body(&service, request).await });
    match poll!(&mut response) {
        Poll::Ready(got) => Ok(got),
        Poll::Pending => Err(response),
    }
}

/// A POST that announces 4 MiB and lacks one byte of them.
fn unfinished(caller: From) -> Request<UnsyncBoxBody<Bytes, io::Error>> {
    let mut request = post::correct(&echo()).map(|_| in_parts(pieces(4 * MIB - 1), false));
    post::set(&mut request, "content-length", &[&(4 * MIB).to_string()]);
    from(caller, request)
}

fn check_refused(got: &post::HttpReply) {
    assert_eq!((got.status, &got.headers["retry-after"]), (503, &"1".parse().unwrap()), "{:?}", got.body);
    assert_eq!(got.headers["connection"], "close");
}

/// Bodies that never end share one budget; what is kept for others stays theirs.
#[tokio::test]
async fn unfinished_bodies_are_bounded() {
    let (server, _gate) = server(|limits| limits);
    let service = HttpService::new(server.clone(), HttpOptions::default());
    let mut open = Vec::new();
    let one: From = (Some("203.0.113.1"), None);
    let other: From = (Some("203.0.113.2"), None);
    for (caller, sent, expected) in [
        // 16 MiB an address; 48 MiB of all who have no name; 16 MiB more for those who have one.
        (one, 40, 4),
        (other, 40, 4),
        // A proxy on this machine has one address for all of its clients.
        ((Some("127.0.0.1"), None), 40, 4),
        (NOBODY, 40, 0),
        (ANNA, 40, 4),
    ] {
        let before = open.len();
        for _ in 0..sent {
            match begun(&service, unfinished(caller)).await {
                Err(waits) => open.push(waits),
                Ok(got) => check_refused(&got),
            }
        }
        assert_eq!(open.len() - before, expected, "{caller:?}");
        // Small requests are served, whoever sends them.
        for small in [one, NOBODY, ANNA] {
            post::post(&service, from(small, post::correct(&echo())))
                .await
                .check("a small request", (200, 0));
        }
    }
    assert_eq!(reserved(&server), 64 * MIB);
    open.truncate(3);
    assert_eq!(reserved(&server), 12 * MIB);
    drop(open);
    assert_eq!(reserved(&server), 0);
}

/// A client that announces much and sends little has little of the budget.
#[tokio::test]
async fn what_is_announced_is_not_reserved() {
    let (server, _gate) = server(|limits| limits);
    let service = HttpService::new(server.clone(), HttpOptions::default());
    let mut open = Vec::new();
    for (sent, least, most) in
        [(0, 0, 0), (8 * 1024, 0, 0), (100 * 1024, 100 * 1024, 200 * 1024), (3 * MIB, 3 * MIB, 4 * MIB)]
    {
        let mut request = post::correct(&echo()).map(|_| in_parts(pieces(sent), false));
        post::set(&mut request, "content-length", &[&(4 * MIB).to_string()]);
        let before = reserved(&server);
        open.push(begun(&service, request).await.err().expect("it waits"));
        let taken = reserved(&server) - before;
        assert!((least..=most).contains(&taken), "{sent}: {taken}");
    }
    drop(open);
    assert_eq!(reserved(&server), 0);
}

/// A request gives its part of the budget back, at each kind of end.
#[tokio::test(start_paused = true)]
async fn each_end_gives_the_bytes_back() {
    let broken = || Err(io::Error::other("reset"));
    let (server, mut gate) = server(|limits| limits);
    let service = HttpService::new(server.clone(), HttpOptions::default());
    let ended = |parts: Parts| post::correct(&echo()).map(|_| in_parts(parts, true));
    let errs = pieces(MIB).into_iter().chain([broken()]).collect();
    let padded = json!({"name": "echo", "arguments": {"name": "x", "padding": "x".repeat(MIB)}});
    let large = request(1, "tools/call", padded).to_string();
    for (what, request, status) in [
        ("no JSON", ended(pieces(MIB)), 400),
        ("too large", ended(pieces(5 * MIB)), 413),
        ("it breaks", ended(errs), 400),
        ("it comes too late", unfinished(NOBODY), 408),
        ("it is answered", ended(vec![Ok(large.into())]), 200),
    ] {
        assert_eq!(post::post_body(&service, request).await.status, status, "{what}");
        assert_eq!(reserved(&server), 0, "{what}");
    }
    // The text of a call stays while its handler runs.
    for (name, leaves) in [("answered", false), ("cancelled", true)] {
        let request = post::correct(&hold(name, MIB)).map(|body| in_parts(vec![Ok(body)], true));
        let held = begun(&service, request).await.err().expect("it is held");
        gate.started(name).await;
        assert!((MIB..2 * MIB).contains(&reserved(&server)), "{name}");
        if leaves {
            drop(held);
            gate.dropped(name).await;
        } else {
            gate.open(name);
            held.await.check(name, (200, 0));
            gate.ended(name).await;
        }
        assert_eq!(reserved(&server), 0, "{name}");
    }
    // That of a subscription does not: it may stay open for days.
    let meta = with(&meta(), json!({"padding": "x".repeat(MIB)}));
    let listen = request(
        1,
        "subscriptions/listen",
        json!({"notifications": {"toolsListChanged": true}, "_meta": meta}),
    );
    let mut tower = service.clone();
    let response =
        tower_service::Service::call(&mut tower, post::correct(&listen).map(Full::new)).await.unwrap();
    let mut body = response.into_body();
    assert!(soon(body.frame()).await.is_some());
    assert_eq!((reserved(&server), number(&server, "subscriptions")), (0, 1));
}

/// A caller who is alone may send the largest body that the endpoint takes, whatever the share of one caller is.
#[tokio::test]
async fn one_body_of_the_maximum_length_is_accepted() {
    let (server, mut gate) = server(|limits| limits.request_bytes_per_caller(1));
    let service = HttpService::new(server.clone(), HttpOptions::default());
    let large = || post::correct(&hold("one", 3 * MIB)).map(|body| in_parts(vec![Ok(body)], true));
    let held = begun(&service, from(ANNA, large())).await.err().expect("it is held");
    gate.started("one").await;
    check_refused(&begun(&service, from(ANNA, large())).await.ok().expect("it is refused"));
    gate.open("one");
    held.await.check("the first", (200, 0));
    assert_eq!(reserved(&server), 0);
}

/// A request over the budget gets the frozen error on pipes, and the next line is read.
#[tokio::test(start_paused = true)]
async fn a_request_on_pipes_over_the_budget_is_busy() {
    for in_session in [false, true] {
        let (server, mut gate) = server(|limits| limits.request_bytes(MIB));
        let mut peer = lines::serve(server.clone(), 1 << 16);
        if in_session {
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
            let opening = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
            peer.send(opening.to_string()).await;
            assert!(peer.receive().await.unwrap().get("result").is_some());
        }
        let call = |id: u32, message: Value| {
            let mut message = with(&message, json!({ "id": id }));
            if in_session {
                message["params"].as_object_mut().unwrap().remove("_meta");
            }
            message.to_string()
        };
        peer.send(call(1, hold("one", 700 * 1024))).await;
        gate.started("one").await;
        peer.send(call(2, hold("two", 700 * 1024))).await;
        let refused = peer.receive().await.unwrap();
        let busy = json!({"reason": "busy", "retryAfterMs": 1000});
        assert_eq!((&refused["id"], &refused["error"]["data"]), (&json!(2), &busy));
        peer.send(call(3, echo())).await;
        assert_eq!(peer.receive_outcome().await, (json!(3), 0));
        gate.open("one");
        assert_eq!(peer.receive_outcome().await, (json!(1), 0));
        gate.ended("one").await;
        assert_eq!(reserved(&server), 0);
        peer.send(call(4, hold("two", 700 * 1024))).await;
        gate.started("two").await;
        assert!(reserved(&server) > 700 * 1024);
        assert!(peer.ends().await.is_empty());
        gate.dropped("two").await;
        assert_eq!(reserved(&server), 0);
    }
}

/// Anonymous calls that wait leave a quarter of the places to those who have a name. Small as they are, they take none of
/// the budget.
#[tokio::test]
async fn waiting_calls_leave_places_for_named_callers() {
    let (server, mut gate) = server(|limits| limits);
    let service = HttpService::new(server.clone(), HttpOptions::default());
    let call = |caller: From, name: &str| {
        from(caller, post::correct(&hold(name, 0)).map(|body| in_parts(vec![Ok(body)], true)))
    };
    let busy = |got: post::HttpReply| assert_eq!(got.json()["error"]["data"]["reason"], "busy");
    let mut held = Vec::new();
    for (caller, sent, expected) in [(NOBODY, 1024, 768), (ANNA, 300, 256), (NOBODY, 1, 0)] {
        let before = held.len();
        for number in 0..sent {
            let name = format!("{caller:?} {number}");
            match begun(&service, call(caller, &name)).await {
                Err(waits) => {
                    gate.started(&name).await;
                    held.push(waits);
                }
                Ok(got) => busy(got),
            }
        }
        assert_eq!(held.len() - before, expected, "{caller:?}");
    }
    assert_eq!((number(&server, "handlers"), reserved(&server)), (1024, 0));
    drop(held);
    assert_eq!(number(&server, "handlers"), 0);
    post::post(&service, post::correct(&echo())).await.check("again", (200, 0));
}

/// A server without authentication can leave everything to everybody.
#[tokio::test]
async fn the_share_of_named_callers_is_a_setting() {
    for (share, expected) in [(0, 4), (25, 3), (50, 2), (100, 0), (255, 0)] {
        let (server, mut gate) = server(|limits| limits.handlers(4).named_share(share));
        let service = HttpService::new(server, HttpOptions::default());
        let mut held = Vec::new();
        for number in 0..5 {
            let name = number.to_string();
            let request = post::correct(&hold(&name, 0)).map(|body| in_parts(vec![Ok(body)], true));
            if let Err(waits) = begun(&service, request).await {
                gate.started(&name).await;
                held.push(waits);
            }
        }
        assert_eq!(held.len(), expected, "{share} %");
    }
}

const BERT: From = (None, Some("bert@app"));

/// Opens a subscription, and returns its response after the acknowledgement; `None` if the server is busy.
async fn subscribed(service: &HttpService, caller: From, filter: &Value) -> Option<ReplyBody> {
    let listen = request(1, "subscriptions/listen", json!({ "notifications": filter }));
    let request = from(caller, post::correct(&listen).map(Full::new));
    let response = tower_service::Service::call(&mut service.clone(), request).await.unwrap();
    let mut body = response.into_body();
    let first = soon(body.frame()).await.unwrap().unwrap().into_data().unwrap();
    let is_open = first.starts_with(b"data: ");
    assert!(is_open || String::from_utf8_lossy(&first).contains(r#""reason":"busy""#), "{first:?}");
    is_open.then_some(body)
}

/// A server with eight subscriptions, or with resources for eight of them.
#[tokio::test]
async fn subscriptions_leave_places_for_named_callers() {
    let (one, other): (From, From) = ((Some("203.0.113.1"), None), (Some("203.0.113.2"), None));
    let uri = format!("test://{}", "x".repeat(81));
    type Change = fn(Limits) -> Limits;
    let places: Change = |limits| limits.subscriptions(8);
    let bytes: Change = |limits| limits.all_subscription_uri_bytes(8 * (512 + 88));
    for (what, limits, filter) in [
        ("places", places, json!({"toolsListChanged": true})),
        ("resources", bytes, json!({"resourceSubscriptions": [uri]})),
        (
            "resources beside lists",
            bytes,
            json!({"promptsListChanged": true, "resourceSubscriptions": [uri]}),
        ),
    ] {
        let limits = limits(Limits::default());
        let server = fixture(|builder| {
            builder.limits(limits).bind_principal(by_header).list_changed(true).resource_updates(true)
        })
        .server;
        let service = HttpService::new(server.clone(), HttpOptions::default());
        for _ in 0..2 {
            let mut open = Vec::new();
            for (caller, expected) in
                [(one, 2), (other, 2), (NOBODY, 2), (NOBODY, 0), (ANNA, 2), (ANNA, 0), (BERT, 0)]
            {
                let before = open.len();
                for _ in 0..9 {
                    open.extend(subscribed(&service, caller, &filter).await);
                }
                assert_eq!(open.len() - before, expected, "{what}: {caller:?}");
            }
            drop(open);
            assert_eq!(number(&server, "subscriptions"), 0, "{what}");
        }
    }
}
