//! HTTP/2 on real sockets: good clients are served, and the frames of bad ones are limited.

use super::http::{SHORT, hold, options, running};
use crate::common::{
    by_header, fixture,
    gate::{HoldMode, soon},
    leak_check::{LeakCheck, load},
    post::correct,
    request,
    socket::{Client, Running, serve, serve_this, text},
};
use antiphon::{serve::http::HttpOptions, server::Limits};
use bytes::Bytes;
use h2::{RecvStream, client::SendRequest};
use http::{HeaderMap, Request, Uri};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};

/// A connection of a client that knows the protocol, and the end of this connection.
async fn connect(server: &Running) -> (SendRequest<Bytes>, JoinHandle<Result<(), h2::Error>>) {
    let stream = soon(TcpStream::connect(server.address)).await.unwrap();
    let (client, connection) = soon(h2::client::handshake(stream)).await.unwrap();
    (client, tokio::spawn(connection))
}

fn post_of(message: &Value) -> Request<Bytes> {
    let mut request = correct(message);
    request.headers_mut().remove("host");
    *request.uri_mut() = Uri::from_static("http://localhost/mcp");
    request
}

/// Sends a request, and returns its response once its head is there.
async fn send(client: &mut SendRequest<Bytes>, request: Request<Bytes>) -> (u16, HeaderMap, RecvStream) {
    let (parts, body) = request.into_parts();
    soon(std::future::poll_fn(|cx| client.poll_ready(cx))).await.unwrap();
    let (response, mut stream) =
        client.send_request(Request::from_parts(parts, ()), body.is_empty()).unwrap();
    if !body.is_empty() {
        stream.send_data(body, true).unwrap();
    }
    let (parts, body) = soon(response).await.unwrap().into_parts();
    (parts.status.as_u16(), parts.headers, body)
}

/// The next piece of a response; `None` at its end.
async fn piece(body: &mut RecvStream) -> Option<Result<Bytes, h2::Error>> {
    let piece = soon(body.data()).await;
    if let Some(Ok(bytes)) = &piece {
        body.flow_control().release_capacity(bytes.len()).unwrap();
    }
    piece
}

async fn rest(mut body: RecvStream) -> String {
    let mut text = Vec::new();
    while let Some(bytes) = piece(&mut body).await {
        text.extend_from_slice(&bytes.unwrap());
    }
    String::from_utf8(text).unwrap()
}

fn echo(id: u32, name: &str) -> Value {
    request(id, "tools/call", json!({"name": "echo", "arguments": {"name": name}}))
}

async fn receive_echo(client: &mut SendRequest<Bytes>, id: u32, name: &str) {
    let (status, headers, body) = send(client, post_of(&echo(id, name))).await;
    let body = rest(body).await;
    assert_eq!(status, 200, "{body}");
    assert!(!headers.contains_key("connection") && headers["content-length"] == *body.len().to_string());
    assert!(body.contains(name), "{body}");
}

#[tokio::test]
async fn requests_share_a_connection_and_do_not_wait_for_each_other() {
    let mut server = serve(HttpOptions::default()).await;
    let (mut client, _connection) = connect(&server).await;
    receive_echo(&mut client, 1, "one").await;
    let mut second = client.clone();
    let held = tokio::spawn(async move {
        let (status, _, body) = send(&mut second, post_of(&hold("held", HoldMode::Waits))).await;
        (status, rest(body).await)
    });
    server.gate.started("held").await;
    // Of many frames, in both directions.
    for length in [10, 70_000, 1 << 20] {
        receive_echo(&mut client, 2, &"x".repeat(length)).await;
    }
    server.gate.open("held");
    let (status, body) = soon(held).await.unwrap();
    assert_eq!((status, body.contains("held")), (200, true), "{body}");
    // HTTP/1.1 on the same port.
    let mut other = Client::new(&server).await;
    other.send(text(1, "echo", "x", "")).await;
    other.receive_result(1, "x").await;
}

