//! The end of a pair of streams with requests under way: each accepted request is answered if it ends in time, and what has begun
//! ends.

use crate::common::{
    fixture, request,
    session::{everything, initialize, plain},
};
use antiphon::{
    Error, Form,
    serve::stdio::{ServeStreams, serve_streams},
    server::{Ctx, Prompt, Resource, Server, State, operations::ReplayCheck},
    tool,
    wire::content::ResourceContents,
};
use serde_json::{Map, Value, json};
use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    time::{Instant, sleep, timeout},
};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// The steps that have ended.
type Effects = Arc<Mutex<Vec<u64>>>;

/// Waits in a step.
#[tool]
async fn charges(ctx: &Ctx, ms: u64, effects: State<Effects>) -> Result<&'static str, Error> {
    ctx.step("charge", async |_| {
        sleep(Duration::from_millis(ms)).await;
        effects.lock().unwrap().push(ms);
        Ok(())
    })
    .await?;
    Ok("charged")
}

/// Waits outside of steps.
#[tool]
async fn waits(ctx: &Ctx, ms: u64) -> String {
    ctx.report_progress(1.0, None, None);
    sleep(Duration::from_millis(ms)).await;
    ms.to_string()
}

/// Waits, and asks.
#[tool]
async fn asks(ctx: &Ctx, ms: u64) -> Result<String, Error> {
    sleep(Duration::from_millis(ms)).await;
    let Name { name } = ctx.elicit("Whose?").await?;
    Ok(name)
}

fn server() -> (Server, Effects) {
    let effects = Effects::default();
    let prompt = Prompt::new("waits", async |_: &Ctx, _: Map<String, Value>| {
        sleep(Duration::from_secs(4)).await;
        "text".to_owned()
    });
    let resource = Resource::new("slow://a", "a", async |_: &Ctx| {
        sleep(Duration::from_secs(4)).await;
        ResourceContents::text("slow://a", "text")
    });
    let built = fixture(|builder| {
        let all = builder.tool(charges).tool(waits).tool(asks).prompt(prompt).resource(resource);
        // A check would wait too.
        all.state(effects.clone()).list_changed(true).replay_check(ReplayCheck::Off)
    });
    (built.server, effects)
}

/// A client that has ended its input.
struct Ended {
    messages: Vec<Value>,
    result: io::Result<()>,
    after: Duration,
}

impl Ended {
    /// The ids of the replies in order, each with its code, 0 for a result; and the tenths of a second until the end.
    fn outcome(&self) -> (Vec<(Value, i64)>, u128) {
        let replies = self.messages.iter().filter(|message| message["method"].is_null());
        let replies = replies
            .map(|reply| (reply["id"].clone(), reply["error"]["code"].as_i64().unwrap_or_default()))
            .collect();
        (replies, (self.after.as_millis() + 20) / 100)
    }
}

/// Sends these bytes, ends the input, and reads to the end.
async fn end_after(
    bytes: impl Into<Vec<u8>>,
    serve: impl FnOnce(DuplexStream, DuplexStream) -> ServeStreams<'static>,
) -> Ended {
    let ((mut writer, input), (output, mut reader)) = (duplex(1 << 20), duplex(1 << 20));
    let began = Instant::now();
    let serving = tokio::spawn(serve(input, output));
    writer.write_all(&bytes.into()).await.unwrap();
    drop(writer);
    let result = timeout(Duration::from_secs(60), serving).await.expect("it ends").unwrap();
    let after = began.elapsed();
    let mut text = String::new();
    reader.read_to_string(&mut text).await.unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    let messages = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Ended { messages, result, after }
}

/// A request of either era.
fn call(modern: bool, id: u32, method: &str, params: Value) -> Value {
    if modern { request(id, method, params) } else { plain(id, method, params) }
}

fn call_tool(modern: bool, id: u32, name: &str, ms: u64) -> Value {
    call(modern, id, "tools/call", json!({"name": name, "arguments": {"ms": ms}}))
}

