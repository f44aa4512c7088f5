//! Progress and log messages: what leaves, in which order, and on which kind of response.

use crate::common;
use crate::common::{
    fixture,
    gate::{gate, soon},
    lines,
    post::{correct, post},
    request, socket, with,
};
use antiphon::{
    serve::http::{HttpOptions, HttpService},
    server::{Ctx, Server, Tool},
    wire::LogLevel,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The notifications of a tool, in order: `[progress, total, message]`, or `[level, logger, data]`.
#[derive(Deserialize, schemars::JsonSchema)]
struct Script {
    sends: Vec<Vec<Value>>,
    #[serde(default)]
    fails: bool,
}

async fn run_script(ctx: &Ctx, script: Script) -> Result<String, String> {
    for step in &script.sends {
        match step.as_slice() {
            [Value::Number(progress), total, message] => {
                ctx.report_progress(progress.as_f64().unwrap(), total.as_f64(), message.as_str());
            }
            [level, Value::Null, data] => ctx.log(level_of(level), data.clone()),
            [level, logger, data] => ctx.log_as(level_of(level), logger.as_str().unwrap(), data.clone()),
            other => panic!("{other:?}"),
        }
    }
    if script.fails { Err("it failed".to_owned()) } else { Ok("done".to_owned()) }
}

fn level_of(level: &Value) -> LogLevel {
    serde_json::from_value(level.clone()).unwrap()
}

fn server(logging: bool) -> Server {
    let run_script = Tool::new("run_script", run_script);
    fixture(|builder| {
        let builder = builder.tool(run_script);
        if logging { builder.logging(true) } else { builder }
    })
    .server
}

fn call(meta: Value, sends: Value, fails: bool) -> Value {
    let arguments = json!({"sends": sends, "fails": fails});
    request(
        1,
        "tools/call",
        json!({"name": "run_script", "arguments": arguments, "_meta": with(&common::meta(), meta)}),
    )
}

fn progress(token: Value, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": with(&params, json!({"progressToken": token}))})
}

fn log(params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
}

/// Checks HTTP and stdio: the same notifications come before the same reply.
async fn check(logging: bool, meta: Value, sends: Value, expected: &[Value]) {
    for fails in [false, true] {
        let message = call(meta.clone(), sends.clone(), fails);
        let got = post(&HttpService::new(server(logging), HttpOptions::default()), correct(&message)).await;
        let header = |name: &str| got.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let over_http: Vec<Value> = if expected.is_empty() {
            assert_eq!(header("content-type").as_deref(), Some("application/json"), "{message}");
            vec![got.json()]
        } else {
            assert_eq!(header("content-type").as_deref(), Some("text/event-stream"), "{message}");
            assert_eq!(header("x-accel-buffering").as_deref(), Some("no"));
            let text = std::str::from_utf8(&got.body).unwrap();
            let events = text.strip_suffix("\n\n").unwrap().split("\n\n");
            events.map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap()).collect()
        };
        assert_eq!(got.status, 200);
        let mut peer = lines::serve(server(logging), 1 << 16);
        peer.send(message.to_string()).await;
        let mut over_stdio = Vec::new();
        for _ in 0..over_http.len() {
            over_stdio.push(peer.receive().await.unwrap());
        }
        assert_eq!(peer.ends().await, Vec::<Value>::new());
        assert_eq!(over_http, over_stdio, "{message}");
        let (reply, before) = over_http.split_last().unwrap();
        assert_eq!(before, expected, "{message}");
        assert_eq!(reply["id"], 1);
        assert_eq!(reply["result"]["isError"].as_bool().unwrap_or_default(), fails, "{reply}");
    }
}

#[tokio::test]
async fn progress_leaves_if_it_is_asked_for_and_increases() {
    let sends = json!([
        [0, 100, "begun"],
        [50, 100, null],
        [50, 100, "again"],
        [20, null, null],
        [99.5, null, "nearly"]
    ]);
    let expected = |token: Value| {
        [
            progress(token.clone(), json!({"progress": 0.0, "total": 100.0, "message": "begun"})),
            progress(token.clone(), json!({"progress": 50.0, "total": 100.0})),
            progress(token, json!({"progress": 99.5, "message": "nearly"})),
        ]
    };
    check(false, json!({"progressToken": "p"}), sends.clone(), &expected(json!("p"))).await;
    check(false, json!({"progressToken": 7}), sends.clone(), &expected(json!(7))).await;
    check(true, json!({}), sends, &[]).await;
    check(false, json!({"progressToken": "p"}), json!([]), &[]).await;
}