/// A refusal is a response as any other, also of a body that is not sent.
#[tokio::test]
async fn refusals_have_no_header_of_http1() {
    let server = serve(HttpOptions::default().max_body(1000)).await;
    let (mut client, _connection) = connect(&server).await;
    for (what, status) in [("length", 413), ("body", 413), ("json", 400), ("path", 404)] {
        let mut request = post_of(&echo(1, "x"));
        match what {
            "length" => drop(request.headers_mut().insert("content-length", 4_000_000.into())),
            "body" => *request.body_mut() = vec![b' '; 60_000].into(),
            "json" => *request.body_mut() = Bytes::from_static(b"no JSON"),
            _ => *request.uri_mut() = Uri::from_static("http://localhost/other"),
        }
        let (parts, body) = request.into_parts();
        soon(std::future::poll_fn(|cx| client.poll_ready(cx))).await.unwrap();
        let (response, mut stream) = client.send_request(Request::from_parts(parts, ()), false).unwrap();
        // With a length that is not sent, the body has no end.
        stream.send_data(body, what != "length").unwrap();
        let response = soon(response).await.unwrap();
        assert_eq!(response.status(), status, "{what}");
        assert!(!response.headers().contains_key("connection"), "{what}");
        receive_echo(&mut client, 2, "after").await;
    }
}

/// Events arrive one by one, and a stream that the client resets cancels its request alone.
#[tokio::test]
async fn a_reset_cancels_its_request() {
    let (server, mut running, census) = running(Limits::default().handlers(2), options()).await;
    for how in [HoldMode::Waits, HoldMode::Reports] {
        let (mut client, connection) = connect(&running).await;
        let mut other = client.clone();
        let message = post_of(&hold("a", how));
        soon(std::future::poll_fn(|cx| client.poll_ready(cx))).await.unwrap();
        let (parts, body) = message.into_parts();
        let (response, mut stream) = client.send_request(Request::from_parts(parts, ()), false).unwrap();
        stream.send_data(body, true).unwrap();
        running.gate.started("a").await;
        assert_eq!(load(&server), (0, 1));
        let streamed = if how == HoldMode::Waits {
            drop(response);
            None
        } else {
            let (parts, mut body) = soon(response).await.unwrap().into_parts();
            assert_eq!(parts.headers["content-type"], "text/event-stream");
            let event = piece(&mut body).await.unwrap().unwrap();
            assert!(event.starts_with(b"data: "), "{event:?}");
            Some(body)
        };
        stream.send_reset(h2::Reason::CANCEL);
        running.gate.dropped("a").await;
        receive_echo(&mut other, 2, "x").await;
        drop((client, other, stream, streamed));
        soon(connection).await.unwrap().unwrap();
        census.is_back(&format!("{how:?}")).await;
    }
}

