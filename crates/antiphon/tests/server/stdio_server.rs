//! The server on a pair of streams: lines in, lines out, each request answered when it is done.

use crate::common::{
    fixture,
    lines::{Peer, cancelled, discover, hold, holding, serve},
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::io::AsyncWriteExt as _;

/// Sends these bytes to a server without sessions. Checks that exactly these outcomes come before that of a following request.
async fn check(what: &str, bytes: impl AsRef<[u8]>, outcomes: &[(Value, i64)]) {
    let mut peer = serve(fixture(|builder| builder.modern_only(true)).server, 1 << 16);
    peer.send(bytes).await;
    peer.send(discover(99)).await;
    let mut heard = Vec::new();
    loop {
        match peer.receive_outcome().await {
            (id, 0) if id == 99 => break,
            outcome => heard.push(outcome),
        }
    }
    assert_eq!(heard, outcomes, "{what}");
    assert_eq!(peer.ends().await, [] as [Value; 0], "{what}");
}

#[tokio::test]
async fn every_line_is_answered_by_itself() {
    let none = || Value::Null;
    let one = discover(1);
    let ok = (json!(1), 0);
    for (what, bytes, outcomes) in [
        ("a request", one.clone(), vec![ok.clone()]),
        ("CRLF", format!("{one}\r"), vec![ok.clone()]),
        ("space around it", format!("  {one}\t "), vec![ok.clone()]),
        ("blank lines", format!("\n\r\n \t\n{one}\n\n"), vec![ok.clone()]),
        (
            "three in one write",
            format!("{one}\n{}\n{}", discover(2), discover(3)),
            vec![ok.clone(), (json!(2), 0), (json!(3), 0)],
        ),
        ("a text id", one.replace(r#""id":1"#, r#""id":"1""#), vec![(json!("1"), 0)]),
        ("garbage", "hello".to_owned(), vec![(none(), -32700)]),
        ("garbage, then a request", format!("\u{feff}hello\n{one}"), vec![(none(), -32700), ok.clone()]),
        ("half a message", one[..one.len() - 1].to_owned(), vec![(none(), -32700)]),
        ("a message on two lines", one.replacen(',', ",\n", 1), vec![(none(), -32700), (none(), -32700)]),
        ("two messages on one line", format!("{one}{one}"), vec![(none(), -32700)]),
        ("a batch", format!("[{one}]"), vec![(none(), -32600)]),
        ("an id that is none", one.replace(r#""id":1"#, r#""id":1.5"#), vec![(none(), -32600)]),
        ("a response", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), vec![(none(), -32600)]),
        (
            "no metadata",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned(),
            vec![(json!(1), -32602)],
        ),
        ("no such method", one.replace("server/discover", "ping"), vec![(json!(1), -32601)]),
        (
            "initialize",
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#
                .to_owned(),
            vec![(json!(1), -32022)],
        ),
        ("initialized", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(), vec![]),
        (
            "an unknown notification",
            r#"{"jsonrpc":"2.0","method":"x/y","params":{"z":1}}"#.to_owned(),
            vec![],
        ),
        ("cancelling nothing", cancelled(r#","params":{"requestId":7,"reason":"x"}"#), vec![]),
        ("cancelling without params", cancelled(""), vec![]),
        ("cancelling without an id", cancelled(r#","params":{}"#), vec![]),
        ("cancelling null", cancelled(r#","params":{"requestId":null}"#), vec![]),
        ("cancelling a list", cancelled(r#","params":{"requestId":[1]}"#), vec![]),
        ("a reason that is none", cancelled(r#","params":{"requestId":1,"reason":7}"#), vec![]),
    ] {
        check(what, bytes, &outcomes).await;
    }
    check("not UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", &[(none(), -32700)]).await;
    let at_most = 16 << 20;
    check("as long as allowed", format!("{}{one}", " ".repeat(at_most - one.len())), &[ok]).await;
    let too_long = "x".repeat(at_most + 1);
    check("too long", &too_long, &[(none(), -32600)]).await;
    check(
        "much too long, twice",
        format!("{too_long}{too_long}\n{too_long}"),
        &[(none(), -32600), (none(), -32600)],
    )
    .await;
}

#[tokio::test]
async fn requests_are_answered_when_they_are_done() {
    let (mut peer, mut gate) = holding();
    for name in ["a", "b", "c"] {
        peer.holds(&mut gate, json!(name), name).await;
    }
    peer.send(discover(1)).await;
    assert_eq!(peer.receive_outcome().await, (json!(1), 0));
    for name in ["b", "c", "a"] {
        gate.open(name);
        gate.ended(name).await;
        let reply = peer.receive().await.unwrap();
        assert_eq!((&reply["id"], &reply["result"]["content"][0]["text"]), (&json!(name), &json!(name)));
    }
    assert!(peer.ends().await.is_empty());
}

/// > Servers [...] **MUST NOT** send any further messages for it.
#[tokio::test]
async fn a_cancelled_request_is_dropped_and_not_answered() {
    let (mut peer, mut gate) = holding();
    for (id, params) in [
        (json!(1), r#","params":{"requestId":1,"reason":"the user pressed escape"}"#),
        (json!("1"), r#","params":{"requestId":"1"}"#),
        (json!(u64::MAX), r#","params":{"requestId":18446744073709551615,"_meta":{}}"#),
    ] {
        peer.holds(&mut gate, id.clone(), "a").await;
        // Of the others none is meant.
        for other in ["2", r#""2""#, "1.0", "null", "[1]"] {
            peer.send(cancelled(&format!(r#","params":{{"requestId":{other}}}"#))).await;
        }
        peer.send(discover(2)).await;
        assert_eq!(peer.receive_outcome().await, (json!(2), 0));
        assert!(gate.is_quiet());
        peer.send(cancelled(params)).await;
        gate.dropped("a").await;
        // The id is free again.
        peer.holds(&mut gate, id.clone(), "b").await;
        gate.open("b");
        gate.ended("b").await;
        assert_eq!(peer.receive_outcome().await, (id, 0));
    }
    // In one write: it may never have begun.
    let both =
        format!("{}\n{}\n{}", hold(json!(1), "c"), cancelled(r#","params":{"requestId":1}"#), discover(2));
    peer.send(both).await;
    assert_eq!(peer.receive_outcome().await, (json!(2), 0));
    assert!(peer.ends().await.is_empty());
}

/// > The request ID **MUST NOT** match the ID of any other request the sender has issued and not yet received a
/// > response for.
#[tokio::test(start_paused = true)]
async fn an_id_under_way_is_refused() {
    let (mut peer, mut gate) = holding();
    peer.holds(&mut gate, json!(1), "a").await;
    peer.send(hold(json!(1), "b")).await;
    assert_eq!(peer.receive_outcome().await, (json!(1), -32600));
    // The text "1" is another id.
    peer.holds(&mut gate, json!("1"), "c").await;
    gate.open("a");
    gate.ended("a").await;
    assert_eq!(peer.receive_outcome().await, (json!(1), 0));
    peer.holds(&mut gate, json!(1), "b").await;
    peer.ends().await;
}

/// The next line is read with any number of running requests: it may cancel one.
#[tokio::test(start_paused = true)]
async fn a_full_server_says_so_and_still_listens() {
    let (mut peer, mut gate) = holding();
    for id in 0..1024 {
        peer.holds(&mut gate, json!(id), &id.to_string()).await;
    }
    peer.send(hold(json!(1024), "one too many")).await;
    let reply = peer.receive().await.unwrap();
    assert_eq!((&reply["id"], &reply["error"]["data"]["reason"]), (&json!(1024), &json!("busy")));
    peer.send(cancelled(r#","params":{"requestId":7}"#)).await;
    gate.dropped("7").await;
    peer.holds(&mut gate, json!(1025), "one more").await;
    peer.ends().await;
}

/// > Servers **SHOULD** exit promptly when their standard input is closed or reads return end-of-file.
///
/// A request that does not end has some seconds.
#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_ends_the_server() {
    let (mut peer, mut gate) = holding();
    peer.holds(&mut gate, json!(1), "a").await;
    assert!(peer.ends().await.is_empty());
    gate.dropped("a").await;
    // So does the end of its future.
    let (mut peer, mut gate) = holding();
    peer.holds(&mut gate, json!(1), "a").await;
    peer.serving.abort();
    gate.dropped("a").await;
}

/// `echo '..' | server` shows the answer.
#[tokio::test]
async fn what_needs_no_waiting_is_answered_before_the_end() {
    for _ in 0..50 {
        let (mut peer, _gate) = holding();
        peer.send(format!("{}\n{}", discover(1), discover(2))).await;
        let ids: Vec<Value> = peer.ends().await.iter().map(|reply| reply["id"].clone()).collect();
        assert_eq!(ids, [1, 2]);
    }
}

/// A client that writes and does not read is not read from either, and loses nothing.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_made_to_wait() {
    const REQUESTS: u32 = 5000;
    let Peer { mut lines, mut writer, serving } = serve(fixture(|builder| builder).server, 1024);
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let mut writing = tokio::spawn(async move {
        for id in 0..REQUESTS {
            writer.write_all(format!("{}\n", discover(id)).as_bytes()).await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
        }
        writer
    });
    // Time stands still while anything can go on.
    tokio::time::timeout(Duration::from_secs(1), &mut writing).await.expect_err("the client waits");
    let before = written.load(Ordering::Relaxed);
    assert!(before < 500, "{before} requests were read");
    let mut heard = 0;
    while heard < REQUESTS {
        lines.next_line().await.unwrap().expect("an answer to each");
        heard += 1;
    }
    drop(writing.await.unwrap());
    drop(lines);
    serving.await.unwrap().unwrap();
}
