//! Legs that end at a checkpoint, so that another instance goes on.

use crate::common;

use crate::common::tool_call::*;
use crate::common::{
    gate::soon,
    socket::{Client, serve_this, text_of},
    *,
};
use antiphon::{
    Form, Result,
    serve::http::HttpOptions,
    server::{Ctx, NoArguments, Server, ServerBuilder, Tool, operations::ReplayCheck},
};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::AtomicUsize;
use tokio::sync::{mpsc, watch};

/// Returns the closure unchanged. The bound lets its future borrow the context.
fn lent<F: for<'a> Fn(&'a Ctx, NoArguments) -> BoxFuture<'a, Result<String>>>(handler: F) -> F {
    handler
}

fn builder(tool: Tool) -> ServerBuilder {
    let builder = Server::builder("drain", "1").tool(tool).keys(ring(7));
    builder.replay_check(ReplayCheck::Always).on_replay_fault(|fault| panic!("{fault}"))
}

/// Does one thing, computes for long, may go elsewhere, does another thing.
fn long(runs: &Runs, begun: mpsc::UnboundedSender<()>, done: watch::Receiver<bool>) -> Tool {
    let runs = runs.clone();
    let handler = lent(move |ctx, _| {
        let (runs, begun, mut done) = (runs.clone(), begun.clone(), done.clone());
        Box::pin(async move {
            let first: usize = ctx
                .step("first", async |_| Ok(runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst)))
                .await?;
            begun.send(()).expect("the test waits");
            done.wait_for(|done| *done).await.expect("the test lives");
            ctx.checkpoint().await;
            let second: usize = ctx
                .step("second", async |_| Ok(runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst)))
                .await?;
            Ok(format!("{first} {second}"))
        })
    });
    Tool::new("t", handler)
}

#[tokio::test]
async fn what_one_instance_began_another_one_finishes() {
    let runs = Runs::new(AtomicUsize::new(0));
    let (begun, mut mid) = mpsc::unbounded_channel();
    let (done, is_done) = watch::channel(false);
    let instance = || {
        let server = builder(long(&runs, begun.clone(), is_done.clone())).build().unwrap();
        serve_this(server, HttpOptions::default())
    };
    let (old, new) = (instance().await, instance().await);
    let call = json!({"name": "t", "arguments": {}});

    let mut client = Client::new(&old).await;
    client.send(text_of(&request(1, "tools/call", call.clone()))).await;
    soon(mid.recv()).await.unwrap();
    old.shutdown.send(()).unwrap();
    // It drains once it accepts nobody any more.
    while tokio::net::TcpStream::connect(old.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    done.send(true).unwrap();
    let heard = client.receive().await;
    assert!(heard.status == 200 && heard.head.contains("connection: close"), "{}", heard.head);
    // Some clients take a result without it as final.
    assert!(heard.body.contains(r#""inputRequests":{}"#), "{}", heard.body);
    client.expect_close().await;
    soon(old.ended).await.unwrap().unwrap();

    let state = state_of(&serde_json::from_str(&heard.body).unwrap());
    let mut client = Client::new(&new).await;
    let next = request(2, "tools/call", with(&call, json!({"requestState": state})));
    client.send(text_of(&next)).await;
    let heard = client.receive_result(2, "0 1").await;
    assert!(!heard.head.contains("connection:"), "{}", heard.head);
    assert_eq!(common::runs(&runs), 2);
}

#[tokio::test]
async fn every_reply_of_a_server_that_drains_closes_its_connection() {
    let server = fixture(|builder| builder).server;
    let mut service = antiphon::serve::http::HttpService::new(server.clone(), HttpOptions::default());
    for drains in [false, true] {
        if drains {
            server.drain();
        }
        for (path, version, closes) in [
            ("http://127.0.0.1/mcp", http::Version::HTTP_11, drains),
            ("http://127.0.0.1/nowhere", http::Version::HTTP_11, drains),
            ("http://127.0.0.1/mcp", http::Version::HTTP_2, false),
        ] {
            let mut message = http_request(
                &request(1, "tools/call", json!({"name": "echo", "arguments": {"name": "x"}})),
                None,
            );
            *message.uri_mut() = path.parse().unwrap();
            *message.version_mut() = version;
            let response = tower_service::Service::call(&mut service, message).await.unwrap();
            let closed = response.headers().get("connection").is_some_and(|value| value == "close");
            assert_eq!(closed, closes, "{path} {version:?} {drains}");
        }
    }
}

#[derive(Deserialize, Form)]
struct Place {
    region: String,
}

/// Runs the tool to its end; gives what it says, and of each leg before whether it asked.
async fn check(builder: ServerBuilder, expected: (&str, &[bool])) {
    let server = builder.build().expect("the server can be built");
    let mut talk = ToolCall::new(json!({}));
    let reply = talk.through(&server, &json!({"place": accept(json!({"region": "eu"}))})).await;
    let asked: Vec<bool> = talk.rounds.iter().map(|round| !round.is_empty()).collect();
    assert_eq!((result_text(&reply).as_str(), asked.as_slice()), expected);
}

#[tokio::test]
async fn two_legs_of_a_call_may_end_without_a_question() {
    let always = || {
        Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
            let mut legs = Vec::new();
            for number in 0..4 {
                ctx.checkpoint().nth(number).now().await;
                legs.push(ctx.step(("leg", number), async |_| Ok(ctx.leg())).await?);
            }
            Ok(format!("{legs:?}"))
        })
    };
    check(builder(always()), ("[2, 3, 3, 3]", &[false, false])).await;
    // Questions in between do not count.
    let asks = || {
        Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
            ctx.checkpoint().now().await;
            let place: Place = ctx.elicit("Where?").await?;
            ctx.checkpoint().key("one-more").now().await;
            ctx.checkpoint().key("two-more").now().await;
            Ok(format!("{} {}", place.region, ctx.leg()))
        })
    };
    check(builder(asks()), ("eu 4", &[false, true, false])).await;
    // The same where the server wants it, and none where it does not.
    let wanted = || {
        Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
            for number in 0..4 {
                ctx.checkpoint().nth(number).await;
            }
            Ok(ctx.leg().to_string())
        })
    };
    check(builder(wanted()).shed_when(|load| load.handlers > 0), ("3", &[false, false])).await;
    check(builder(wanted()).shed_when(|load| load.handlers > load.limit), ("1", &[])).await;
}

#[tokio::test]
async fn a_server_that_drains_sheds() {
    let server = builder(Tool::new("t", async |ctx: &Ctx, _: NoArguments| -> Result<String> {
        ctx.checkpoint().await;
        Ok(ctx.leg().to_string())
    }))
    .build()
    .unwrap();
    server.drain();
    let mut talk = ToolCall::new(json!({}));
    assert_eq!(talk.leg(&server, Value::Null).await["result"]["inputRequests"], json!({}));
    // It was passed, though the client came back to the same one.
    assert_eq!(result_text(&talk.leg(&server, Value::Null).await), "2");
}