/// > The server **MUST** treat a client disconnect as cancellation of that request.
#[tokio::test]
async fn the_end_of_a_connection_cancels_its_requests() {
    let (_server, mut running, census) = running(Limits::default().handlers(2), options()).await;
    let (mut client, connection) = connect(&running).await;
    let mut tasks = Vec::new();
    for name in ["a", "b"] {
        let (parts, body) = post_of(&hold(name, HoldMode::Waits)).into_parts();
        soon(std::future::poll_fn(|cx| client.poll_ready(cx))).await.unwrap();
        let (response, mut stream) = client.send_request(Request::from_parts(parts, ()), false).unwrap();
        stream.send_data(body, true).unwrap();
        running.gate.started(name).await;
        tasks.push((response, stream));
    }
    connection.abort();
    let _ = soon(connection).await;
    let mut dropped =
        [running.gate.event().await, running.gate.event().await].map(|event| format!("{event:?}"));
    dropped.sort();
    assert_eq!(dropped, [r#"Dropped("a")"#, r#"Dropped("b")"#]);
    drop((client, tasks));
    census.is_back("a connection").await;
}

#[tokio::test]
async fn a_shutdown_announces_the_end_and_lets_requests_end() {
    let mut server = serve(HttpOptions::default()).await;
    let (mut client, connection) = connect(&server).await;
    let mut other = client.clone();
    let held = tokio::spawn(async move {
        let (status, _, body) = send(&mut other, post_of(&hold("held", HoldMode::Waits))).await;
        (status, rest(body).await)
    });
    server.gate.started("held").await;
    let (mut idle, idle_connection) = connect(&server).await;
    receive_echo(&mut idle, 1, "x").await;
    server.shutdown.send(()).unwrap();
    // GOAWAY: nothing can begin, and a connection without requests ends.
    soon(idle_connection).await.unwrap().unwrap();
    drop(idle);
    soon(async {
        while std::future::poll_fn(|cx| client.poll_ready(cx)).await.is_ok() {
            tokio::task::yield_now().await
        }
    })
    .await;
    server.gate.open("held");
    let (status, body) = soon(held).await.unwrap();
    assert_eq!((status, body.contains("held")), (200, true), "{body}");
    drop(client);
    soon(connection).await.unwrap().unwrap();
    soon(server.ended).await.unwrap().unwrap();
}

/// A connection without a stream makes room for another, and one with a stream does not.
#[tokio::test]
async fn a_connection_without_a_stream_is_idle() {
    let mut server = serve(HttpOptions::default().connections(2)).await;
    let (mut busy, _connection) = connect(&server).await;
    let (parts, body) = post_of(&hold("a", HoldMode::Waits)).into_parts();
    let (response, mut stream) = busy.send_request(Request::from_parts(parts, ()), false).unwrap();
    stream.send_data(body, true).unwrap();
    server.gate.started("a").await;
    let (mut idle, idle_connection) = connect(&server).await;
    receive_echo(&mut idle, 1, "x").await;
    let mut next = Client::new(&server).await;
    next.send(text(1, "echo", "x", "")).await;
    next.receive_result(1, "x").await;
    soon(idle_connection).await.unwrap().unwrap();
    server.gate.open("a");
    assert_eq!(soon(response).await.unwrap().status(), 200);
}

/// Frames written by hand.
struct Frames {
    stream: TcpStream,
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const INITIAL_WINDOW: u16 = 4;

const NO_ERROR: u32 = 0;
const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const FRAME_SIZE_ERROR: u32 = 6;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A string or a number of HPACK with a prefix of seven bits.
fn string(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match text.len() {
        short @ 0..127 => bytes.push(short as u8),
        long => {
            bytes.push(127);
            let mut rest = long - 127;
            while rest >= 128 {
                bytes.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            bytes.push(rest as u8);
        }
    }
    bytes.extend(text);
    bytes
}

/// The head of a correct POST of this message, with further fields.
fn head(message: &Value, more: &[(&str, &str)]) -> Vec<u8> {
    head_of("/mcp", message, more)
}

fn head_of(path: &str, message: &Value, more: &[(&str, &str)]) -> Vec<u8> {
    let request = post_of(message);
    let fields = request.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
    let all = [(":path", path), (":authority", "localhost")].into_iter().chain(fields);
    // `:method: POST` and `:scheme: http` are in the static table.
    [vec![0x83, 0x86], fields_of(all.chain(more.iter().copied()))].concat()
}

/// Fields in HPACK, each as it is.
fn fields_of<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        block.extend(string(name.as_bytes()));
        block.extend(string(value.as_bytes()));
    }
    block
}

fn setting(name: u16, value: u32) -> Vec<u8> {
    [&name.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

impl Frames {
    /// Sends the preface and these settings.
    async fn open(server: &Running, settings: &[u8]) -> Self {
        let mut stream = soon(TcpStream::connect(server.address)).await.unwrap();
        soon(stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")).await.unwrap();
        soon(stream.write_all(&frame(SETTINGS, 0, 0, settings))).await.unwrap();
        Self { stream }
    }

    async fn send(&mut self, frames: &[u8]) {
        soon(self.stream.write_all(frames)).await.unwrap();
    }

    /// Returns the next frame with its kind, its flags, its stream and its payload; `None` once the connection has ended.
    async fn next(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        next_of(&mut self.stream).await
    }

    /// Returns the code of a RST_STREAM or GOAWAY frame for this stream; 0 is the connection.
    async fn error_of(&mut self, stream: u32) -> Option<u32> {
        while let Some((kind, _, of, payload)) = self.next().await {
            let at = if kind == GOAWAY { 4 } else { 0 };
            if matches!(kind, RST_STREAM | GOAWAY) && of == stream {
                return Some(u32::from_be_bytes(payload[at..at + 4].try_into().unwrap()));
            }
        }
        None
    }
}

async fn next_of(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<(u8, u8, u32, Vec<u8>)> {
    let mut start = [0; 9];
    soon(stream.read_exact(&mut start)).await.ok()?;
    let length = u32::from_be_bytes([0, start[0], start[1], start[2]]) as usize;
    let mut payload = vec![0; length];
    soon(stream.read_exact(&mut payload)).await.ok()?;
    Some((start[3], start[4], u32::from_be_bytes(start[5..9].try_into().unwrap()), payload))
}

/// A flood ends its connection, and nothing else.
#[tokio::test]
async fn a_flood_of_frames_costs_its_connection_alone() {
    let (_server, running, census) = running(Limits::default(), options()).await;
    let call = head(&echo(1, "x"), &[]);
    let open = frame(HEADERS, END_HEADERS, 1, &call);
    let many = |count: u32, frames: &dyn Fn(u32) -> Vec<u8>| (0..count).flat_map(frames).collect::<Vec<u8>>();
    let resets = |number: u32| {
        let stream = 2 * number + 1;
        [frame(HEADERS, END_HEADERS, stream, &call), frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())]
            .concat()
    };
    let begun = frame(HEADERS, 0, 1, &call);
    let field = [&[0_u8][..], &string(b"x"), &string(&[b'y'; 8000])].concat();
    for (what, sent, code) in [
        ("resets", many(2000, &resets), Some(ENHANCE_YOUR_CALM)),
        (
            "small continuations",
            [begun.clone(), many(20_000, &|_| frame(CONTINUATION, 0, 1, &[]))].concat(),
            Some(ENHANCE_YOUR_CALM),
        ),
        (
            "large continuations",
            [begun, many(200, &|_| frame(CONTINUATION, 0, 1, &field))].concat(),
            Some(ENHANCE_YOUR_CALM),
        ),
        ("settings", many(60_000, &|_| frame(SETTINGS, 0, 0, &[])), None),
        ("pings", many(30_000, &|_| frame(PING, 0, 0, &[0; 8])), None),
        ("priorities", many(30_000, &|_| frame(2, 0, 3, &[0, 0, 0, 0, 1])), None),
        ("unknown frames", many(30_000, &|_| frame(99, 0, 0, b"unknown")), None),
        ("windows", many(40_000, &|_| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])), None),
        (
            "data without bytes",
            [open.clone(), many(60_000, &|_| frame(DATA, 0, 1, &[]))].concat(),
            Some(ENHANCE_YOUR_CALM),
        ),
        ("a window of nothing", frame(WINDOW_UPDATE, 0, 0, &[0; 4]), Some(PROTOCOL_ERROR)),
        (
            "a window too large",
            frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            Some(FLOW_CONTROL_ERROR),
        ),
        ("a frame too large", frame(DATA, 0, 1, &[0; 20_000]), Some(FRAME_SIZE_ERROR)),
        ("a stream of the server", frame(HEADERS, END_HEADERS, 2, &call), Some(PROTOCOL_ERROR)),
    ] {
        let mut client = Frames::open(&running, &[]).await;
        let (mut read, mut write) = client.stream.split();
        // The server may have closed before all is written.
        let write = async {
            let _ = soon(write.write_all(&sent)).await;
        };
        let read = async {
            let mut last = None;
            while let Some((kind, _, _, payload)) = next_of(&mut read).await {
                if kind == GOAWAY {
                    last = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
                }
            }
            last
        };
        let (last, ()) = tokio::join!(read, write);
        // The code may be lost with the connection, if the client still writes.
        assert!(last == code || last.is_none(), "{what}: {last:?}");
        drop(client);
        census.is_back(what).await;
        let mut good = Client::new(&running).await;
        good.send(text(1, "echo", "x", "")).await;
        good.receive_result(1, "x").await;
        drop(good);
        census.is_back(what).await;
    }
}

/// A head over the limit, and one stream more than allowed, cost their stream.
#[tokio::test]
async fn a_stream_over_a_limit_is_refused() {
    let (_server, mut running, _) = running(Limits::default(), options().max_head(4000)).await;
    let mut client = Frames::open(&running, &[]).await;
    let long = "y".repeat(5000);
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &head(&echo(1, "x"), &[("x", &long)]))).await;
    loop {
        let (kind, _, stream, payload) = client.next().await.unwrap();
        if (kind, stream) == (HEADERS, 1) {
            // `:status`, and 431 in the code of HPACK.
            assert!(payload.starts_with(&[0x48, 0x83, 0x69, 0x90, 0xff]), "{payload:?}");
            break;
        }
    }
    for number in 0..=100 {
        let (stream, name) = (2 * number + 3, format!("held {number}"));
        let message = hold(&name, HoldMode::Waits);
        client.send(&frame(HEADERS, END_HEADERS, stream, &head(&message, &[]))).await;
        client.send(&frame(DATA, END_STREAM, stream, message.to_string().as_bytes())).await;
        if number < 100 {
            running.gate.started(&name).await;
        } else {
            assert_eq!(client.error_of(stream).await, Some(REFUSED_STREAM));
        }
    }
    assert!(running.gate.is_quiet());
}

/// Trailers change nothing of their request, and a fragment is no part of a path: a peer that sends pseudo-header
/// fields where none may be, or a path of a browser, gets its own answer or none.
#[tokio::test]
async fn trailers_and_fragments_change_no_request() {
    let server = serve(HttpOptions::default()).await;
    let trailers = |fields: &[(&'static str, &'static str)]| Some(fields.to_vec());
    for (what, path, trailers, answered) in [
        ("no trailers", "/mcp", None, true),
        ("a trailer", "/mcp", trailers(&[("x-more", "and more")]), true),
        (
            "headers of a request",
            "/mcp",
            trailers(&[("mcp-method", "tools/list"), ("mcp-name", "other")]),
            true,
        ),
        (
            "another host",
            "/mcp",
            trailers(&[("host", "evil.example"), ("origin", "https://evil.example")]),
            true,
        ),
        ("a token", "/mcp", trailers(&[("authorization", "Bearer other")]), true),
        // > Pseudo-header fields MUST NOT appear in a trailer section.
        ("a path", "/mcp", trailers(&[(":path", "/other")]), true),
        ("a status", "/mcp", trailers(&[(":status", "500")]), true),
        ("a fragment", "/mcp#other", None, true),
        ("a fragment and a trailer", "/mcp#", trailers(&[(":path", "/other#mcp")]), true),
        ("a fragment of another path", "/other#/mcp", None, false),
    ] {
        let mut client = Frames::open(&server, &[]).await;
        let message = echo(1, "itself");
        client.send(&frame(HEADERS, END_HEADERS, 1, &head_of(path, &message, &[]))).await;
        let end = if trailers.is_none() { END_STREAM } else { 0 };
        client.send(&frame(DATA, end, 1, message.to_string().as_bytes())).await;
        if let Some(fields) = trailers {
            client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields_of(fields))).await;
        }
        let mut text = Vec::new();
        while let Some((kind, flags, stream, payload)) = client.next().await {
            assert!(kind != GOAWAY, "{what}: the connection ended");
            if stream == 1 {
                assert!(kind != RST_STREAM, "{what}: {payload:?}");
                text.extend(if kind == DATA { payload } else { Vec::new() });
                if flags & END_STREAM != 0 {
                    break;
                }
            }
        }
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.contains("itself"), answered, "{what}: {text}");
    }
}

