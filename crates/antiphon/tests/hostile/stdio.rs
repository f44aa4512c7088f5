//! Bad peers on a pair of streams: what each gets, and that nothing of it stays behind.

use crate::common;
use crate::common::{
    fixture,
    gate::{Gate, HoldMode, gate, soon},
    leak_check::{LeakCheck, load},
    lines::{Peer, cancelled, discover, serve},
    request, with,
};
use antiphon::{
    server::{Ctx, Limits, NoArguments, Server, Tool},
    wire::{LogLevel, forms::FormSchema},
};
use serde_json::{Value, json};
use std::{io, time::Duration};
use tokio::io::AsyncWriteExt as _;

/// Longer than anything may take.
const AGES: Duration = Duration::from_secs(24 * 60 * 60);

fn server() -> (Server, Gate) {
    let (hold, gate) = gate();
    let large = Tool::new("large", async |_: &Ctx, _: NoArguments| "x".repeat(1 << 20));
    let limits = Limits::default().handlers(1).handler_timeout(AGES);
    let fixture = fixture(|builder| {
        builder.tool(hold).tool(large).limits(limits).list_changed(true).resource_updates(true).logging(true)
    });
    (fixture.server, gate)
}

fn hold(id: Value, name: &str, how: HoldMode) -> String {
    let meta = with(&common::meta(), json!({"progressToken": name}));
    let params = json!({"name": "hold", "arguments": {"name": name, "how": how}, "_meta": meta});
    with(&request(0, "tools/call", params), json!({ "id": id })).to_string()
}

fn listen(id: u32, filter: Value) -> String {
    request(id, "subscriptions/listen", json!({ "notifications": filter })).to_string()
}

fn tool(name: &str) -> Tool {
    Tool::new(name, async |_: &Ctx, _: NoArguments| "")
}

fn cancel(id: &Value) -> String {
    cancelled(&format!(r#","params":{{"requestId":{id}}}"#))
}

/// The work under way when a client leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Idle,
    HalfALine,
    Held(HoldMode),
    Listening,
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_in_any_phase_leaves_nothing() {
    let (server, mut gate) = server();
    let census = LeakCheck::of(&server);
    for phase in [
        Phase::Idle,
        Phase::HalfALine,
        Phase::Held(HoldMode::Waits),
        Phase::Held(HoldMode::Reports),
        Phase::Held(HoldMode::Floods),
        Phase::Listening,
    ] {
        for half in [true, false] {
            let mut peer = serve(server.clone(), 1 << 16);
            match phase {
                Phase::Idle => {}
                Phase::HalfALine => peer.writer.write_all(&discover(1).as_bytes()[..20]).await.unwrap(),
                Phase::Held(how) => {
                    peer.send(hold(json!(1), "a", how)).await;
                    gate.started("a").await;
                }
                Phase::Listening => {
                    peer.send(listen(1, json!({"toolsListChanged": true}))).await;
                    peer.receive().await.unwrap();
                }
            }
            let Peer { lines, mut writer, serving } = peer;
            if half {
                // It reads no more, and does not close that end either.
                writer.shutdown().await.unwrap();
                match soon(serving).await.unwrap() {
                    Ok(()) => assert!(phase != Phase::Held(HoldMode::Floods), "{phase:?}"),
                    Err(error) => {
                        assert_eq!(
                            (error.kind(), phase),
                            (io::ErrorKind::TimedOut, Phase::Held(HoldMode::Floods))
                        );
                    }
                }
                drop(lines);
            } else {
                drop((lines, writer));
                // What is written meanwhile fails, or the input has ended.
                if let Err(error) = soon(serving).await.unwrap() {
                    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
                }
            }
            if matches!(phase, Phase::Held(_)) {
                gate.dropped("a").await;
            }
            census.is_back(&format!("{phase:?}, half: {half}")).await;
        }
    }
}

/// A client that does not read is left with an error, with any kind of message waiting to be written.
#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_is_left() {
    let (server, mut gate) = server();
    let census = LeakCheck::of(&server);
    for (what, says) in [
        ("a large reply", request(1, "tools/call", json!({"name": "large", "arguments": {}})).to_string()),
        ("progress", hold(json!(1), "a", HoldMode::Floods)),
        ("changes", listen(1, json!({"toolsListChanged": true}))),
        ("an error", "x".to_owned()),
        ("many replies", vec![discover(1); 100].join("\n")),
    ] {
        let mut peer = serve(server.clone(), 32);
        let _ = tokio::time::timeout(Duration::from_secs(1), peer.writer.write_all(says.as_bytes())).await;
        let _ = tokio::time::timeout(Duration::from_secs(1), peer.writer.write_all(b"\n")).await;
        if what == "changes" {
            // Acknowledged, and then left alone with the first change.
            peer.receive().await.unwrap();
            server.add_tool(tool("late")).unwrap();
        }
        let error = tokio::time::timeout(AGES, peer.serving).await.expect(what).unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{what}");
        if what == "progress" {
            gate.started("a").await;
            gate.dropped("a").await;
        }
        server.remove_tool("late");
        census.is_back(what).await;
    }
}

/// A handler that is never at a loss for words does not keep others from being heard.
#[tokio::test]
async fn a_flood_of_progress_can_be_cancelled() {
    let (server, mut gate) = server();
    let census = LeakCheck::of(&server);
    let Peer { mut lines, mut writer, serving } = serve(server, 1 << 16);
    let reading = tokio::spawn(async move {
        let mut ids = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] != "notifications/progress" {
                ids.push(message["id"].clone());
            }
        }
        ids
    });
    let mut say = async |line: String| soon(writer.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    say(hold(json!(1), "a", HoldMode::Floods)).await;
    gate.started("a").await;
    say(discover(2)).await;
    say(cancel(&json!(1))).await;
    gate.dropped("a").await;
    say(hold(json!(1), "b", HoldMode::Floods)).await;
    gate.started("b").await;
    gate.open("b");
    gate.ended("b").await;
    say(discover(3)).await;
    writer.shutdown().await.unwrap();
    soon(serving).await.unwrap().unwrap();
    drop(writer);
    assert_eq!(soon(reading).await.unwrap(), [2, 1, 3]);
    census.is_back("a flood").await;
}

