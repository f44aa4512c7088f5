//! The server over real sockets: how connections are read, kept, counted and closed.

use crate::common::{
    fixture,
    gate::soon,
    post::{correct, post_body},
    request,
    socket::{Client, Running, holding, serve, serve_this, text},
};
use antiphon::{
    seal::Principal,
    serve::http::{
        HttpOptions, HttpService,
        auth::{ResourceServer, StaticTokens},
    },
    server::{Bearer, Limits},
};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::Frame;
use serde_json::json;
use std::{io, time::Duration};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

#[tokio::test]
async fn a_connection_takes_one_request_after_another() {
    let server = serve(HttpOptions::default()).await;
    let mut client = Client::new(&server).await;
    for id in 1..4 {
        client.send(text(id, "echo", "x", "")).await;
        let heard = client.receive_result(id, "x").await;
        assert!(!heard.head.contains("connection:"), "{}", heard.head);
        assert!(heard.head.contains("content-type: application/json"), "{}", heard.head);
    }
    // All at once: the answers come in order.
    let pipelined: String = (4..24).map(|id| text(id, "echo", &format!("name {id}"), "")).collect();
    client.send(pipelined).await;
    for id in 4..24 {
        client.receive_result(id, &format!("name {id}")).await;
    }
    // Byte by byte.
    for byte in text(24, "echo", "slow", "").bytes() {
        client.send([byte]).await;
    }
    client.receive_result(24, "slow").await;
    client.send(text(25, "echo", "last", "Connection: close\r\n")).await;
    assert!(client.receive_result(25, "last").await.head.contains("connection: close"));
    client.expect_close().await;
}

#[tokio::test]
async fn a_refused_request_leaves_the_connection_usable() {
    let server = serve(HttpOptions::default()).await;
    let mut client = Client::new(&server).await;
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    let good = text(1, "echo", "x", "");
    for (from, to, status) in [
        ("/mcp", "/", 404),
        ("POST", "PUT", 405),
        ("application/json\r\n", "text/plain\r\n", 415),
        ("localhost", "evil.example.com", 421),
        ("HOST: localhost", "Host: localhost\r\nOrigin: null", 403),
        ("application/json, text/event-stream", "text/html", 406),
        ("mcp-method:tools/call\r\n", "", 400),
        (
            &good[good.find("Content-Length").unwrap()..],
            &format!("Content-Length: 44\r\n\r\n{notification}"),
            202,
        ),
    ] {
        client.send(good.replacen(from, to, 1)).await;
        let heard = client.receive().await;
        assert_eq!(
            (heard.status, heard.head.contains("allow: post")),
            (status, status == 405),
            "{}",
            heard.body
        );
        assert!(
            !heard.head.contains("connection:") && !heard.head.contains("mcp-session-id"),
            "{}",
            heard.head
        );
        client.send(&good).await;
        client.receive_result(1, "x").await;
    }
}

/// A client that sends head and body one after the other may have the answer between them: it learns that the connection ends.
#[tokio::test]
async fn a_refusal_before_the_body_closes_the_connection_and_says_so() {
    let tokens = StaticTokens::new().token("t", Bearer::new(Principal::user("ada")));
    let auth = ResourceServer::builder("http://localhost/mcp").verifier(tokens).build().unwrap();
    let good = text(1, "echo", "x", "");
    for (options, path, status) in
        [(HttpOptions::default(), "/", 404), (HttpOptions::default().authorize(auth), "/mcp", 401)]
    {
        let server = serve(options).await;
        let mut client = Client::new(&server).await;
        let refused = good.replacen("/mcp", path, 1);
        let (head, body) = refused.split_once("\r\n\r\n").unwrap();
        client.send(format!("{head}\r\n\r\n")).await;
        let heard = client.receive().await;
        assert_eq!(heard.status, status);
        assert!(heard.head.contains("connection: close"), "{}", heard.head);
        client.send(body).await;
        client.expect_close().await;
    }
}

