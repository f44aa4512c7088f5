//! The form of a response: one JSON text or an event stream, by what the client reads and by how long the handler is silent.

use crate::common::{
    fixture,
    post::{correct, post, set},
    request,
    session::{everything, initialize, plain},
};
use antiphon::{
    serve::http::{HttpOptions, HttpService},
    server::{Ctx, NoArguments, Prompt, Resource, Tool},
    wire::content::ResourceContents,
};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tower_service::Service as _;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const BOTH: &str = "application/json, text/event-stream";

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

/// An endpoint with handlers that are silent for 100 seconds, and comments after 15.
fn service() -> HttpService {
    let slow_step = async |ctx: &Ctx, _: NoArguments| {
        let step = ctx.step("wait", async |_| {
            seconds(100).await;
            Ok(1_u32)
        });
        step.await.map(|_| "done")
    };
    let server = fixture(|builder| {
        builder
            .list_changed(true)
            .tool(Tool::new("slow", async |_: &Ctx, _: NoArguments| {
                seconds(100).await;
                "done"
            }))
            .tool(Tool::new("slow_step", slow_step))
            .tool(Tool::new("fails", async |_: &Ctx, _: NoArguments| -> Result<String, String> {
                seconds(100).await;
                Err("done".to_owned())
            }))
            .tool(Tool::new("quick", async |_: &Ctx, _: NoArguments| {
                seconds(10).await;
                "done"
            }))
            .tool(Tool::new("progress", async |ctx: &Ctx, _: NoArguments| {
                seconds(10).await;
                ctx.report_progress(1.0, None, None);
                seconds(20).await;
                "done"
            }))
            .prompt(Prompt::new("slow", async |_: &Ctx, _: NoArguments| {
                seconds(100).await;
                "done".to_owned()
            }))
            .resource(Resource::new("slow://1", "slow", async |_: &Ctx| {
                seconds(100).await;
                ResourceContents::text("slow://1", "done")
            }))
    });
    HttpService::new(server.server, HttpOptions::default().keep_alive_interval(Duration::from_secs(15)))
}

/// A response: its status and type, the seconds until its head, and its body.
struct Response {
    status: u16,
    kind: String,
    head_after: u64,
    body: String,
}