#[tokio::test]
async fn cancelling_what_is_not_under_way_does_nothing() {
    let (server, mut gate) = server();
    let census = LeakCheck::of(&server);
    let mut peer = serve(server.clone(), 1 << 16);
    // Done, unknown, twice.
    peer.send(discover(1)).await;
    assert_eq!(peer.receive_outcome().await, (json!(1), 0));
    peer.holds(&mut gate, json!(2), "a").await;
    for id in [json!(1), json!(3), json!(2), json!(2)] {
        peer.send(cancel(&id)).await;
    }
    gate.dropped("a").await;
    peer.send(discover(4)).await;
    assert_eq!(peer.receive_outcome().await, (json!(4), 0));
    // A reply comes before the cancellation is read: there is one reply, and the id is free.
    peer.holds(&mut gate, json!(2), "b").await;
    gate.open("b");
    gate.ended("b").await;
    peer.send(cancel(&json!(2))).await;
    assert_eq!(peer.receive_outcome().await, (json!(2), 0));
    peer.send(format!("{}\n{}", discover(2), discover(5))).await;
    assert_eq!(peer.receive_outcome().await, (json!(2), 0));
    assert_eq!(peer.receive_outcome().await, (json!(5), 0));
    assert_eq!(peer.ends().await, [] as [Value; 0]);
    census.is_back("cancelling").await;
}

