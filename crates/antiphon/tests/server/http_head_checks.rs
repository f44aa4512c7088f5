//! The HTTP checks: their order, and what each accepts and refuses in the head of a request.

use crate::common::{
    fixture,
    post::{correct, post, post_body, set},
    request,
};
use antiphon::serve::http::{HttpOptions, HttpService};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use std::convert::Infallible;

fn service() -> HttpService {
    HttpService::new(fixture(|builder| builder).server, HttpOptions::default())
}

/// A request on its way to be broken.
struct BrokenRequest {
    request: Request<Bytes>,
    message: Value,
    /// The text of the message is not all there.
    cut: bool,
    /// The body never comes.
    late: bool,
}

type Break = fn(&mut BrokenRequest);

/// Each check with what breaks it, and its answer.
const CHECKS: &[(&str, Break, (u16, i64))] = &[
    ("method", |bent| *bent.request.method_mut() = Method::GET, (405, 0)),
    ("size", |bent| set(&mut bent.request, "content-length", &["4194305"]), (413, 0)),
    ("transfer coding", |bent| set(&mut bent.request, "transfer-encoding", &["gzip, chunked"]), (501, 0)),
    ("content coding", |bent| set(&mut bent.request, "content-encoding", &["gzip"]), (415, 0)),
    ("content type", |bent| set(&mut bent.request, "content-type", &["text/plain"]), (415, 0)),
    ("host", |bent| set(&mut bent.request, "host", &["evil.example.com"]), (421, 0)),
    ("origin", |bent| set(&mut bent.request, "origin", &["http://evil.example.com"]), (403, 0)),
    ("accept", |bent| set(&mut bent.request, "accept", &["text/html"]), (406, 0)),
    ("body time", |bent| bent.late = true, (408, 0)),
    ("JSON", |bent| bent.cut = true, (400, -32700)),
    ("envelope", |bent| bent.message["jsonrpc"] = json!("1.0"), (400, -32600)),
    ("notification", |bent| drop(bent.message.as_object_mut().map(|message| message.remove("id"))), (202, 0)),
    (
        "initialize",
        |bent| {
            bent.message["method"] = json!("initialize");
            bent.message["params"] = json!({"protocolVersion": "2025-11-25"});
        },
        (400, -32022),
    ),
    ("_meta", |bent| bent.message["params"]["_meta"] = json!({}), (400, -32602)),
    ("agreement", |bent| set(&mut bent.request, "mcp-method", &["tools/list"]), (400, -32020)),
    (
        "version",
        |bent| {
            bent.message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
            set(&mut bent.request, "mcp-protocol-version", &["2099-01-01"]);
        },
        (400, -32022),
    ),
    (
        "dispatch",
        |bent| {
            bent.message["method"] = json!("no/such");
            set(&mut bent.request, "mcp-method", &["no/such"]);
        },
        (404, -32601),
    ),
    ("nothing", |_| (), (200, 0)),
];

/// Breaks what these checks require, the last first.
fn broken(checks: &[(&str, Break, (u16, i64))]) -> Request<UnsyncBoxBody<Bytes, Infallible>> {
    let message = request(1, "server/discover", json!({}));
    let mut bent = BrokenRequest { request: correct(&message), message, cut: false, late: false };
    for (_, break_it, _) in checks.iter().rev() {
        break_it(&mut bent);
    }
    let mut text = bent.message.to_string();
    if bent.cut {
        text.pop();
    }
    let never = futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>();
    let body =
        if bent.late { StreamBody::new(never).boxed_unsync() } else { Full::from(text).boxed_unsync() };
    bent.request.map(|_| body)
}

/// The answer of a check does not depend on later checks.
#[tokio::test(start_paused = true)]
async fn the_checks_run_in_their_order() {
    let modern = fixture(|builder| builder.modern_only(true)).server;
    for (service, opens_sessions) in
        [(HttpService::new(modern, HttpOptions::default()), false), (service(), true)]
    {
        for (index, (name, _, expected)) in CHECKS.iter().enumerate() {
            // Where there are sessions, this is how one begins.
            if opens_sessions && *name == "initialize" {
                continue;
            }
            let mut reply = post_body(&service, broken(&CHECKS[index..])).await;
            // Where the body never comes, each refusal before it ends the connection.
            let is_late = CHECKS[index..].iter().any(|(name, ..)| *name == "body time");
            if is_late && !matches!(expected.0, 408 | 413) {
                assert_eq!(reply.headers.remove("connection").unwrap(), "close", "{name}");
            }
            reply.check(&format!("{name} and all after it"), *expected);
            let request = broken(&CHECKS[index..=index]);
            post_body(&service, request).await.check(&format!("{name} alone"), *expected);
        }
    }
}

/// A request that is answered.
const TEXT: (u16, i64) = (200, 0);

