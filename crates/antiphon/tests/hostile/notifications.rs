//! Notifications before a reply, with a handler or a client that misbehaves.

use crate::common;
use crate::common::{
    Over, fixture,
    gate::{HoldMode, gate, soon},
    leak_check::{LeakCheck, load},
    lines::serve,
    post::correct,
    request, send, with,
};
use antiphon::{
    serve::http::{HttpOptions, HttpService},
    server::{Ctx, NoArguments, Server, Tool},
    wire::LogLevel,
};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use std::{future::Future as _, pin::Pin, task::Poll, time::Duration};
use tower_service::Service as _;

fn call(tool: &str, token: Value) -> Value {
    let meta = json!({"progressToken": token, "io.modelcontextprotocol/logLevel": "debug"});
    request(1, "tools/call", json!({"name": tool, "_meta": with(&common::meta(), meta)}))
}

/// All that is sent for this call, over HTTP and stdio; it must be the same.
async fn sent(server: &Server, message: &Value) -> Vec<Value> {
    let mut service = HttpService::new(server.clone(), HttpOptions::default());
    let response = soon(service.call(correct(message).map(Full::new))).await.unwrap();
    let body = soon(response.into_body().collect()).await.unwrap().to_bytes();
    let text = std::str::from_utf8(&body).unwrap();
    let over_http: Vec<Value> = match text.strip_suffix("\n\n") {
        None => vec![serde_json::from_str(text).unwrap()],
        Some(events) => {
            let data = events.split("\n\n").map(|event| event.strip_prefix("data: ").unwrap());
            data.map(|data| serde_json::from_str(data).unwrap()).collect()
        }
    };
    let mut peer = serve(server.clone(), 1 << 16);
    peer.send(message.to_string()).await;
    let mut over_stdio = Vec::new();
    while over_stdio.last().is_none_or(|last: &Value| last.get("id").is_none()) {
        over_stdio.push(peer.receive().await.unwrap());
    }
    assert_eq!(peer.ends().await, [] as [Value; 0]);
    assert_eq!(over_http, over_stdio);
    over_http
}

/// > Progress tokens **MUST** be a string or integer value
#[tokio::test]
async fn a_progress_token_is_a_string_or_an_integer() {
    let tell = Tool::new("tell", async |ctx: &Ctx, _: NoArguments| {
        ctx.report_progress(1.0, None, None);
    });
    let server = fixture(|builder| builder.tool(tell)).server;
    for token in [json!("a"), json!(""), json!("a\nb"), json!(0), json!(-7), json!(u64::MAX)] {
        let told = sent(&server, &call("tell", token.clone())).await;
        assert_eq!((told.len(), &told[0]["params"]["progressToken"]), (2, &token));
    }
    for token in [json!(1.5), json!(true), json!([]), json!({"a": 1}), json!(1e30)] {
        for (over, refused) in [(Over::Http, 400), (Over::Stdio, 200)] {
            let (status, reply) = send(over, &server, &call("tell", token.clone()), None).await;
            assert_eq!((status, &reply["error"]["code"]), (refused, &json!(-32602)), "{token}: {reply}");
        }
    }
    // As absent.
    assert_eq!(sent(&server, &call("tell", Value::Null)).await.len(), 1);
}

#[tokio::test]
async fn progress_that_is_no_number_is_not_sent() {
    let tell = Tool::new("tell", async |ctx: &Ctx, _: NoArguments| {
        for value in
            [f64::NAN, f64::NEG_INFINITY, -1.0, f64::INFINITY, f64::NAN, 0.5, f64::MAX, f64::INFINITY]
        {
            ctx.report_progress(value, Some(f64::INFINITY), None);
        }
    });
    let server = fixture(|builder| builder.tool(tell)).server;
    let told = sent(&server, &call("tell", json!(1))).await;
    let told: Vec<&Value> = told.iter().map(|message| &message["params"]).collect();
    let progress = |value: f64| json!({"progressToken": 1, "progress": value});
    assert_eq!(told, [&progress(-1.0), &progress(0.5), &progress(f64::MAX), &Value::Null]);
}

#[tokio::test]
async fn a_handler_that_panics_after_a_notification_has_a_reply() {
    let panics = Tool::new("panics", async |ctx: &Ctx, _: NoArguments| -> String {
        ctx.report_progress(1.0, None, None);
        tokio::task::yield_now().await;
        ctx.log(LogLevel::Error, "about to");
        panic!("on purpose")
    });
    let limits = antiphon::server::Limits::default().handlers(1);
    let server = fixture(|builder| builder.tool(panics).limits(limits).logging(true)).server;
    let census = LeakCheck::of(&server);
    for _ in 0..2 {
        let told = sent(&server, &call("panics", json!(1))).await;
        let methods: Vec<&str> = told.iter().filter_map(|message| message["method"].as_str()).collect();
        assert_eq!(methods, ["notifications/progress", "notifications/message"]);
        assert_eq!((&told[2]["id"], &told[2]["error"]["code"]), (&json!(1), &json!(-32603)));
        census.is_back("a panic").await;
    }
}