/// The lines of these messages, in a session if they are not modern.
fn lines(version: Option<&str>, messages: &[Value]) -> String {
    let handshake = version.map(|version| {
        let opened = plain(100, "initialize", initialize(version, everything()));
        [opened, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})]
    });
    handshake.iter().flatten().chain(messages).map(|message| format!("{message}\n")).collect()
}

#[tokio::test(start_paused = true)]
async fn requests_under_way_are_answered() {
    const MODERN: [bool; 2] = [true, false];
    for modern in MODERN {
        let version = (!modern).then_some("2025-11-25");
        let get = |id| call(modern, id, "prompts/get", json!({"name": "waits"}));
        let read = |id| call(modern, id, "resources/read", json!({"uri": "slow://a"}));
        let never = |id| call_tool(modern, id, "waits", 1_000_000);
        let listed = |id| call(modern, id, "tools/list", json!({}));
        for (what, messages, ids, tenths) in [
            ("nothing", vec![], vec![], 0),
            ("no wait", vec![listed(1)], vec![1], 0),
            ("a wait", vec![call_tool(modern, 1, "waits", 100)], vec![1], 1),
            ("nearly all the time", vec![call_tool(modern, 1, "waits", 4900)], vec![1], 49),
            ("more", vec![call_tool(modern, 1, "waits", 5100)], vec![], 50),
            ("a step", vec![call_tool(modern, 1, "charges", 300)], vec![1], 3),
            ("prompt, resource", vec![get(1), read(2)], vec![1, 2], 40),
            (
                "the quicker first",
                vec![get(1), call_tool(modern, 2, "waits", 100), listed(3)],
                vec![3, 2, 1],
                40,
            ),
            (
                "one that never ends",
                vec![never(1), call_tool(modern, 2, "waits", 100), read(3)],
                vec![2, 3],
                50,
            ),
            ("a step that lasts", vec![call_tool(modern, 1, "charges", 8000)], vec![], 80),
            ("a step that never ends", vec![call_tool(modern, 1, "charges", u64::MAX >> 20)], vec![], 100),
        ] {
            let (server, effects) = server();
            let ended = end_after(lines(version, &messages), |i, o| serve_streams(i, o, server)).await;
            let opened = (!modern).then_some((json!(100), 0));
            let expected: Vec<_> = opened.into_iter().chain(ids.iter().map(|id| (json!(id), 0))).collect();
            assert_eq!(ended.outcome(), (expected, tenths), "{what}, modern: {modern}");
            assert!(ended.result.is_ok(), "{what}");
            // A step that runs ends, although nobody reads of it.
            let effect = messages.first().and_then(|first| first["params"]["arguments"]["ms"].as_u64());
            let effect = effect.filter(|ms| what.contains("step") && *ms <= 8000);
            assert_eq!(*effects.lock().unwrap(), Vec::from_iter(effect), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_request_of_a_batch_is_answered_by_itself() {
    let (server, _) = server();
    let batch = json!([
        call_tool(false, 1, "waits", 300),
        call(false, 2, "ping", json!({})),
        call_tool(false, 3, "waits", 9000)
    ]);
    let text = lines(Some("2025-03-26"), &[batch]);
    let ended = end_after(text.trim_end(), |i, o| serve_streams(i, o, server)).await;
    assert_eq!(ended.outcome(), ([100, 2, 1].map(|id| (json!(id), 0)).to_vec(), 50));
}

/// The client cannot send an answer any more, so its question ends at once.
#[tokio::test(start_paused = true)]
async fn a_request_that_asks_in_a_session_fails() {
    let by_hand = |modern| call(modern, 1, "tools/call", json!({"name": "ask", "arguments": {"name": "x"}}));
    for (what, request, tenths) in [
        ("awaited", call_tool(false, 1, "asks", 0), 0),
        ("returned", by_hand(false), 0),
        ("asked after the end", call_tool(false, 1, "asks", 700), 7),
    ] {
        for version in ["2025-06-18", "2025-11-25"] {
            let (server, _) = server();
            let ended = end_after(lines(Some(version), std::slice::from_ref(&request)), |i, o| {
                serve_streams(i, o, server)
            })
            .await;
            let last = ended.messages.last().unwrap();
            assert!(last.to_string().contains("not answered: the session ended"), "{what}: {last}");
            assert_eq!((&last["id"], ended.outcome().1), (&json!(1), tenths), "{what} {version}");
        }
    }
    // In the other era, the answer comes with another request: perhaps to another process.
    for request in [call_tool(true, 1, "asks", 0), by_hand(true)] {
        let (server, _) = server();
        let ended = end_after(lines(None, &[request]), |i, o| serve_streams(i, o, server)).await;
        assert_eq!(ended.messages[0]["result"]["resultType"], "input_required");
        assert_eq!(ended.outcome(), (vec![(json!(1), 0)], 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_last_line_without_its_end_is_a_message() {
    let listed = request(1, "tools/list", json!({})).to_string();
    for (what, bytes, outcomes) in [
        ("a request", listed.clone(), vec![(json!(1), 0)]),
        (
            "after another one",
            format!("{}\n{listed}", request(2, "tools/list", json!({}))),
            vec![(json!(2), 0), (json!(1), 0)],
        ),
        ("space", format!("{listed}\n  "), vec![(json!(1), 0)]),
        ("half a line end", format!("{listed}\r"), vec![(json!(1), 0)]),
        ("one that waits", call_tool(true, 1, "waits", 500).to_string(), vec![(json!(1), 0)]),
        (
            "a cancellation",
            format!(
                "{}\n{}",
                call_tool(true, 1, "waits", 500),
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
            ),
            vec![],
        ),
        ("half a message", listed[..listed.len() - 1].to_owned(), vec![(Value::Null, -32700)]),
        (
            "in a session",
            lines(Some("2025-11-25"), &[plain(1, "ping", json!({}))]).trim_end().to_owned(),
            vec![(json!(100), 0), (json!(1), 0)],
        ),
    ] {
        let (server, _) = server();
        let ended = end_after(bytes, |i, o| serve_streams(i, o, server)).await;
        assert_eq!(ended.outcome().0, outcomes, "{what}");
        assert!(ended.result.is_ok(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_is_a_setting() {
    for (time, ids, tenths) in [(0, vec![], 0), (300, vec![1], 3), (20_000, vec![1, 2], 90)] {
        let (server, _) = server();
        let messages = [call_tool(true, 1, "waits", 100), call_tool(true, 2, "waits", 9000)];
        let ended = end_after(lines(None, &messages), |i, o| {
            serve_streams(i, o, server).drain_timeout(Duration::from_millis(time))
        });
        let expected = ids.into_iter().map(|id: u32| (json!(id), 0)).collect();
        assert_eq!(ended.await.outcome(), (expected, tenths), "{time}");
    }
}

/// The server may serve other clients: their subscriptions stay, and this one is of no use any more.
#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_its_server_only() {
    let listen = || {
        lines(
            None,
            &[request(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}))],
        )
    };
    let (server, _) = server();
    let ended = end_after(listen(), |i, o| serve_streams(i, o, server.clone())).await;
    assert_eq!(ended.outcome(), (vec![], 0));
    assert_eq!(ended.messages.len(), 1, "acknowledged");
    let ended = end_after(listen(), |i, o| serve_streams(i, o, server).drain_at_end(true)).await;
    assert_eq!(ended.outcome(), (vec![(json!(1), 0)], 0));
    assert_eq!(ended.messages[2]["method"], "notifications/cancelled");
}

#[tokio::test(start_paused = true)]
async fn an_output_that_is_closed_ends_the_server_and_no_step() {
    for modern in [true, false] {
        let (server, effects) = server();
        let ((mut writer, input), (output, mut reader)) = (duplex(1 << 20), duplex(1 << 20));
        let began = Instant::now();
        let serving = tokio::spawn(serve_streams(input, output, server));
        let messages = [call_tool(modern, 1, "charges", 3000), call_tool(modern, 2, "waits", 100)];
        writer.write_all(lines((!modern).then_some("2025-11-25"), &messages).as_bytes()).await.unwrap();
        if !modern {
            // The reply to `initialize`.
            reader.read_u8().await.unwrap();
        }
        drop((writer, reader));
        let error = serving.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert_eq!((began.elapsed().as_secs(), &*effects.lock().unwrap()), (3, &vec![3000]));
    }
}

/// The output is open, and nobody reads.
#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_is_left_soon() {
    for how in ["the input ends", "a shutdown"] {
        let (server, _) = server();
        let ((mut writer, input), (output, reader)) = (duplex(1 << 20), duplex(16));
        let shutdown = async move {
            sleep(Duration::from_secs(60)).await;
            if how == "the input ends" {
                std::future::pending::<()>().await;
            }
        };
        let serving = tokio::spawn(serve_streams(input, output, server).with_graceful_shutdown(shutdown));
        writer.write_all(lines(None, &[request(1, "tools/list", json!({}))]).as_bytes()).await.unwrap();
        let began = Instant::now();
        let held = if how == "the input ends" {
            drop(writer);
            None
        } else {
            Some(writer)
        };
        let error = serving.await.unwrap().unwrap_err();
        let seconds = began.elapsed().as_secs();
        assert_eq!(
            (error.kind(), seconds),
            (io::ErrorKind::TimedOut, if held.is_some() { 65 } else { 5 }),
            "{how}"
        );
        drop(reader);
    }
}

/// A signal ends the input, but not in the middle of a message.
#[tokio::test(start_paused = true)]
async fn a_shutdown_is_an_end_of_the_input_too() {
    for modern in [true, false] {
        let version = (!modern).then_some("2025-11-25");
        for (what, messages, rest, ids, tenths) in [
            ("idle", vec![], "", vec![], 10),
            ("half a line", vec![], "{\"json", vec![], 10),
            ("a request", vec![call_tool(modern, 1, "waits", 2000)], "", vec![1], 20),
            ("a question", vec![call_tool(modern, 1, "asks", 1500)], "", vec![1], 15),
            ("one that never ends", vec![call_tool(modern, 1, "waits", 90_000)], "", vec![], 60),
        ] {
            let (server, _) = server();
            let ((mut writer, input), (output, mut reader)) = (duplex(1 << 20), duplex(1 << 20));
            let began = Instant::now();
            let shutdown = sleep(Duration::from_secs(1));
            let serving =
                tokio::spawn(serve_streams(input, output, server.clone()).with_graceful_shutdown(shutdown));
            writer.write_all(lines(version, &messages).as_bytes()).await.unwrap();
            writer.write_all(rest.as_bytes()).await.unwrap();
            serving.await.unwrap().unwrap();
            let after = began.elapsed();
            let mut text = String::new();
            reader.read_to_string(&mut text).await.unwrap();
            let messages = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let (found, found_tenths) = Ended { messages, result: Ok(()), after }.outcome();
            let opened = (!modern).then_some(json!(100));
            let expected: Vec<Value> = opened.into_iter().chain(ids.iter().map(|id| json!(id))).collect();
            let found: Vec<Value> = found.into_iter().map(|(id, _)| id).collect();
            assert_eq!((found, found_tenths), (expected, tenths), "{what}, modern: {modern}");
        }
    }
}

/// Hosts close the input, wait, and send a signal.
#[tokio::test(start_paused = true)]
async fn a_shutdown_after_the_end_of_the_input_ends_the_wait() {
    let (server, effects) = server();
    let messages = [
        call_tool(true, 1, "waits", 1000),
        call_tool(true, 2, "charges", 4000),
        call_tool(true, 3, "waits", 4000),
    ];
    let ended = end_after(lines(None, &messages), |i, o| {
        serve_streams(i, o, server).with_graceful_shutdown(sleep(Duration::from_secs(2)))
    });
    // The step ends all the same.
    assert_eq!(ended.await.outcome(), (vec![(json!(1), 0)], 40));
    assert_eq!(*effects.lock().unwrap(), [4000]);
}