/// Values of each header, with the status and the code of the error.
const HEADER_VALUES: &[(&str, &[&str], (u16, i64))] = &[
    ("content-type", &["application/json; charset=utf-8"], TEXT),
    ("content-type", &["APPLICATION/JSON"], TEXT),
    ("content-type", &["application/json ;charset=\"utf-8\""], TEXT),
    ("content-type", &["text/plain"], (415, 0)),
    ("content-type", &["application/json-seq"], (415, 0)),
    ("content-type", &["text/plain; application/json"], (415, 0)),
    ("content-type", &[""], (415, 0)),
    ("content-type", &[], (415, 0)),
    ("accept", &["*/*"], TEXT),
    ("accept", &["application/*, text/*"], TEXT),
    ("accept", &["text/event-stream;q=0.5,application/json;q=0.9"], TEXT),
    ("accept", &["Application/JSON, TEXT/Event-Stream"], TEXT),
    ("accept", &["application/json", "text/event-stream"], TEXT),
    ("accept", &["text/html, application/json;v=1", "image/*, */*;q=0.1"], TEXT),
    ("accept", &["application/json"], TEXT),
    ("accept", &["application/*"], TEXT),
    ("accept", &["application/json, text/event-streams"], TEXT),
    ("accept", &["application/json, text/event-stream;q=0"], TEXT),
    ("accept", &[""], TEXT),
    ("accept", &[], TEXT),
    ("accept", &["text/event-streams, application/jsonp"], (406, 0)),
    ("accept", &["*/*;q=0"], (406, 0)),
    ("accept", &["application/json;q=0, text/event-stream;q=0.0, text/html"], (406, 0)),
    ("host", &["localhost"], TEXT),
    ("host", &["LocalHost:8000"], TEXT),
    ("host", &["127.0.0.1"], TEXT),
    ("host", &["127.0.0.1:65535"], TEXT),
    ("host", &["[::1]"], TEXT),
    ("host", &["[::1]:8000"], TEXT),
    ("host", &[], (421, 0)),
    ("host", &[""], (421, 0)),
    ("host", &["evil.example.com"], (421, 0)),
    ("host", &["127.0.0.1.evil.example.com"], (421, 0)),
    ("host", &["localhost.evil.example.com:80"], (421, 0)),
    ("host", &["localhost:80@evil.example.com"], (421, 0)),
    ("host", &["0.0.0.0:8000"], (421, 0)),
    ("host", &["[::2]:8000"], (421, 0)),
    ("host", &["evil.example.com", "localhost"], (421, 0)),
    ("host", &["localhost", "evil.example.com"], (421, 0)),
    ("origin", &[], TEXT),
    ("origin", &["http://127.0.0.1:8000"], TEXT),
    ("origin", &["http://localhost:3000"], TEXT),
    ("origin", &["https://[::1]"], TEXT),
    ("origin", &["http://evil.example.com"], (403, 0)),
    ("origin", &["http://localhost.evil.example.com"], (403, 0)),
    ("origin", &["http://localhost:80@evil.example.com"], (403, 0)),
    ("origin", &["http://localhost http://evil.example.com"], (403, 0)),
    ("origin", &["http://localhost", "http://evil.example.com"], (403, 0)),
    ("origin", &["chrome-extension://localhost"], (403, 0)),
    ("origin", &["localhost"], (403, 0)),
    ("origin", &["null"], (403, 0)),
    ("origin", &[""], (403, 0)),
    ("content-length", &["4194304"], TEXT),
    ("content-length", &["4194305"], (413, 0)),
    ("content-length", &["18446744073709551616"], TEXT),
    ("transfer-encoding", &["chunked"], TEXT),
    ("transfer-encoding", &["Chunked"], TEXT),
    ("transfer-encoding", &["gzip, chunked"], (501, 0)),
    ("transfer-encoding", &["gzip", "chunked"], (501, 0)),
    ("transfer-encoding", &["identity"], (501, 0)),
    ("content-encoding", &["identity"], TEXT),
    ("content-encoding", &["Identity"], TEXT),
    ("content-encoding", &["gzip"], (415, 0)),
    ("content-encoding", &["identity, br"], (415, 0)),
    ("content-encoding", &["identity", "zstd"], (415, 0)),
    ("mcp-session-id", &["1234"], TEXT),
    ("last-event-id", &["1234"], TEXT),
    ("mcp-protocol-version", &[], (400, -32020)),
    ("mcp-protocol-version", &[""], (400, -32020)),
    ("mcp-protocol-version", &["2025-11-25"], (400, -32020)),
    ("mcp-protocol-version", &["2026-07-28", "2026-07-28"], (400, -32020)),
    ("mcp-protocol-version", &["2026-07-28, 2026-07-28"], (400, -32020)),
    ("mcp-method", &[], (400, -32020)),
    ("mcp-method", &["tools/list"], (400, -32020)),
    ("mcp-method", &["TOOLS/CALL"], (400, -32020)),
    ("mcp-method", &["tools/call", "tools/call"], (400, -32020)),
    ("mcp-method", &["tools/cäll"], (400, -32020)),
    ("mcp-name", &["=?base64?ZWNobw==?="], TEXT),
    ("mcp-name", &[], (400, -32020)),
    ("mcp-name", &[""], (400, -32020)),
    ("mcp-name", &["other"], (400, -32020)),
    ("mcp-name", &["ECHO"], (400, -32020)),
    ("mcp-name", &["echo", "echo"], (400, -32020)),
    ("mcp-name", &["echo", "other"], (400, -32020)),
    ("mcp-name", &["écho"], (400, -32020)),
    ("mcp-name", &["ZWNobw=="], (400, -32020)),
    ("mcp-name", &["=?base64?b3RoZXI=?="], (400, -32020)),
    ("mcp-name", &["=?base64?ZWNobw?="], (400, -32020)),
    ("mcp-name", &["=?base64?ZWN!bw==?="], (400, -32020)),
    ("mcp-name", &["=?base64?/w==?="], (400, -32020)),
    ("mcp-name", &["=?BASE64?ZWNobw==?="], (400, -32020)),
    ("mcp-name", &["=?base64?ZWNobw=="], (400, -32020)),
];