/// Bytes that are not HTTP, or an incomplete request, cost their own connection only.
#[tokio::test]
async fn broken_requests_are_refused_or_forgotten() {
    // One place: it must be free again each time.
    let server = serve(HttpOptions::default().connections(1)).await;
    let good = text(1, "echo", "x", "");
    let (head, _) = good.split_once("\r\n\r\n").unwrap();
    for (what, said, status) in [
        ("nothing", "", None),
        ("half a line", "POST /mcp HT", None),
        ("half a head", &head[..60], None),
        ("no body", &format!("{head}\r\n\r\n"), Some(400)),
        ("half a body", &good[..good.len() - 1], Some(400)),
        ("no HTTP", "hello\r\n\r\n", Some(400)),
        ("another protocol", "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", Some(400)),
        ("a bad length", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", Some(400)),
        (
            "two lengths",
            &good.replacen("Content-Length", "Content-Length: 1\r\nContent-Length", 1),
            Some(400),
        ),
        ("both lengths", &good.replacen("HOST", "Transfer-Encoding: gzip\r\nHOST", 1), Some(400)),
    ] {
        let mut client = Client::new(&server).await;
        client.send(said).await;
        // It may have closed already.
        let _ = client.stream.shutdown().await;
        if let Some(status) = status {
            assert_eq!(client.receive().await.status, status, "{what}");
        }
        client.expect_close().await;
        let mut next = Client::new(&server).await;
        next.send(&good).await;
        next.receive_result(1, "x").await;
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_or_too_slow_has_a_status_before_the_connection_closes() {
    let good = text(1, "echo", "x", "");
    let (head, body) = good.split_once("\r\n\r\n").unwrap();
    let (head, _) = head.split_once("Content-Length").unwrap();
    let long = "x".repeat(2000);
    for (what, rest, status) in [
        ("a length", format!("Content-Length: 1001\r\n\r\n{long}"), 413),
        ("chunks", format!("Transfer-Encoding: chunked\r\n\r\n7d0\r\n{long}\r\n"), 413),
        ("half a body", format!("Content-Length: {}\r\n\r\n{}", body.len(), &body[1..]), 408),
        ("half a chunk", "Transfer-Encoding: chunked\r\n\r\n7d0\r\nx".to_owned(), 408),
        ("no chunk", "Transfer-Encoding: chunked\r\n\r\nxyz\r\n".to_owned(), 400),
    ] {
        let options = HttpOptions::default().max_body(1000).body_timeout(Duration::from_millis(50));
        let server = serve(options).await;
        let mut client = Client::new(&server).await;
        client.send(format!("{head}{rest}")).await;
        let heard = client.receive().await;
        assert_eq!(heard.status, status, "{what}: {}", heard.body);
        assert!(heard.head.contains("connection: close"), "{what}: {}", heard.head);
        client.expect_close().await;
    }
}

/// A body that nobody reads must not cost the answer that says so.
#[tokio::test]
async fn a_giant_body_still_gets_its_answer() {
    let server = serve(HttpOptions::default()).await;
    let good = text(1, "echo", "x", "");
    let (head, _) = good.split_once("Content-Length").unwrap();
    let length = 32 << 20;
    for coding in [
        format!("Content-Length: {length}\r\n\r\n"),
        format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n"),
    ] {
        let mut client = Client::new(&server).await;
        client.send(format!("{head}{coding}")).await;
        client.send(vec![b' '; length]).await;
        assert_eq!(client.receive().await.status, 413);
        client.expect_close().await;
    }
}

#[tokio::test]
async fn a_head_that_takes_too_long_is_given_up() {
    let server = serve(HttpOptions::default().header_timeout(Duration::from_millis(50))).await;
    let mut client = Client::new(&server).await;
    client.send("POST /mcp HTTP/1.1\r\nHost: local").await;
    client.expect_close().await;
}

/// > The server **MUST** treat a client disconnect as cancellation of that request.
#[tokio::test]
async fn a_client_that_goes_away_cancels_its_request() {
    let mut server = serve(HttpOptions::default()).await;
    let mut other = Client::new(&server).await;
    for drop_it in [true, false] {
        let mut client = Client::new(&server).await;
        client.send(text(1, "hold", "a", "")).await;
        server.gate.started("a").await;
        if drop_it {
            drop(client);
        } else {
            client.stream.shutdown().await.unwrap();
        }
        server.gate.dropped("a").await;
        other.send(text(2, "echo", "x", "")).await;
        other.receive_result(2, "x").await;
    }
}

/// A client with this request under way.
async fn busy(server: &mut Running, name: &str) -> Client {
    let mut client = Client::new(server).await;
    client.send(text(1, "hold", name, "")).await;
    server.gate.started(name).await;
    client
}

async fn echo(client: &mut Client) {
    client.send(text(1, "echo", "x", "")).await;
    client.receive_result(1, "x").await;
}

#[tokio::test]
async fn one_more_connection_than_allowed_waits_while_all_are_busy() {
    let mut server = serve(HttpOptions::default().connections(1)).await;
    let mut first = busy(&mut server, "first").await;
    let mut second = Client::new(&server).await;
    second.send(text(1, "hold", "second", "")).await;
    assert!(server.gate.is_quiet());
    server.gate.open("first");
    server.gate.ended("first").await;
    // The end of the request makes room: the first connection has its response, and is closed.
    server.gate.started("second").await;
    first.receive_result(1, "first").await;
    first.expect_close().await;
    server.gate.open("second");
    second.receive_result(1, "second").await;
}

/// Connections without a request keep nobody out.
#[tokio::test]
async fn the_longest_idle_connection_makes_room() {
    let mut server = serve(HttpOptions::default().connections(4).connections_per_address(4)).await;
    let mut held = busy(&mut server, "held").await;
    let (mut first, mut second) = (Client::new(&server).await, Client::new(&server).await);
    echo(&mut first).await;
    echo(&mut second).await;
    let silent = Client::new(&server).await;
    let mut next = Client::new(&server).await;
    echo(&mut next).await;
    silent.expect_close().await;
    let mut last = Client::new(&server).await;
    echo(&mut last).await;
    first.expect_close().await;
    for client in [&mut second, &mut next, &mut last] {
        echo(client).await;
    }
    server.gate.open("held");
    held.receive_result(1, "held").await;
}

#[tokio::test]
async fn an_address_has_as_many_connections_as_allowed() {
    let mut server = serve(HttpOptions::default().connections_per_address(1)).await;
    let mut held = busy(&mut server, "held").await;
    Client::new(&server).await.expect_close().await;
    server.gate.open("held");
    held.receive_result(1, "held").await;
    // Without a request it makes room.
    let mut next = Client::new(&server).await;
    echo(&mut next).await;
    held.expect_close().await;
}

#[tokio::test]
async fn a_head_over_the_limit_is_refused() {
    let good = text(1, "echo", "x", "");
    let head = good.find("\r\n\r\n").unwrap() + 4;
    for (options, limit) in [
        (HttpOptions::default(), 32 * 1024),
        (HttpOptions::default().max_head(1000), 1000),
        (HttpOptions::default().max_head(200_000), 200_000),
    ] {
        let server = serve(options).await;
        let padded = |length: usize| format!("X: {}\r\n", "y".repeat(length - head - "X: \r\n".len()));
        let mut client = Client::new(&server).await;
        for length in [limit - 1, limit] {
            client.send(text(1, "echo", "x", &padded(length))).await;
            client.receive_result(1, "x").await;
        }
        client.send(text(1, "echo", "x", &padded(limit + 1))).await;
        assert_eq!(client.receive().await.status, 431, "{limit}");
        client.expect_close().await;
        // Without an end.
        let mut client = Client::new(&server).await;
        client.send(format!("POST /mcp HTTP/1.1\r\nX: {}", "y".repeat(1 << 20))).await;
        assert_eq!(client.receive().await.status, 431, "{limit}");
        client.expect_close().await;
    }
}

#[tokio::test]
async fn a_shutdown_lets_requests_end_and_nothing_begin() {
    let mut server = serve(HttpOptions::default()).await;
    let (mut busy, mut idle, fresh) =
        (Client::new(&server).await, Client::new(&server).await, Client::new(&server).await);
    idle.send(text(1, "echo", "x", "")).await;
    idle.receive_result(1, "x").await;
    busy.send(text(1, "hold", "a", "")).await;
    server.gate.started("a").await;
    // Behind the one that runs: it will not be begun.
    busy.send(text(2, "hold", "b", "")).await;
    server.shutdown.send(()).unwrap();
    idle.expect_close().await;
    fresh.expect_close().await;
    assert_eq!(
        TcpStream::connect(server.address).await.unwrap_err().kind(),
        io::ErrorKind::ConnectionRefused
    );
    assert!(!server.ended.is_finished() && server.gate.is_quiet());
    server.gate.open("a");
    server.gate.open("b");
    assert!(busy.receive_result(1, "a").await.head.contains("connection: close"));
    busy.expect_close().await;
    soon(server.ended).await.unwrap().unwrap();
    server.gate.ended("a").await;
    assert!(server.gate.is_quiet());
}

#[tokio::test]
async fn what_does_not_end_within_the_drain_time_is_cancelled() {
    let mut server = serve(HttpOptions::default().drain_timeout(Duration::from_millis(10))).await;
    let mut busy = Client::new(&server).await;
    busy.send(text(1, "hold", "a", "")).await;
    server.gate.started("a").await;
    let mut half = Client::new(&server).await;
    half.send("POST /mcp HTTP/1.1\r\n").await;
    server.shutdown.send(()).unwrap();
    server.gate.dropped("a").await;
    soon(server.ended).await.unwrap().unwrap();
    busy.expect_close().await;
    half.expect_close().await;
}

/// A head that does not end has no more time while the server drains than at other times.
#[tokio::test]
async fn a_head_that_takes_too_long_does_not_hold_a_server_that_drains() {
    let options = HttpOptions::default().header_timeout(Duration::from_millis(50));
    let server = serve(options.drain_timeout(Duration::from_secs(600))).await;
    let mut half = Client::new(&server).await;
    half.send("POST /mcp HTTP/1.1\r\n").await;
    // The server has read the half before it answers another connection.
    let mut other = Client::new(&server).await;
    other.send(text(1, "echo", "x", "")).await;
    other.receive_result(1, "x").await;
    server.shutdown.send(()).unwrap();
    soon(server.ended).await.unwrap().unwrap();
    half.expect_close().await;
}

/// A service that axum and tower can mount takes a body of any type.
#[tokio::test]
async fn the_service_takes_any_body() {
    let service = HttpService::new(holding().0, HttpOptions::default());
    let message = request(1, "server/discover", json!({}));
    let whole = Bytes::from(message.to_string());
    let piece = |piece: &[u8]| Ok(Frame::data(Bytes::copy_from_slice(piece)));
    let pieces = || whole.chunks(7).map(piece).collect::<Vec<io::Result<Frame<Bytes>>>>();
    let broken = vec![Ok(Frame::data(whole.clone())), Err(io::Error::other("gone"))];
    let ask = || correct(&message).map(drop);
    let stream = |frames| StreamBody::new(futures_util::stream::iter(frames));
    let text = Full::new(io::Cursor::new(message.to_string()));
    post_body(&service, ask().map(|()| Full::new(whole.clone()))).await.check("whole", (200, 0));
    post_body(&service, ask().map(|()| text)).await.check("not of Bytes", (200, 0));
    // The bound is on the whole, however small the pieces are.
    let bounded = |most| HttpService::new(holding().0, HttpOptions::default().max_body(most));
    post_body(&bounded(whole.len()), ask().map(|()| stream(pieces()))).await.check("at the bound", (200, 0));
    post_body(&bounded(whole.len() - 1), ask().map(|()| stream(pieces()))).await.check("over it", (413, 0));
    post_body(&service, ask().map(|()| stream(pieces()))).await.check("pieces", (200, 0));
    post_body(&service, ask().map(|()| Full::new(whole).boxed_unsync())).await.check("boxed", (200, 0));
    post_body(&service, ask().map(|()| Empty::<Bytes>::new())).await.check("empty", (400, -32700));
    post_body(&service, ask().map(|()| stream(broken))).await.check("broken", (400, 0));
}

/// `serve_http` says where a request comes from: the limits of anonymous callers count by it.
#[tokio::test]
async fn each_request_names_the_address_of_its_peer() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let server = fixture(|builder| {
        builder.bind_principal(move |caller| {
            let address = caller.peer_address();
            tell.send(format!("{address:?}")).unwrap();
            Ok::<_, std::convert::Infallible>(None)
        })
    });
    let server = serve_this(server.server, HttpOptions::default()).await;
    let mut client = Client::new(&server).await;
    for id in 1..3 {
        client.send(text(id, "echo", "x", "")).await;
        client.receive_result(id, "x").await;
        assert_eq!(told.recv().await.unwrap(), "Some(PeerAddress(127.0.0.1))");
    }
}

/// A body beyond the budget is refused before all of it has arrived, and the client reads why.
#[tokio::test]
async fn a_body_beyond_the_budget_gets_503() {
    let limits = Limits::default().request_bytes(64 * 1024);
    let server = serve_this(fixture(|builder| builder.limits(limits)).server, HttpOptions::default()).await;
    let mut client = Client::new(&server).await;
    client.send(text(1, "echo", &"x".repeat(40_000), "")).await;
    client.receive_result(1, &"x".repeat(40_000)).await;
    client.send(text(2, "echo", &"x".repeat(400_000), "")).await;
    let refused = client.receive().await;
    assert_eq!(refused.status, 503, "{}", refused.head);
    assert!(
        refused.head.contains("retry-after: 1") && refused.head.contains("connection: close"),
        "{}",
        refused.head
    );
    client.expect_close().await;
    let mut client = Client::new(&server).await;
    client.send(text(3, "echo", "x", "")).await;
    client.receive_result(3, "x").await;
}
