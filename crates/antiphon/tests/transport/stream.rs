//! The client over a pair of streams with good and bad input.

use crate::transport_support::{Outcome, failed, peer::*};
use antiphon::client::transport::TransportErrorKind::{Closed, Malformed, TooLarge};
use serde_json::json;

/// One request of id 1; the peer says `pieces`, then closes.
async fn check(name: &str, pieces: &[&[u8]], expected: Outcome, notifications: &[&str]) {
    let (client, mut peer) = pair();
    let call = asking(&client, 1, "tools/call");
    peer.receive_id().await;
    for piece in pieces {
        peer.send(piece).await;
    }
    drop(peer);
    let (outcome, methods) = call.await.unwrap();
    assert!(outcome.fits(&expected), "{name}: {outcome:?} instead of {expected:?}");
    assert_eq!(methods, notifications, "{name}");
}

#[tokio::test]
async fn a_message_of_the_peer_becomes_this_outcome() {
    let giant = vec![b'x'; 20 * 1024 * 1024];
    let stray = b"not a message\n".repeat(99);
    let strays = b"not a message\n".repeat(100);
    let rows: &[(&str, &[&[u8]], Outcome)] = &[
        ("the response", &[OK], ok()),
        ("CRLF and blank lines", &[b"\r\n\n", &OK[..OK.len() - 1], b"\r\n"], ok()),
        (
            "an error",
            &[b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-5,\"message\":\"no\"}}\n"],
            Outcome::Error(-5),
        ),
        (
            "an error without id",
            &[b"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-6,\"message\":\"no\"}}\n"],
            Outcome::Error(-6),
        ),
        ("another id, then ours", &[b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n", OK], ok()),
        (
            "only another id",
            &[b"{\"jsonrpc\":\"2.0\",\"id\":\"01\",\"result\":{}}\n"],
            failed(Closed, "closed the connection"),
        ),
        ("our id as text", &[b"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{\"ok\":true}}\n"], ok()),
        ("twice", &[OK, OK], ok()),
        ("a request", &[b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n", OK], ok()),
        ("strays, then the response", &[&stray, OK], ok()),
        ("strays without end", &[&strays], failed(Malformed, "100 lines")),
        ("no UTF-8", &[b"\xff\xfe\n", OK], ok()),
        (
            "both outcomes",
            &[b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}}\n"],
            failed(Malformed, "not both"),
        ),
        ("nothing", &[], failed(Closed, "closed the connection")),
        ("half a line", &[&OK[..20]], failed(Closed, "in the middle of a message")),
        ("a line without its end", &[&OK[..OK.len() - 1]], failed(Closed, "in the middle of a message")),
        ("a giant line", &[&giant, b"\n"], failed(TooLarge, "longer than 16777216 bytes")),
        ("a giant line without end", &[&giant], failed(TooLarge, "longer than 16777216 bytes")),
    ];
    for (name, pieces, expected) in rows {
        check(name, pieces, expected.clone(), &[]).await;
    }
    for at in 0..OK.len() {
        check(&format!("split at {at}"), &[&OK[..at], &OK[at..]], ok(), &[]).await;
    }
}

#[tokio::test]
async fn notifications_find_their_request() {
    // That of an extension, perhaps: the client decides.
    let other = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/what\"}\n";
    check("unknown", &[other, OK], ok(), &["notifications/what"]).await;
    let progress =
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1}}\n";
    let foreign =
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"1\"}}\n";
    let log = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\"}}\n";
    let cancelled =
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n";
    check(
        "all before the response",
        &[progress, foreign, log, OK],
        ok(),
        &["notifications/progress", "notifications/message"],
    )
    .await;
    check("none after it", &[OK, progress], ok(), &[]).await;
    check("only subscriptions are cancelled", &[cancelled, OK], ok(), &[]).await;

    let (client, mut peer) = pair();
    let (first, second) = (asking(&client, 1, "tools/call"), asking(&client, 2, "tools/call"));
    let listening = asking(&client, 3, "subscriptions/listen");
    for _ in 0..3 {
        peer.receive_id().await;
    }
    peer.send(progress).await;
    // Two calls are under way: nobody knows whose log this is.
    peer.send(log).await;
    for id in [3, 4] {
        let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
        let update =
            json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"_meta": meta}});
        peer.send(format!("{update}\n")).await;
    }
    peer.answers(&json!(2), json!({})).await;
    peer.answers(&json!(1), json!({})).await;
    assert_eq!(first.await.unwrap(), (Outcome::Result(json!({})), vec!["notifications/progress".into()]));
    assert_eq!(second.await.unwrap(), (Outcome::Result(json!({})), vec![]));
    let end = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    peer.send(format!("{end}\n")).await;
    let (outcome, methods) = listening.await.unwrap();
    assert!(outcome.fits(&failed(Closed, "ended the subscription")), "{outcome:?}");
    assert_eq!(methods, ["notifications/resources/updated", "notifications/cancelled"]);
}

#[tokio::test]
async fn a_burst_of_notifications_arrives_whole() {
    let progress =
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1}}\n";
    let expected = vec!["notifications/progress"; 50_000];
    check("burst", &[&progress.repeat(50_000), OK], ok(), &expected).await;
}