#[tokio::test]
async fn what_each_header_may_hold() {
    let service = service();
    for &(header, values, expected) in HEADER_VALUES {
        let mut request =
            correct(&request(1, "tools/call", json!({"name": "echo", "arguments": {"name": "x"}})));
        set(&mut request, header, values);
        let what = format!("{header}: {values:?}");
        let got = post(&service, request).await;
        got.check(&what, expected);
        if expected.1 != 0 {
            // > Error responses **MUST** include the same ID as the request they correspond to
            assert_eq!(got.json()["id"], 1, "{what}");
        }
    }
}

#[tokio::test]
async fn only_post_whatever_the_path() {
    let service = service();
    for (method, path, expected) in [
        (Method::POST, "/mcp", (200, 0)),
        (Method::POST, "/mcp?key=1", (200, 0)),
        (Method::POST, "http://localhost:1/mcp", (200, 0)),
        (Method::POST, "http://evil.example.com/mcp", (421, 0)),
        // A router has selected the path.
        (Method::POST, "/", (200, 0)),
        (Method::POST, "/mcp/", (200, 0)),
        (Method::GET, "/.well-known/oauth-protected-resource", (405, 0)),
        (Method::GET, "/mcp", (405, 0)),
        (Method::HEAD, "/mcp", (405, 0)),
        (Method::PUT, "/mcp", (405, 0)),
        (Method::DELETE, "/mcp", (405, 0)),
        (Method::OPTIONS, "/mcp", (405, 0)),
    ] {
        let mut request = correct(&request(1, "server/discover", json!({})));
        let what = format!("{method} {path}");
        *request.uri_mut() = path.parse().unwrap();
        *request.method_mut() = method;
        post(&service, request).await.check(&what, expected);
    }
}

#[tokio::test]
async fn options_open_what_they_name_and_nothing_else() {
    let server = fixture(|builder| builder).server;
    let default = HttpOptions::default;
    for (what, options, path, host, origin, expected) in [
        ("any path", default(), "/x/y", "localhost", None, (200, 0)),
        ("whatever the option", default().path("/x"), "/mcp", "localhost", None, (200, 0)),
        ("a host", default().allow_host("A.example"), "/mcp", "a.EXAMPLE:80", None, (200, 0)),
        ("loopback too", default().allow_host("a.example"), "/mcp", "localhost", None, (200, 0)),
        ("another", default().allow_host("a.example"), "/mcp", "b.example", None, (421, 0)),
        (
            "its pages",
            default().allow_host("a.example"),
            "/mcp",
            "a.example",
            Some("https://a.example"),
            (200, 0),
        ),
        ("any host", default().any_host(true), "/mcp", "b.example", None, (200, 0)),
        ("not any page", default().any_host(true), "/mcp", "b.example", Some("https://b.example"), (403, 0)),
        ("no host at all", default().any_host(true), "/mcp", "", None, (200, 0)),
        (
            "a page",
            default().allow_origin("https://w.example/"),
            "/mcp",
            "localhost",
            Some("https://w.example"),
            (200, 0),
        ),
        (
            "its http",
            default().allow_origin("https://w.example"),
            "/mcp",
            "localhost",
            Some("http://w.example"),
            (403, 0),
        ),
    ] {
        let mut request = correct(&request(1, "server/discover", json!({})));
        *request.uri_mut() = path.parse().unwrap();
        set(&mut request, "host", &[host]);
        set(&mut request, "origin", origin.as_slice());
        let service = HttpService::new(server.clone(), options);
        post(&service, request).await.check(what, expected);
    }
}

#[tokio::test]
async fn a_body_is_counted_whatever_its_length_claims() {
    let message = request(1, "server/discover", json!({})).to_string();
    for (what, length, claimed, expected) in [
        ("as long as allowed", 4 << 20, None, (200, 0)),
        ("one more", (4 << 20) + 1, None, (413, 0)),
        ("one more than it says", (4 << 20) + 1, Some("7"), (413, 0)),
    ] {
        let mut request = correct(&request(1, "server/discover", json!({})));
        set(&mut request, "content-length", claimed.as_slice());
        let mut body = message.clone().into_bytes();
        body.resize(length, b' ');
        let request = request.map(|_| Bytes::from(body));
        post(&service(), request).await.check(what, expected);
    }
}
