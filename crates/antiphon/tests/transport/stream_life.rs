//! The life of requests on a shared channel: cancelled, failed, closed.

use crate::transport_support::{ask, failed, peer::*, request};
use antiphon::client::transport::{
    StreamTransport, Transport,
    TransportErrorKind::{Closed, TooLarge, Unreachable},
};
use serde_json::json;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex};

#[tokio::test]
async fn a_dropped_request_is_cancelled_and_its_late_response_ignored() {
    let (client, mut peer) = pair();
    let dropped = asking(&client, 1, "tools/call");
    assert_eq!(peer.receive_id().await, 1);
    dropped.abort();
    let notice = peer.receive().await.unwrap();
    assert_eq!(notice["method"], "notifications/cancelled");
    assert_eq!(notice["params"]["requestId"], 1);
    assert!(notice["params"]["reason"].is_string() && notice.get("id").is_none());
    peer.answers(&json!(1), json!({"late": true})).await;
    // The id may be used again.
    let next = asking(&client, 1, "tools/call");
    assert_eq!(peer.receive_id().await, 1);
    peer.answers(&json!(1), json!({"ok": true})).await;
    assert_eq!(next.await.unwrap().0, ok());
    // A request that was answered is not cancelled.
    drop(client);
    assert_eq!(peer.receive().await, None);
}

#[tokio::test]
async fn a_request_that_was_never_written_is_never_cancelled() {
    let (to_client, reader) = duplex(1024);
    let (writer, from_client) = duplex(8);
    let client = Arc::new(StreamTransport::new(reader, writer, "narrow"));
    let mut peer = Peer { lines: BufReader::new(from_client).lines(), writer: to_client };
    // The first is stuck in the pipe; the second waits behind it.
    let first = asking(&client, 1, "tools/call");
    tokio::task::yield_now().await;
    let second = asking(&client, 2, "tools/call");
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    second.abort();
    assert!(second.await.unwrap_err().is_cancelled());
    assert_eq!(peer.receive_id().await, 1);
    first.abort();
    assert_eq!(peer.receive().await.unwrap()["params"]["requestId"], 1);
    client.close().await;
    assert_eq!(peer.receive().await, None);
}

#[tokio::test]
async fn an_id_under_way_is_not_taken_twice() {
    let (client, mut peer) = pair();
    let first = asking(&client, 1, "tools/call");
    peer.receive_id().await;
    let (outcome, _) = ask(&*client, request(1, "tools/call")).await;
    assert!(outcome.fits(&failed(Unreachable, "under way already")), "{outcome:?}");
    peer.send(OK).await;
    assert_eq!(first.await.unwrap().0, ok());
}

#[tokio::test]
async fn one_request_is_one_line() {
    let (client, mut peer) = pair();
    let mut pretty = request(1, "tools/call");
    pretty.body =
        b"{\"jsonrpc\":\"2.0\",\r\n\"id\":1,\n\"method\":\"m\",\"params\":{\"a\":\"\\n\"}}".to_vec();
    let call = tokio::spawn({
        let client = Arc::clone(&client);
        async move { ask(&*client, pretty).await }
    });
    assert_eq!(peer.receive().await.unwrap()["params"]["a"], "\n");
    peer.send(OK).await;
    assert_eq!(call.await.unwrap().0, ok());
}

/// Programs of .NET write a byte order mark before their first line.
#[tokio::test]
async fn the_first_line_may_begin_with_a_byte_order_mark() {
    let (client, mut peer) = pair();
    let call = asking(&client, 1, "tools/call");
    peer.receive_id().await;
    peer.send([b"\xef\xbb\xbf", OK].concat()).await;
    assert_eq!(call.await.unwrap().0, ok());
}

#[tokio::test]
async fn an_error_without_id_is_nobodys_among_two() {
    let (client, mut peer) = pair();
    let calls = [asking(&client, 1, "tools/call"), asking(&client, 2, "tools/call")];
    for _ in 0..2 {
        peer.receive_id().await;
    }
    peer.send("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-6,\"message\":\"no\"}}\n").await;
    for id in [1, 2] {
        peer.answers(&json!(id), json!({"ok": true})).await;
    }
    for call in calls {
        assert_eq!(call.await.unwrap().0, ok());
    }
}

#[tokio::test]
async fn a_giant_line_fails_what_was_sent_and_nothing_after() {
    let (client, mut peer) = pair();
    let calls = [asking(&client, 1, "tools/call"), asking(&client, 2, "tools/call")];
    for _ in 0..2 {
        peer.receive_id().await;
    }
    peer.send(vec![b'x'; 20 * 1024 * 1024]).await;
    for call in calls {
        assert!(call.await.unwrap().0.fits(&failed(TooLarge, "longer")));
    }
    for _ in 0..2 {
        assert_eq!(peer.receive().await.unwrap()["method"], "notifications/cancelled");
    }
    peer.send("\n").await;
    let next = asking(&client, 3, "tools/call");
    let id = peer.receive_id().await;
    peer.answers(&id, json!({"ok": true})).await;
    assert_eq!(next.await.unwrap().0, ok());
}

#[tokio::test]
async fn a_peer_that_stops_reading_still_may_answer() {
    let (client, mut peer) = pair();
    let first = asking(&client, 1, "tools/call");
    peer.receive_id().await;
    let Peer { lines, mut writer } = peer;
    drop(lines);
    let (outcome, _) = ask(&*client, request(2, "tools/call")).await;
    assert!(outcome.fits(&failed(Closed, "does not read any more")), "{outcome:?}");
    let (outcome, _) = ask(&*client, request(3, "tools/call")).await;
    assert!(outcome.fits(&failed(Closed, "does not read any more")), "{outcome:?}");
    writer.write_all(OK).await.unwrap();
    assert_eq!(first.await.unwrap().0, ok());
}

#[tokio::test]
async fn closing_fails_what_is_under_way_and_ends_both_tasks() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let (client, mut peer) = pair();
    assert_eq!(alive(), before + 2);
    let calls: Vec<_> = (0..50).map(|id| asking(&client, id, "tools/call")).collect();
    for _ in 0..50 {
        peer.receive_id().await;
    }
    assert_eq!(alive(), before + 2 + 50);
    client.close().await;
    for call in calls {
        assert!(call.await.unwrap().0.fits(&failed(Closed, "this client closed")));
    }
    assert_eq!(alive(), before);
    assert_eq!(peer.receive().await, None);
    client.close().await;
    let (outcome, _) = ask(&*client, request(1, "tools/call")).await;
    assert!(outcome.fits(&failed(Closed, "this client closed")), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_a_peer_that_does_not_read() {
    let (_to_client, reader) = duplex(1024);
    let (writer, _from_client) = duplex(8);
    let client = Arc::new(StreamTransport::new(reader, writer, "stuck"));
    let call = asking(&client, 1, "tools/call");
    tokio::task::yield_now().await;
    client.close().await;
    assert!(call.await.unwrap().0.fits(&failed(Closed, "this client closed")));
}

#[tokio::test]
async fn dropping_the_transport_ends_both_tasks() {
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let (client, mut peer) = pair();
    drop(client);
    assert_eq!(peer.receive().await, None);
    tokio::task::yield_now().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before);
}