async fn send(service: &HttpService, request: Request<Bytes>) -> Response {
    let begin = Instant::now();
    let (parts, body) = service.clone().call(request.map(Full::new)).await.unwrap().into_parts();
    let head_after = begin.elapsed().as_secs();
    let body = body.collect().await.unwrap().to_bytes();
    let kind = parts.headers.get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
    Response {
        status: parts.status.as_u16(),
        kind: kind.unwrap_or_default(),
        head_after,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

fn call(tool: &str) -> Value {
    request(1, "tools/call", json!({"name": tool, "arguments": {}}))
}

fn accepting(message: &Value, accept: &[&str]) -> Request<Bytes> {
    let mut request = correct(message);
    set(&mut request, "accept", accept);
    request
}

/// Proxies and clients wait a minute or two for the head of a response.
#[tokio::test(start_paused = true)]
async fn a_silent_handler_begins_a_stream_with_a_comment() {
    let service = service();
    let check = async |message: Value, accept: &str, expected: (&str, u64, usize)| {
        let got = send(&service, accepting(&message, &[accept])).await;
        let comments = got.body.matches(":\n\n").count();
        assert_eq!((got.kind.as_str(), got.head_after, comments), expected, "{message} {}", got.body);
        assert!(got.status == 200 && got.body.contains("done"), "{}", got.body);
        assert_eq!(got.body.starts_with(":\n\n"), comments > 0 && expected.1 == 15, "{}", got.body);
        assert_eq!(got.body.matches("data: ").count(), usize::from(got.kind == EVENTS), "{}", got.body);
    };
    check(call("slow"), BOTH, (EVENTS, 15, 6)).await;
    check(call("slow_step"), BOTH, (EVENTS, 15, 6)).await;
    check(call("fails"), BOTH, (EVENTS, 15, 6)).await;
    check(request(1, "prompts/get", json!({"name": "slow"})), BOTH, (EVENTS, 15, 6)).await;
    check(request(1, "resources/read", json!({"uri": "slow://1"})), BOTH, (EVENTS, 15, 6)).await;
    check(call("slow"), "*/*", (EVENTS, 15, 6)).await;
    check(call("slow"), EVENTS, (EVENTS, 15, 6)).await;
    // A reply within the interval is one JSON text.
    check(call("quick"), BOTH, (JSON, 10, 0)).await;
    // A client that reads JSON only waits.
    check(call("slow"), JSON, (JSON, 100, 0)).await;
    check(call("slow"), "application/json, text/event-stream;q=0", (JSON, 100, 0)).await;
}

/// The interval begins with the last message.
#[tokio::test(start_paused = true)]
async fn a_message_begins_the_stream_and_the_interval() {
    let meta = crate::common::with(&crate::common::meta(), json!({"progressToken": 1}));
    let message = request(1, "tools/call", json!({"name": "progress", "arguments": {}, "_meta": meta}));
    let got = send(&service(), correct(&message)).await;
    assert_eq!((got.kind.as_str(), got.head_after), (EVENTS, 10));
    let events: Vec<&str> = got.body.split("\n\n").map(|event| event.get(..6).unwrap_or(event)).collect();
    assert_eq!(events, ["data: ", ":", "data: ", ""], "{}", got.body);
    // The progress is left out of a response that is one JSON text.
    let got = send(&service(), accepting(&message, &[JSON])).await;
    assert_eq!((got.kind.as_str(), got.head_after), (JSON, 30));
    assert!(got.body.contains("done") && !got.body.contains("notifications/progress"), "{}", got.body);
}

/// A client that reads one kind of response, or does not say, gets what fits it.
#[tokio::test(start_paused = true)]
async fn a_response_has_a_form_that_the_client_reads() {
    let service = service();
    let check = async |message: Value, accept: &[&str], expected: (u16, &str, &str)| {
        let got = send(&service, accepting(&message, accept)).await;
        let (status, kind, part) = expected;
        assert_eq!((got.status, got.kind.as_str()), (status, kind), "{message} {accept:?} {}", got.body);
        assert!(got.body.contains(part), "{message} {accept:?} {}", got.body);
    };
    let discover = || request(1, "server/discover", json!({}));
    let listen = || request(1, "subscriptions/listen", json!({"notifications": {}}));
    let unknown = || request(1, "no/such", json!({}));
    for (accept, kind) in [
        (&[][..], JSON),
        (&[BOTH], JSON),
        (&["*/*"], JSON),
        (&[JSON], JSON),
        (&["application/*;q=0.1"], JSON),
        (&[EVENTS], EVENTS),
        (&["text/*", "application/json;q=0"], EVENTS),
        (&["application/json;q=0, */*"], EVENTS),
    ] {
        check(discover(), accept, (200, kind, r#""supportedVersions""#)).await;
        check(call("quick"), accept, (200, kind, "done")).await;
        // The status of an error is more than the event could say.
        check(unknown(), accept, (404, JSON, "-32601")).await;
    }
    for accept in [&[][..], &[BOTH], &[EVENTS], &["*/*"]] {
        check(listen(), accept, (200, EVENTS, "notifications/subscriptions/acknowledged")).await;
    }
    let text = "text/plain; charset=utf-8";
    for accept in [&[JSON][..], &["application/*"], &["*/*, text/event-stream;q=0"]] {
        check(listen(), accept, (406, text, "a subscription is an event stream")).await;
    }
    for accept in [&["text/html"][..], &["*/*;q=0"], &["application/json;q=0"]] {
        check(call("quick"), accept, (406, text, "Accept must list")).await;
    }
}

/// The same in a session of an earlier revision.
#[tokio::test(start_paused = true)]
async fn a_response_in_a_session_has_a_form_that_the_client_reads() {
    let service = service();
    for (accept, kind) in [(&[JSON][..], JSON), (&[EVENTS], EVENTS), (&[], JSON), (&["*/*"], JSON)] {
        let of_2025 = |message: &Value| {
            let mut request = accepting(message, accept);
            for header in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
                set(&mut request, header, &[]);
            }
            request
        };
        let message = plain(1, "initialize", initialize("2025-11-25", everything()));
        let opened = post(&service, of_2025(&message)).await;
        let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
        assert_eq!((opened.status, opened.headers["content-type"].to_str().unwrap()), (200, kind));
        for (method, params, part) in [
            ("ping", json!({}), "result"),
            ("tools/call", json!({"name": "quick", "arguments": {}}), "done"),
            ("prompts/get", json!({"name": "slow"}), "done"),
            ("tools/call", json!({"name": "slow_step", "arguments": {}}), "done"),
        ] {
            let mut request = of_2025(&plain(2, method, params.clone()));
            set(&mut request, "mcp-session-id", &[&session]);
            let got = send(&service, request).await;
            // After a second, the response is a stream, if the client reads one.
            let is_slow = method != "ping" && accept != [JSON];
            let kind = if is_slow { EVENTS } else { kind };
            assert_eq!((got.status, got.kind.as_str()), (200, kind), "{accept:?} {params} {}", got.body);
            assert!(got.body.contains(part), "{accept:?} {params} {}", got.body);
        }
    }
}
