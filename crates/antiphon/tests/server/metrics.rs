//! The metrics of a server, their text for Prometheus, and the routes for operators.

use crate::common::{
    post::post,
    tool_call::{ToolCall, accept},
    *,
};
use antiphon::{
    Error, Result,
    serve::http::{HttpOptions, HttpService},
    server::{Ctx, NoArguments, Server, StepError, Tool, operations::Metrics},
    store::MemoryStore,
};
use http::Request;
use serde_json::{Value, json};
use std::time::Duration;

/// A name, its labels, and the change of the value.
type Change<'a> = (&'a str, &'a [(&'a str, &'a str)], f64);

/// Asserts that these values changed by so much. `begin` is before the work.
fn check(what: &str, (begin, end): (&Metrics, &Metrics), expected: &[Change<'_>]) {
    for (name, labels, more) in expected {
        let is_there = end.to_string().lines().any(|line| line.split(['{', ' ']).next() == Some(*name));
        assert!(is_there, "{what}: there is no {name}");
        let value = |metrics: &Metrics| metrics.value(name, labels).unwrap_or_default();
        assert!((value(end) - value(begin) - more).abs() < 1e-9, "{what}: {name} {labels:?} {more}\n{end}");
    }
}

#[tokio::test]
async fn each_end_of_a_request_is_counted() {
    let failing = Tool::new("fails", async |_: &Ctx, _: NoArguments| -> Result<String> {
        Err(Error::user_facing("no"))
    });
    let server = fixture(|builder| builder.tool(failing)).server;
    const REQUESTS: &str = "mcp_server_operation_duration_seconds_count";
    const CALLS: &str = "antiphon_calls_total";
    let forged = json!({"name": "echo", "arguments": {"name": "a"}, "requestState": "r1.forged"});
    for (what, method, params, expected) in [
        (
            "a result",
            "tools/call",
            json!({"name": "echo", "arguments": {"name": "a"}}),
            &[
                (REQUESTS, &[("mcp_method_name", "tools/call")][..], 1.0),
                (CALLS, &[("outcome", "complete")], 1.0),
                (CALLS, &[("outcome", "error")], 0.0),
                ("antiphon_legs_total", &[], 1.0),
            ][..],
        ),
        (
            "a tool's error",
            "tools/call",
            json!({"name": "fails"}),
            &[
                (REQUESTS, &[("mcp_method_name", "tools/call"), ("error_type", "tool_error")][..], 1.0),
                (CALLS, &[("outcome", "error")], 1.0),
                ("antiphon_refusals_total", &[("reason", "error")], 0.0),
            ][..],
        ),
        (
            "a forged state",
            "tools/call",
            forged,
            &[
                (REQUESTS, &[("mcp_method_name", "tools/call"), ("error_type", "-32602")][..], 1.0),
                ("antiphon_refusals_total", &[("reason", "invalid_request_state")], 1.0),
                // It was not admitted.
                ("antiphon_legs_total", &[], 0.0),
                (CALLS, &[("outcome", "refused")], 0.0),
            ][..],
        ),
        (
            "a list",
            "tools/list",
            json!({}),
            &[(REQUESTS, &[("mcp_method_name", "tools/list")][..], 1.0), ("antiphon_legs_total", &[], 0.0)][..],
        ),
        (
            "an unknown method",
            "secret/method",
            json!({}),
            &[(REQUESTS, &[("mcp_method_name", "_OTHER"), ("error_type", "-32601")][..], 1.0)][..],
        ),
    ] {
        let begin = server.metrics();
        let message = request(1, method, params).to_string();
        server.respond(message.as_bytes(), &Default::default()).await;
        check(what, (&begin, &server.metrics()), expected);
    }
}

/// A tool with two steps around a question.
fn paying() -> Tool {
    Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        ctx.step("look", async |_| Ok(())).await?;
        let sure = ctx.confirm("Really?").key("sure").await?;
        let paid = ctx.step("pay", async |_| Err::<(), _>(StepError::new("no money").into())).await;
        Ok(format!("{sure} {}", paid.is_ok()))
    })
}

