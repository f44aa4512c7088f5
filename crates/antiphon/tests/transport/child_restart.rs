//! A child that ends by itself is started again, but not for ever.
#![cfg(unix)]

use crate::transport_support::{Outcome, ask, failed, request, soon};
use antiphon::{
    client::{
        Client, ClientErrorKind, Mode,
        calls::RequestFault,
        events::{ReconnectPolicy, SubscriptionEvent},
        transport::{
            ChildCommand, ChildStderr, ChildTransport, Transport,
            TransportErrorKind::{Closed, Unreachable},
        },
    },
    wire::{ProtocolVersion, SubscriptionFilter},
};
use std::time::Duration;
use tokio::sync::mpsc;

/// Reads a request, tells the log its process, and sets `$id`.
const READ: &str = r#"read line; echo "run $$" >&2; id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')"#;

fn child(script: &str, restarts: usize) -> (ChildTransport, mpsc::UnboundedReceiver<String>) {
    let (to_test, lines) = mpsc::unbounded_channel();
    let log = ChildStderr::Lines(Box::new(move |line| to_test.send(line.to_owned()).unwrap()));
    let command = ChildCommand::new("sh").arg("-c").arg(script).named("test server").stderr(log);
    (ChildTransport::spawn(command.restarts(restarts)).unwrap(), lines)
}

async fn ends(child: &ChildTransport) {
    soon(async {
        while child.id().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_next_request_starts_it_again_within_bounds() {
    let script =
        READ.to_owned() + r#"; echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"pid\":$$}}"; exit 3"#;
    let (child, mut lines) = child(&script, 3);
    let mut seen = Vec::new();
    for id in 1..=4 {
        let (Outcome::Result(result), _) = ask(&child, request(id, "tools/call")).await else {
            panic!("request {id} has no result");
        };
        let pid = result["pid"].as_u64().unwrap();
        assert!(!seen.contains(&pid), "request {id} was answered by an old process");
        seen.push(pid);
        assert_eq!(soon(lines.recv()).await, Some(format!("run {pid}")));
        ends(&child).await;
    }
    let too_often = failed(Unreachable, "`test server` ended 4 times within a minute");
    let (outcome, _) = ask(&child, request(5, "tools/call")).await;
    assert!(outcome.fits(&too_often), "{outcome:?}");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    let (outcome, _) = ask(&child, request(6, "tools/call")).await;
    assert!(matches!(outcome, Outcome::Result(_)), "{outcome:?}");
    // Once closed, it stays so.
    soon(child.close()).await;
    let (outcome, _) = ask(&child, request(7, "tools/call")).await;
    assert!(outcome.fits(&failed(Closed, "ended: exit status: 3")), "{outcome:?}");
    assert_eq!(child.id(), None);
}

#[tokio::test]
async fn requests_under_way_fail_and_show_if_there_is_another_try() {
    for (restarts, closes, is_final) in [(1, false, false), (0, false, true), (1, true, true)] {
        let (child, _lines) = child(&(READ.to_owned() + "; exit 4"), restarts);
        let error = soon(child.exchange(request(1, "tools/call"), &mut |_| {})).await.unwrap_err();
        assert_eq!((error.kind(), error.is_final()), (Closed, restarts == 0));
        assert_eq!(error.to_string(), "the server process `test server` ended: exit status: 4");
        if closes {
            soon(child.close()).await;
        }
        let again = soon(child.exchange(request(2, "tools/call"), &mut |_| {})).await.unwrap_err();
        assert_eq!((again.kind(), again.is_final()), (Closed, is_final), "{restarts} {closes}");
    }
}

#[tokio::test]
async fn a_child_that_closes_its_output_is_replaced() {
    let script =
        READ.to_owned() + r#"; echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}"; exec >&-; sleep 60"#;
    let (child, _lines) = child(&script, 1);
    let first = child.id();
    assert!(matches!(ask(&child, request(1, "tools/call")).await.0, Outcome::Result(_)));
    // Whether the end is noticed before or while the next request is under way, the one after finds another process.
    let (outcome, _) = ask(&child, request(2, "tools/call")).await;
    if !matches!(outcome, Outcome::Result(_)) {
        assert!(outcome.fits(&failed(Closed, "closed the connection")), "{outcome:?}");
        assert!(matches!(ask(&child, request(3, "tools/call")).await.0, Outcome::Result(_)));
    }
    assert_ne!(child.id(), first);
}

/// > Active `subscriptions/listen` streams must also be re-established after restart.
#[tokio::test]
async fn subscriptions_are_opened_again() {
    let script = READ.to_owned()
        + r#"; echo "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"notifications\":{\"toolsListChanged\":true},\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":$id}}}""#;
    let (child, _lines) = child(&script, 2);
    let modern = Mode::Pinned(ProtocolVersion::V2026_07_28);
    let client = Client::builder("my-host", "1.0").mode(modern).connect(child);
    let policy = ReconnectPolicy::default().attempts(2).max_interval(Duration::from_millis(1));
    let mut subscription = client.listen(SubscriptionFilter::new().tools()).reconnect(policy);
    for _ in 0..3 {
        let event = soon(subscription.next()).await.unwrap().unwrap();
        assert_eq!(event, SubscriptionEvent::Acknowledged(SubscriptionFilter::new().tools()));
    }
    let error = soon(subscription.next()).await.unwrap().unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::Request(RequestFault::Transport(error)) if error.kind() == Unreachable),
        "{error:?}"
    );
    assert!(soon(subscription.next()).await.is_none());
}