/// Streams that stay open leave a quarter to callers with a principal, of whom each may have a quarter.
#[tokio::test]
async fn anonymous_streams_leave_places_for_named_callers() {
    let server = fixture(|builder| builder.bind_principal(by_header).list_changed(true)).server;
    let running = serve_this(server.clone(), HttpOptions::default().connections(400)).await;
    let census = LeakCheck::of(&server);
    let mut connections = Vec::new();
    for _ in 0..6 {
        connections.push(connect(&running).await);
    }
    let listen = request(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut open = Vec::new();
    for (at, user, sent, expected) in [
        (0, None, 100, 100),
        (1, None, 100, 100),
        (2, None, 100, 100),
        (3, None, 5, 0),
        (3, Some("anna@app"), 99, 99),
        (4, Some("anna@app"), 3, 1),
        // All 400 are taken.
        (5, Some("bert@app"), 3, 0),
    ] {
        let before = open.len();
        for _ in 0..sent {
            let mut request = post_of(&listen);
            if let Some(user) = user {
                request.headers_mut().insert("x-user", user.parse().unwrap());
            }
            let (status, headers, body) = send(&mut connections[at].0, request).await;
            match status {
                200 => open.push(body),
                status => assert_eq!((status, &headers["retry-after"]), (503, &"1".parse().unwrap())),
            }
        }
        assert_eq!(open.len() - before, expected, "{at} {user:?}");
    }
    // The places are free again with their streams.
    drop(open);
    let mut request = post_of(&echo(1, "x"));
    request.headers_mut().insert("x-user", "bert@app".parse().unwrap());
    soon(async {
        while send(&mut connections[5].0, request.clone()).await.0 != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for (client, connection) in connections {
        drop(client);
        connection.abort();
    }
    census.is_back("streams").await;
}

/// A client that does not allow the server to send the response loses the request, and not its connection.
#[tokio::test]
async fn a_stream_that_is_not_read_is_cancelled() {
    let hasty = HttpOptions::default().write_timeout(SHORT);
    let (server, mut running, census) = running(Limits::default(), hasty).await;
    for how in [HoldMode::Reports, HoldMode::Floods] {
        let mut client = Frames::open(&running, &setting(INITIAL_WINDOW, 0)).await;
        let message = hold("a", how);
        client.send(&frame(HEADERS, END_HEADERS, 1, &head(&message, &[]))).await;
        client.send(&frame(DATA, END_STREAM, 1, message.to_string().as_bytes())).await;
        running.gate.started("a").await;
        running.gate.dropped("a").await;
        assert_eq!(client.error_of(1).await, Some(CANCEL), "{how:?}");
        // Another stream of the connection is read.
        client.send(&frame(SETTINGS, 0, 0, &setting(INITIAL_WINDOW, 65_535))).await;
        let message = echo(2, "later");
        client.send(&frame(HEADERS, END_HEADERS, 3, &head(&message, &[]))).await;
        client.send(&frame(DATA, END_STREAM, 3, message.to_string().as_bytes())).await;
        loop {
            let (kind, _, stream, payload) = client.next().await.unwrap();
            if (kind, stream) == (DATA, 3) {
                assert!(String::from_utf8_lossy(&payload).contains("later"));
                break;
            }
        }
        drop(client);
        census.is_back(&format!("{how:?}")).await;
    }
    // A large reply is sent in pieces, of which each waits.
    let mut client = Frames::open(&running, &setting(INITIAL_WINDOW, 10)).await;
    let message = request(1, "tools/call", json!({"name": "large", "arguments": {}}));
    client.send(&frame(HEADERS, END_HEADERS, 1, &head(&message, &[]))).await;
    client.send(&frame(DATA, END_STREAM, 1, message.to_string().as_bytes())).await;
    assert_eq!(client.error_of(1).await, Some(CANCEL));
    assert_eq!(load(&server), (0, 0));
    drop(client);
    census.is_back("a large reply").await;
}

/// A connection that sends nothing, or no request, ends with the time for a head.
#[tokio::test]
async fn a_connection_without_a_request_ends() {
    let hasty = options().header_timeout(Duration::from_millis(50));
    let (_server, running, census) = running(Limits::default(), hasty).await;
    for begins in ["", "P", "PRI", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n"] {
        let mut client = Client::new(&running).await;
        client.send(begins).await;
        let _ = soon(client.stream.read_to_end(&mut client.ahead)).await;
        assert!(!client.ahead.starts_with(b"HTTP/1"), "{begins}");
        drop(client);
        census.is_back(begins).await;
    }
    let mut client = Frames::open(&running, &[]).await;
    assert_eq!(client.error_of(0).await, Some(NO_ERROR));
    drop(client);
    census.is_back("a preface").await;
}

/// A request that crosses the end of its connection does not begin: its handler would be cancelled with the connection.
#[tokio::test]
async fn a_request_that_comes_too_late_does_not_begin() {
    let mut server = serve(HttpOptions::default().header_timeout(Duration::from_millis(50))).await;
    let mut client = Frames::open(&server, &[]).await;
    // The ping that follows, and asks if more is under way, has no answer.
    assert_eq!(client.error_of(0).await, Some(NO_ERROR));
    let message = hold("a", HoldMode::Waits);
    // The connection may have ended already.
    let mut late = frame(HEADERS, END_HEADERS, 1, &head(&message, &[]));
    late.extend(frame(DATA, END_STREAM, 1, message.to_string().as_bytes()));
    let _ = soon(client.stream.write_all(&late)).await;
    while client.next().await.is_some() {}
    assert!(server.gate.is_quiet());
}
