//! The one tree of a call: with a client, without a trace of the client, and as a task.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use super::*;
use antiphon::server::{Caller, TaskMode, Tool};
use opentelemetry_sdk::trace::SpanData;
use serde_json::{Map, Value};
use std::sync::OnceLock;

/// The collector of this program: `tracing` has one subscriber.
fn collector() -> &'static Collector {
    static COLLECTOR: OnceLock<Collector> = OnceLock::new();
    COLLECTOR.get_or_init(|| Collector::install().unwrap())
}

/// A tool whose first step has the name that the call says: a name that is unique among the tests, so its trace is found.
fn deploying() -> Tool {
    Tool::new("deploy", async |ctx: &Ctx, arguments: Map<String, Value>| -> antiphon::Result<String> {
        let first = arguments["step"].as_str().unwrap_or_default();
        ctx.step(first, async |_| Ok(())).await?;
        let sure = ctx.confirm("s3cret-question").key("sure").await?;
        ctx.step("start", async |_| Ok("s3cret-result".to_owned())).await?;
        Ok(format!("{sure}"))
    })
}

fn instances() -> [Server; 2] {
    let key = SecretKey::random().unwrap().to_base64url();
    [(); 2].map(|()| instance(&key, deploying()).unwrap())
}

/// Asserts that the spans are this tree, whose lines may stand in any order among their siblings.
fn check(spans: &[SpanData], expected: &[&str]) {
    let text = tree(spans);
    let mut paths: Vec<String> = paths(&text);
    let mut wanted: Vec<String> = expected.iter().map(|path| (*path).to_owned()).collect();
    paths.sort();
    wanted.sort();
    assert_eq!(paths, wanted, "{text}");
    let all = format!("{spans:?}");
    assert!(!all.contains("s3cret"), "{all}");
}

/// Returns each line of a tree with those above it.
fn paths(tree: &str) -> Vec<String> {
    let mut above: Vec<&str> = Vec::new();
    let lines = tree.lines().map(|line| {
        let name = line.trim_start();
        above.truncate((line.len() - name.len()) / 4);
        above.push(name);
        above.join(" > ")
    });
    lines.collect()
}

const CLIENT: &str = "tools/call deploy (client)";

#[tokio::test]
async fn a_call_on_two_instances_is_one_tree() {
    let collector = collector();
    let instances = instances();
    let client = client(&instances).await.unwrap();
    let result = client
        .call_tool("deploy", json!({"step": "first-of-a-client", "password": "s3cret-argument"}))
        .await
        .unwrap();
    assert_eq!(result.first_text(), Some("true"));
    let of = |line: &str| format!("{CLIENT} > {line}");
    let expected = [
        CLIENT.to_owned(),
        of("tools/call deploy (server, leg 1)"),
        of("tools/call deploy (server, leg 1) > step first-of-a-client (internal)"),
        of("antiphon.ask.answer (internal)"),
        of("antiphon.ask.wait (internal)"),
        of("tools/call deploy (server, leg 2)"),
        of("tools/call deploy (server, leg 2) > step start (internal)"),
    ];
    let spans = collector.trace_with("step first-of-a-client");
    check(&spans, &expected.each_ref().map(|line| &**line));
    for instance in &instances {
        assert_eq!(instance.metrics().value("antiphon_legs_total", &[]), Some(1.0));
    }
    // The legs have the id of their call, and the person's time is between them.
    let calls: Vec<_> = spans.iter().filter_map(|span| attribute(span, "antiphon.call.id")).collect();
    assert_eq!(calls.len(), 3, "{spans:?}");
    assert!(calls.iter().all(|call| *call == calls[0]), "{calls:?}");
    let wait = spans.iter().find(|span| span.name == "antiphon.ask.wait").unwrap();
    let waited = wait.end_time.duration_since(wait.start_time).unwrap();
    assert!(waited >= Duration::from_millis(20), "{waited:?}");
    let call = spans
        .iter()
        .find(|span| span.name == "tools/call deploy" && span.parent_span_id.to_bytes() == [0; 8]);
    assert_eq!(attribute(call.unwrap(), "gen_ai.operation.name").as_deref(), Some("execute_tool"));
}