/// > Servers [...] **MUST NOT** send any further messages for it.
#[tokio::test]
async fn a_cancelled_handler_sends_nothing_more() {
    struct ReportOnDrop<'a>(&'a Ctx);
    impl Drop for ReportOnDrop<'_> {
        fn drop(&mut self) {
            self.0.report_progress(2.0, None, None);
            self.0.log(LogLevel::Emergency, "gone");
        }
    }
    let parting = Tool::new("parting", async |ctx: &Ctx, _: NoArguments| {
        ctx.report_progress(1.0, None, None);
        let _parting = ReportOnDrop(ctx);
        std::future::pending::<String>().await
    });
    let server = fixture(|builder| builder.tool(parting).logging(true)).server;
    let mut peer = serve(server, 1 << 16);
    let meta = json!({"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"});
    let meta = with(&common::meta(), meta);
    peer.send(request(1, "tools/call", json!({"name": "parting", "_meta": meta})).to_string()).await;
    assert_eq!(peer.receive().await.unwrap()["method"], "notifications/progress");
    peer.send(format!("{}\n{}", cancel(&json!(1)), discover(2))).await;
    assert_eq!(peer.receive_outcome().await, (json!(2), 0));
    assert_eq!(peer.ends().await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_flood_of_nothing_costs_little() {
    let (server, _gate) = server();
    let census = LeakCheck::of(&server);
    for flood in ["\n".to_owned(), format!("{}\n", cancelled(r#","params":{"requestId":1}"#))] {
        let mut peer = serve(server.clone(), 1 << 16);
        let began = std::time::Instant::now();
        let bytes = flood.repeat((8 << 20) / flood.len());
        soon(peer.writer.write_all(bytes.as_bytes())).await.unwrap();
        peer.send(discover(1)).await;
        assert_eq!(peer.receive_outcome().await, (json!(1), 0));
        // Far more than it takes, and far less than it took once: each line moved all that was read behind it.
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        assert_eq!(peer.ends().await, [] as [Value; 0]);
    }
    census.is_back("a flood").await;
}

#[tokio::test]
async fn a_line_without_end_is_refused_once() {
    let (server, _gate) = server();
    let census = LeakCheck::of(&server);
    let mut peer = serve(server, 1 << 16);
    soon(peer.writer.write_all(&vec![b'x'; 20 << 20])).await.unwrap();
    assert_eq!(peer.receive_outcome().await, (Value::Null, -32600));
    assert_eq!(peer.ends().await, [] as [Value; 0]);
    census.is_back("a long line").await;
}

#[tokio::test]
async fn many_subscriptions_of_one_channel_end_in_any_order() {
    const MANY: u32 = 100;
    let (server, _gate) = server();
    let census = LeakCheck::of(&server);
    let mut peer = serve(server.clone(), 1 << 16);
    for id in 0..MANY {
        let uris = json!(["all://", format!("one://{id}")]);
        peer.send(listen(id, json!({"toolsListChanged": true, "resourceSubscriptions": uris}))).await;
        peer.receive().await.unwrap();
    }
    assert_eq!(load(&server), (100, 0));
    let id_of = |message: &Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].as_u64().unwrap() as u32
    };
    // 37 and 100 have no common divisor: each comes once.
    let mut open: Vec<u32> = (0..MANY).map(|number| number * 37 % MANY).collect();
    while let Some(id) = open.pop() {
        peer.send(format!("{}\n{}", cancel(&json!(id)), discover(1000))).await;
        assert_eq!(peer.receive().await.unwrap()["id"], 1000);
        assert_eq!(load(&server), (open.len(), 0));
        server.resource_updated(&format!("one://{id}"));
        server.resource_updated("all://");
        let mut heard = Vec::new();
        for _ in &open {
            heard.push(id_of(&peer.receive().await.unwrap()));
        }
        heard.sort_unstable();
        let mut expected = open.clone();
        expected.sort_unstable();
        assert_eq!(heard, expected);
    }
    assert_eq!(peer.ends().await, [] as [Value; 0]);
    census.is_back("subscriptions").await;
}

#[tokio::test]
async fn after_a_drain_requests_are_answered_and_subscriptions_end() {
    let (server, mut gate) = server();
    let mut peer = serve(server.clone(), 1 << 16);
    peer.holds(&mut gate, json!(1), "a").await;
    server.drain();
    peer.send(discover(2)).await;
    assert_eq!(peer.receive_outcome().await, (json!(2), 0));
    peer.send(listen(3, json!({}))).await;
    let acknowledged = peer.receive().await.unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(peer.receive_outcome().await, (json!(3), 0));
    assert_eq!(peer.receive().await.unwrap()["method"], "notifications/cancelled");
    gate.open("a");
    assert_eq!(peer.receive_outcome().await, (json!(1), 0));
    assert_eq!(load(&server), (0, 0));
    assert_eq!(peer.ends().await, [] as [Value; 0]);
}

/// Hosts of .NET write a byte order mark before their first line.
#[tokio::test]
async fn the_first_line_may_begin_with_a_byte_order_mark() {
    let mut peer = serve(fixture(|builder| builder).server, 1 << 16);
    peer.send(format!("\u{feff}{}", request(1, "tools/list", json!({})))).await;
    assert_eq!(peer.receive_outcome().await, (json!(1), 0));
    assert_eq!(peer.ends().await, [] as [Value; 0]);
}

/// An author's form may have been read from a file, with its line ends.
#[tokio::test]
async fn a_message_is_one_line_whatever_is_in_it() {
    let pretty = "{\r\n \"type\": \"object\",\n \"properties\": {\r \"a\": {\n \"type\": \"string\"\n}\n}\n}";
    let schema: FormSchema = serde_json::from_str(pretty).unwrap();
    let asks = Tool::new("asks", move |_: &Ctx, _: NoArguments| {
        let ask = antiphon::server::Ask::form("a", "two\nlines", schema.clone());
        async move { antiphon::server::Reply::<String>::from(ask) }
    });
    let server = fixture(|builder| builder.tool(asks)).server;
    let mut peer = serve(server, 1 << 16);
    peer.send(request(1, "tools/call", json!({"name": "asks"})).to_string()).await;
    let line = soon(peer.lines.next_line()).await.unwrap().unwrap();
    assert!(!line.contains('\r'), "{line}");
    let reply: Value = serde_json::from_str(&line).unwrap();
    let params = &reply["result"]["inputRequests"]["a"]["params"];
    assert_eq!(params["message"], "two\nlines");
    assert_eq!(params["requestedSchema"]["properties"]["a"]["type"], "string");
    assert_eq!(peer.ends().await, [] as [Value; 0]);
}