/// Requests that share a channel share what may wait on it, and each is answered.
#[tokio::test]
async fn a_chatty_request_does_not_silence_the_channel() {
    let chatty = Tool::new("chatty", async |ctx: &Ctx, _: NoArguments| {
        for value in 0..3000 {
            ctx.report_progress(f64::from(value), None, None);
            ctx.log(LogLevel::Debug, "x".repeat(100));
        }
        "done"
    });
    let server = fixture(|builder| builder.tool(chatty).logging(true).list_changed(true)).server;
    let mut peer = serve(server.clone(), 1 << 16);
    let listen = request(0, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    peer.send(listen.to_string()).await;
    peer.receive().await.unwrap();
    let calls = (1..=20).map(|id| with(&call("chatty", json!(id)), json!({ "id": id })).to_string());
    peer.send(calls.collect::<Vec<_>>().join("\n")).await;
    server.add_tool(Tool::new("late", async |_: &Ctx, _: NoArguments| "")).unwrap();
    let (mut answered, mut changed, mut told) = (Vec::new(), 0, 0);
    while answered.len() < 20 {
        let message = peer.receive().await.unwrap();
        match message["method"].as_str() {
            None => answered.push(message["id"].as_u64().unwrap()),
            Some("notifications/tools/list_changed") => changed += 1,
            Some(_) => told += 1,
        }
    }
    answered.sort_unstable();
    assert_eq!(answered, (1..=20).collect::<Vec<u64>>());
    assert_eq!(changed, 1);
    // What did not fit was lost.
    assert!((1000..=20 * 1024).contains(&told), "{told}");
    assert_eq!(peer.ends().await, [] as [Value; 0]);
}

/// A layer in front may give up on a response at any point: before it is polled, before its head, in its stream.
#[tokio::test(start_paused = true)]
async fn a_layer_that_drops_the_exchange_cancels_it() {
    let (hold, mut gate) = gate();
    let limits = antiphon::server::Limits::default().handlers(1).subscriptions(1);
    let server = fixture(|builder| builder.tool(hold).limits(limits).list_changed(true)).server;
    let census = LeakCheck::of(&server);
    let mut service = HttpService::new(server.clone(), HttpOptions::default());
    let held = |how: HoldMode| {
        let meta = with(&common::meta(), json!({"progressToken": 1}));
        let params = json!({"name": "hold", "arguments": {"name": "a", "how": how}, "_meta": meta});
        correct(&request(1, "tools/call", params)).map(Full::new)
    };
    // Never polled.
    drop(service.call(held(HoldMode::Waits)));
    assert!(gate.is_quiet());
    // A layer that times out.
    let exchange = service.call(held(HoldMode::Waits));
    tokio::time::timeout(Duration::from_secs(1), exchange).await.unwrap_err();
    gate.started("a").await;
    gate.dropped("a").await;
    // The head is there, and is dropped; then a stream that was read from.
    for read in [0, 1, 3] {
        let mut response = service.call(held(HoldMode::Floods)).await.unwrap();
        gate.started("a").await;
        for _ in 0..read {
            response.frame().await.unwrap().unwrap();
        }
        assert_eq!(load(&server), (0, 1));
        drop(response);
        gate.dropped("a").await;
    }
    let listen = request(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let response = service.call(correct(&listen).map(Full::new)).await.unwrap();
    assert_eq!(load(&server), (1, 0));
    drop(response);
    // Polled once more than it should be: nothing happens.
    let mut exchange = service.call(held(HoldMode::Reports));
    let response = (&mut exchange).await.unwrap();
    let again = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut exchange).poll(cx).is_pending()));
    assert!(again.await);
    drop(response);
    census.is_back("a layer").await;
}

/// > servers are encouraged to periodically emit an SSE comment line [...] as a keep-alive
#[tokio::test(start_paused = true)]
async fn a_stream_is_kept_alive_from_its_last_word() {
    let tell = Tool::new("tell", async |ctx: &Ctx, _: NoArguments| {
        for value in 0..3 {
            ctx.report_progress(f64::from(value), None, None);
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
    });
    let server = fixture(|builder| builder.tool(tell)).server;
    let mut service = HttpService::new(server, HttpOptions::default());
    let began = tokio::time::Instant::now();
    let response = service.call(correct(&call("tell", json!(1))).map(Full::new)).await.unwrap();
    let (mut body, mut heard) = (response.into_body(), Vec::new());
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        heard.push((began.elapsed().as_secs(), &data[..] == b":\n\n"));
    }
    // Every 15 seconds of silence, counted anew after each word: 60 seconds in all.
    assert_eq!(heard, [(0, false), (10, false), (20, false), (35, true), (50, true), (60, false)]);
}

/// The request of an open subscription is freed: its body may be long, and the lists of that time may be large.
#[tokio::test]
async fn an_idle_subscription_holds_little() {
    struct DropSignal(tokio::sync::oneshot::Sender<()>);
    // A tool that tells when it is no longer known.
    let (sender, gone) = tokio::sync::oneshot::channel();
    let held = std::sync::Arc::new(DropSignal(sender));
    let tool = Tool::new("kept", move |_: &Ctx, _: NoArguments| {
        let held = std::sync::Arc::clone(&held);
        async move { format!("{}", held.0.is_closed()) }
    });
    let server = fixture(|builder| builder.tool(tool).list_changed(true)).server;
    let message = request(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut service = HttpService::new(server.clone(), HttpOptions::default());
    let whole = bytes::Bytes::from(message.to_string());
    let kept = whole.clone();
    let response = service.call(correct(&message).map(|_| Full::new(whole))).await.unwrap();
    let mut peer = serve(server.clone(), 1 << 16);
    peer.send(message.to_string()).await;
    peer.receive().await.unwrap();
    assert_eq!(load(&server), (2, 0));
    assert!(kept.is_unique(), "the body is held");
    assert!(server.remove_tool("kept"));
    soon(gone).await.expect_err("the old registry is gone");
    drop(response);
}