#[tokio::test]
async fn asks_answers_steps_and_the_time_of_people_are_counted() {
    for (what, answer, outcome) in [
        ("accepted", accept(json!({"value": true})), "accept"),
        ("declined", json!({"action": "decline"}), "decline"),
        ("cancelled", json!({"action": "cancel"}), "cancel"),
    ] {
        let fixture = fixture(|builder| builder.tool(paying()));
        let server = &fixture.server;
        let begin = server.metrics();
        let mut call = ToolCall::new(json!({}));
        call.leg(server, Value::Null).await;
        fixture.clock.advance(Duration::from_secs(45));
        call.leg(server, json!({"sure": answer})).await;
        let is_refused = outcome != "accept";
        check(
            what,
            (&begin, &server.metrics()),
            &[
                ("antiphon_legs_total", &[], 2.0),
                ("antiphon_asks_total", &[("kind", "form")], 1.0),
                ("antiphon_answers_total", &[("kind", "elicitation"), ("outcome", outcome)], 1.0),
                ("antiphon_human_wait_seconds_sum", &[], 45.0),
                ("antiphon_human_wait_seconds_bucket", &[("le", "30")], 0.0),
                ("antiphon_human_wait_seconds_bucket", &[("le", "60")], 1.0),
                // A recorded step runs once.
                ("antiphon_steps_total", &[("outcome", "done")], 1.0),
                ("antiphon_steps_total", &[("outcome", "error")], f64::from(u8::from(!is_refused))),
                ("antiphon_calls_total", &[("outcome", if is_refused { "error" } else { "complete" })], 1.0),
            ],
        );
    }
}

#[tokio::test]
async fn operations_of_the_store_are_timed() {
    let server = Server::builder("m", "1").store(MemoryStore::new()).write_ahead(true).tool(paying());
    let server = server.keys(ring(7)).single_instance(true).build().unwrap();
    let begin = server.metrics();
    ToolCall::new(json!({})).through(&server, &json!({"sure": accept(json!({"value": true}))})).await;
    let end = server.metrics();
    for operation in ["claim", "append", "commit"] {
        let count = |metrics: &Metrics| {
            metrics.value("antiphon_store_duration_seconds_count", &[("operation", operation)])
        };
        assert!(count(&end) > count(&begin), "{operation}\n{end}");
    }
}

/// The routes answer without a token, and the text is what a scraper reads.
#[tokio::test]
async fn the_routes_for_operators() {
    let server = fixture(|builder| builder).server;
    let options =
        HttpOptions::default().health_path("/readyz").liveness_path("/livez").metrics_path("/metrics");
    let service = HttpService::new(server.clone(), options);
    let off = HttpService::new(server.clone(), HttpOptions::default());
    let get = |path: &str| Request::get(path).header("host", "10.0.0.7").body(bytes::Bytes::new()).unwrap();
    for (drains, path, status, text) in [
        (false, "/readyz", 200, "ok"),
        (false, "/livez", 200, "ok"),
        (false, "/metrics", 200, "# TYPE antiphon_calls_total counter"),
        (true, "/readyz", 503, "draining"),
        (true, "/livez", 200, "ok"),
        (true, "/metrics", 200, "# TYPE mcp_server_operation_duration_seconds histogram"),
    ] {
        if drains {
            server.drain();
        }
        let got = post(&service, get(path)).await;
        let body = String::from_utf8(got.body.to_vec()).unwrap();
        assert_eq!((got.status, body.contains(text)), (status, true), "{drains} {path}: {body}");
        let without = post(&off, get(path)).await;
        assert_eq!(without.status, 405, "{path}");
    }
}

/// Every line of the text is a comment, or a name with labels and a number.
#[tokio::test]
async fn the_text_is_that_of_prometheus() {
    let server = fixture(|builder| builder.tool(paying())).server;
    ToolCall::new(json!({})).through(&server, &json!({"sure": accept(json!({"value": true}))})).await;
    let text = server.metrics().to_string();
    let mut family = String::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        match (words.next().unwrap(), words.next().unwrap()) {
            ("#", "HELP") => family = words.next().unwrap().to_owned(),
            ("#", "TYPE") => {
                assert_eq!(words.next(), Some(&*family));
                assert!(["counter", "gauge", "histogram"].contains(&words.next().unwrap()), "{line}");
            }
            _ => {
                assert!(line.starts_with(&family), "{line} in {family}");
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                let labels = name.split_once('{').map_or("", |(_, labels)| labels);
                assert_eq!(labels.ends_with("\"}"), !labels.is_empty(), "{line}");
            }
        }
    }
    assert!(
        text.contains(
            "mcp_server_operation_duration_seconds_bucket{mcp_method_name=\"tools/call\",le=\"+Inf\"} 2\n"
        ),
        "{text}"
    );
}
