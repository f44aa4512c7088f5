//! Bad servers over a pair of streams in memory. The clock stands still while anything can run, so every timeout is exact.

use super::{CallEnd, GOOD, alive, alone, call, limit_of, settles};
use antiphon::client::transport::{Transport, TransportErrorKind as Kind, memory};
use std::sync::Arc;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    sync::mpsc,
};

async fn check(name: &str, before_request: &str, said: Vec<u8>, closes: bool, expected: CallEnd) {
    let before = alive();
    let (transport, reader, mut writer) = memory::duplex();
    writer.write_all(before_request.as_bytes()).await.unwrap();
    let (to_test, mut heard) = mpsc::unbounded_channel();
    let server = tokio::spawn(async move {
        let mut lines = BufReader::new(reader).lines();
        lines.next_line().await.unwrap();
        let _ = writer.write_all(&said).await;
        if closes {
            drop(writer);
        }
        // Until the client has closed.
        while let Some(line) = lines.next_line().await.unwrap() {
            to_test.send(line).unwrap();
        }
    });
    let transport = Arc::new(transport);
    let came = call(Arc::clone(&transport) as Arc<dyn Transport>, limit_of(expected)).await;
    assert_eq!(came, expected, "{name}");
    // > the client **MUST** send a `notifications/cancelled` notification referencing the request's ID.
    if expected == CallEnd::Timeout {
        assert!(heard.recv().await.unwrap().contains("notifications/cancelled"), "{name}");
    }
    drop(transport);
    server.await.unwrap();
    settles(name, before).await;
}

#[test]
fn any_message_of_the_peer() {
    let good = format!("{GOOD}\n");
    let line = |text: &str| format!("{text}\n").into_bytes();
    let then_good = |text: &str| format!("{text}\n{good}").into_bytes();
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#;
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#;
    let unknown = r#"{"jsonrpc":"2.0","method":"notifications/what"}"#;
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;
    let other = GOOD.replace(":1,", ":2,");
    let giant = "x".repeat(20 * 1024 * 1024);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{deep}}}");
    let closed = CallEnd::Failed(Kind::Closed);
    let (malformed, too_large) = (CallEnd::Failed(Kind::Malformed), CallEnd::Failed(Kind::TooLarge));
    let half = GOOD.as_bytes()[..GOOD.len() / 2].to_vec();
    // What was said, whether the peer then closes, and what the call comes to.
    let rows: Vec<(&str, Vec<u8>, bool, CallEnd)> = vec![
        ("no reply", vec![], false, CallEnd::Timeout),
        ("no reply, closed", vec![], true, closed),
        ("half a line", half.clone(), false, CallEnd::Timeout),
        ("half a line, closed", half, true, closed),
        ("a line without its end", GOOD.into(), false, CallEnd::Timeout),
        ("only another's", line(&other), false, CallEnd::Timeout),
        ("another's, then ours", then_good(&other), false, CallEnd::Good),
        ("twice", then_good(GOOD), false, CallEnd::Good),
        ("unknown notification", then_good(unknown), false, CallEnd::Good),
        ("a flood of progress", then_good(&format!("{progress}\n").repeat(20_000)), false, CallEnd::Good),
        ("a flood of logs", then_good(&format!("{log}\n").repeat(20_000)), false, CallEnd::Good),
        ("a flood of the unknown", then_good(&format!("{unknown}\n").repeat(20_000)), false, CallEnd::Good),
        ("a flood and no reply", line(&format!("{progress}\n").repeat(20_000)), false, CallEnd::Timeout),
        ("a flood of nothing", then_good(&"\n".repeat(1_000_000)), false, CallEnd::Good),
        ("a flood of requests", then_good(&format!("{request}\n").repeat(1000)), false, CallEnd::Good),
        ("a flood of others' answers", then_good(&format!("{other}\n").repeat(1000)), false, CallEnd::Good),
        ("a giant line", then_good(&giant), false, too_large),
        ("a giant line without end", giant.clone().into(), false, too_large),
        ("a giant line, closed", giant.into(), true, too_large),
        ("nested beyond reason", line(&deep), false, malformed),
        ("no JSON", line(&"<html>\n".repeat(100)), false, malformed),
        ("some no JSON", then_good(&"<html>\n".repeat(99)), false, CallEnd::Good),
        ("zeros", then_good("\0\0\0"), false, CallEnd::Good),
        ("a batch", then_good(&format!("[{GOOD}]")), false, CallEnd::Good),
        (
            "no result of this method",
            line(r#"{"jsonrpc":"2.0","id":1,"result":[]}"#),
            false,
            CallEnd::BadResult,
        ),
        ("half an error", line(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#), false, malformed),
        (
            "an error",
            line(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":""}}"#),
            false,
            CallEnd::Refused(-5),
        ),
    ];
    alone(true, async {
        for (name, said, closes, expected) in rows {
            check(name, "", said, closes, expected).await;
        }
        // The peer guesses the id: an answer to what was never asked.
        check("an answer before the request", &good, vec![], false, CallEnd::Timeout).await;
        for at in 0..good.len() {
            check(&format!("cut at {at}"), "", good.as_bytes()[..at].to_vec(), true, closed).await;
        }
    });
}