#[tokio::test]
async fn a_client_without_a_trace_gets_one_trace() {
    let collector = collector();
    let instances = instances();
    let mut params = json!({"name": "deploy", "arguments": {"step": "first-without-a-trace"}});
    for instance in &instances {
        let reply = send(instance, &params).await;
        params["requestState"] = reply["result"]["requestState"].clone();
        params["inputResponses"] = json!({"sure": {"action": "accept", "content": {"value": true}}});
    }
    let root = "tools/call deploy (server, leg 1)";
    let of = |line: &str| format!("{root} > {line}");
    let expected = [
        root.to_owned(),
        of("step first-without-a-trace (internal)"),
        of("antiphon.ask.wait (internal)"),
        of("tools/call deploy (server, leg 2)"),
        of("tools/call deploy (server, leg 2) > step start (internal)"),
    ];
    check(&collector.trace_with("step first-without-a-trace"), &expected.each_ref().map(|line| &**line));
}

#[tokio::test]
async fn a_leg_of_another_trace_is_linked() {
    let collector = collector();
    let instances = instances();
    let mut params = json!({"name": "deploy", "arguments": {"step": "first-of-two-traces"}});
    for (instance, trace) in instances.iter().zip(["1", "2"]) {
        params["_meta"] = json!({"traceparent": format!("00-{}-b7ad6b7169203331-01", trace.repeat(32))});
        let reply = send(instance, &params).await;
        params["requestState"] = reply["result"]["requestState"].clone();
        params["inputResponses"] = json!({"sure": {"action": "accept", "content": {"value": true}}});
    }
    let first = collector.trace_with("step first-of-two-traces");
    assert_eq!(first[0].span_context.trace_id().to_string(), "1".repeat(32));
    let all = collector.all();
    let is_second = |span: &&SpanData| {
        span.name == "tools/call deploy" && span.span_context.trace_id().to_string() == "2".repeat(32)
    };
    let second = all.iter().find(is_second).unwrap();
    assert_eq!(second.links.links[0].span_context.trace_id().to_string(), "1".repeat(32));
}

/// A tool's error is one in the span too, although its reply is a result.
#[tokio::test]
async fn an_error_of_a_tool_is_one_of_the_span() {
    let collector = collector();
    let [server, _] = instances();
    let mut params = json!({"name": "deploy", "arguments": {"step": "first-of-an-error"}});
    for _ in 0..2 {
        let reply = send(&server, &params).await;
        params["requestState"] = reply["result"]["requestState"].clone();
        params["inputResponses"] = json!({"sure": {"action": "decline"}});
    }
    let spans = collector.trace_with("step first-of-an-error");
    let errors: Vec<_> = spans.iter().filter_map(|span| attribute(span, "error.type")).collect();
    assert_eq!(errors, ["tool_error"], "{spans:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_in_the_trace_of_its_call() {
    let collector = collector();
    let server = Server::builder("d", "1").tool(deploying().task(TaskMode::Required)).build().unwrap();
    let person = |ask: FormAsk| async move { Ok(ask.accept(json!({"value": true}))?) };
    let client =
        antiphon::memory::connect(server, Client::builder("t", "1").tasks(true).on_elicit_form(person));
    let result = client.call_tool("deploy", json!({"step": "first-of-a-task"})).await.unwrap();
    assert_eq!(result.first_text(), Some("true"));
    let spans = collector.trace_with("step first-of-a-task");
    let text = tree(&spans);
    assert!(text.starts_with(CLIENT), "{text}");
    for line in ["    task (internal)", "        tools/call deploy (server, leg 2)", "step start (internal)"]
    {
        assert!(text.contains(line), "{line} in {text}");
    }
}

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    span.attributes
        .iter()
        .find(|attribute| attribute.key.as_str() == name)
        .map(|found| found.value.to_string())
}

async fn send(server: &Server, params: &Value) -> Value {
    let mut params = params.clone();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let own = params["_meta"].as_object().cloned().unwrap_or_default();
    params["_meta"] = meta;
    params["_meta"].as_object_mut().unwrap().extend(own);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let reply = server.respond(message.as_bytes(), &Caller::default()).await.unwrap();
    serde_json::from_slice(&reply.body).unwrap()
}
