//! The function, with events as the platform sends them: those of an HTTP API (payload format 2.0) and of a function URL.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use antiphon_example_lambda::{Function, Settings};
use lambda_http::{Body, Response};
use serde_json::{Value, json};
use std::{fs, path::Path};

const URL_HOST: &str = "abcdefghij1234567890.lambda-url.eu-central-1.on.aws";

/// A process of the function. All have the same keys.
fn function(host: &str, store: Option<&str>) -> Function {
    let keys = format!("derive:{}", "of-the-tests-".repeat(3));
    Function::new(Settings { keys, host: host.to_owned(), store: store.map(str::to_owned) })
}

fn event(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("events").join(format!("{name}.json"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

async fn send(function: &Function, event: &Value) -> Response<Body> {
    let request = lambda_http::request::from_str(&event.to_string()).unwrap();
    function.answer(request).await.unwrap()
}

/// The message in a response: JSON, or the last event of a stream.
fn message(response: &Response<Body>) -> Value {
    let text = std::str::from_utf8(response.body()).unwrap();
    let text = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap_or(text);
    serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"))
}

/// The call asks, the process is gone, and another one finishes the call: nothing but the keys is shared.
#[tokio::test]
async fn any_process_finishes_the_call() {
    for (name, host) in [("http_api_call", "mcp.example.com"), ("function_url_call", URL_HOST)] {
        let first = event(name);
        let asked = message(&send(&function(host, None), &first).await);
        assert_eq!(asked["result"]["resultType"], "input_required", "{name}: {asked}");
        let (key, question) = asked["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(question["params"]["message"], "Delete orders?", "{name}");
        // As the host sends it: the same request, with the state and the answer.
        let mut second = event("http_api_call");
        second["headers"]["host"] = json!(host);
        let mut body: Value = serde_json::from_str(second["body"].as_str().unwrap()).unwrap();
        body["params"]["requestState"] = asked["result"]["requestState"].clone();
        body["params"]["inputResponses"] =
            json!({ key: {"action": "accept", "content": {"approved": true}} });
        second["body"] = json!(body.to_string());
        second["headers"]["content-length"] = json!(body.to_string().len().to_string());
        let done = message(&send(&function(host, None), &second).await);
        assert_eq!(done["result"]["content"][0]["text"], "orders is deleted.", "{name}: {done}");
    }
}

/// Liveness needs no store; a call without the store is told to come again.
#[tokio::test]
async fn liveness_without_upstreams() {
    let nowhere = function("mcp.example.com", Some("redis://127.0.0.1:1"));
    let alive = send(&nowhere, &event("liveness")).await;
    assert_eq!((alive.status().as_u16(), &**alive.body()), (200, &b"ok"[..]));
    for _ in 0..2 {
        let refused = send(&nowhere, &event("http_api_call")).await;
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &"5".parse().unwrap())
        );
    }
    let unknown = function("mcp.example.com", Some("mysql://127.0.0.1"));
    assert_eq!(send(&unknown, &event("http_api_call")).await.status(), 503);
}

/// Nothing waits in a process that is frozen: a subscription ends at once, and a session is not opened.
#[tokio::test]
async fn nothing_waits_in_a_frozen_process() {
    let function = function("mcp.example.com", None);
    let ended = send(&function, &event("subscription")).await;
    let text = std::str::from_utf8(ended.body()).unwrap();
    assert!(
        text.contains("notifications/subscriptions/acknowledged") && text.contains("databases://all"),
        "{text}"
    );
    assert_eq!(message(&ended)["result"]["resultType"], "complete", "{text}");
    let refused = message(&send(&function, &event("session")).await);
    assert_eq!(refused["error"]["data"]["supported"], json!(["2026-07-28"]), "{refused}");
    assert_eq!(send(&function, &event("another_host")).await.status(), 421);
}