#[tokio::test]
async fn log_messages_leave_at_or_above_the_level_asked_for() {
    let sends = json!([["debug", null, "a"], ["info", "db", {"b": 1}], ["warning", null, [3]], ["emergency", null, null]]);
    let expected = [
        log(json!({"level": "info", "logger": "db", "data": {"b": 1}})),
        log(json!({"level": "warning", "data": [3]})),
        log(json!({"level": "emergency", "data": null})),
    ];
    let level = |level: &str| json!({"io.modelcontextprotocol/logLevel": level});
    check(true, level("info"), sends.clone(), &expected).await;
    check(true, level("notice"), sends.clone(), &expected[1..]).await;
    check(true, json!({}), sends.clone(), &[]).await;
    // A server that does not declare it sends none.
    check(false, level("debug"), sends, &[]).await;
}

#[tokio::test]
async fn a_level_that_does_not_exist_is_refused() {
    for level in [json!("loud"), json!(3), json!("INFO")] {
        let message = call(json!({"io.modelcontextprotocol/logLevel": level}), json!([]), false);
        let got = post(&HttpService::new(server(true), HttpOptions::default()), correct(&message)).await;
        got.check("a bad level", (400, -32602));
    }
}

/// A tool that tells its progress, and then holds.
fn notifying_server() -> (Server, common::gate::Gate) {
    let (hold, gate) = gate();
    let notify = Tool::new("notify", async |ctx: &Ctx, _: antiphon::server::NoArguments| {
        ctx.report_progress(1.0, None, None);
        std::future::pending::<String>().await
    });
    (fixture(|builder| builder.tool(hold).tool(notify)).server, gate)
}

fn notify(id: u32) -> Value {
    let meta = with(&common::meta(), json!({"progressToken": id}));
    request(id, "tools/call", json!({"name": "notify", "_meta": meta}))
}

#[tokio::test]
async fn a_notification_leaves_while_its_handler_runs() {
    let (server, _gate) = notifying_server();
    let running = socket::serve_this(server.clone(), HttpOptions::default()).await;
    let mut client = socket::Client::new(&running).await;
    client.send(socket::text_of(&notify(3))).await;
    let head = client.receive_head().await;
    assert!(head.starts_with("http/1.1 200 ok") && head.contains("text/event-stream"), "{head}");
    assert_eq!(client.receive_event().await, Some(progress(json!(3), json!({"progress": 1.0}))));

    let mut peer = lines::serve(server, 1 << 16);
    peer.send(notify(4).to_string()).await;
    assert_eq!(peer.receive().await, Some(progress(json!(4), json!({"progress": 1.0}))));
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive() {
    let (server, _gate) = notifying_server();
    let options = HttpOptions::default().keep_alive_interval(std::time::Duration::from_millis(20));
    let running = socket::serve_this(server, options).await;
    let mut client = socket::Client::new(&running).await;
    client.send(socket::text_of(&notify(3))).await;
    client.receive_head().await;
    client.receive_event().await.unwrap();
    for _ in 0..3 {
        assert_eq!(client.receive_chunk().await.as_deref(), Some(":\n\n"));
    }
}

#[tokio::test]
async fn a_client_that_leaves_the_stream_drops_the_handler() {
    struct DropSignal(Option<tokio::sync::oneshot::Sender<()>>);
    impl Drop for DropSignal {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    let (sender, dropped) = tokio::sync::oneshot::channel();
    let sender = std::sync::Mutex::new(Some(sender));
    let notify = Tool::new("notify", move |ctx: &Ctx, _: antiphon::server::NoArguments| {
        ctx.report_progress(1.0, None, None);
        let expected = DropSignal(sender.lock().unwrap().take());
        async move {
            let _told = expected;
            std::future::pending::<String>().await
        }
    });
    let server = fixture(|builder| builder.tool(notify)).server;
    let running = socket::serve_this(server, HttpOptions::default()).await;
    let mut client = socket::Client::new(&running).await;
    client.send(socket::text_of(&notify_once())).await;
    client.receive_head().await;
    client.receive_event().await.unwrap();
    drop(client);
    soon(dropped).await.unwrap();
}

fn notify_once() -> Value {
    notify(1)
}
