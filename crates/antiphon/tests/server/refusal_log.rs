//! The log of refused requests: a warning once per cause and minute, with the number of those that followed.

use crate::common::{
    Over, answers, askable, by_header, fixture,
    gate::soon,
    log::take_log,
    post::{correct, post, set},
    request, send,
    socket::{Client, serve, text},
    with,
};
use antiphon::{
    Clock,
    serve::http::{HttpOptions, HttpService},
};
use bytes::Bytes;
use http::{Method, Request};
use serde_json::json;
use std::time::{Duration, SystemTime};

/// The warnings since the last call, without their texts for people.
fn warnings() -> Vec<String> {
    let log = take_log();
    log.lines().filter_map(|line| line.strip_prefix("WARN ")).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_refusal_is_a_warning_once_a_minute() {
    let (clock, hand) = Clock::manual(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000));
    let service = HttpService::new(fixture(|builder| builder.clock(clock)).server, HttpOptions::default());
    type Break = fn(&mut Request<Bytes>);
    let causes: [(&str, Break, u16, &str); 5] = [
        ("method", |bent| *bent.method_mut() = Method::PUT, 405, "about=\"PUT\""),
        ("content type", |bent| set(bent, "content-type", &["text/plain"]), 415, "about=\"\""),
        ("host", |bent| set(bent, "host", &["upstream\u{3164}"]), 421, "about=\"upstream\\u{3164}\""),
        (
            "origin",
            |bent| set(bent, "origin", &["http://evil.example"]),
            403,
            "about=\"http://evil.example\"",
        ),
        ("accept", |bent| set(bent, "accept", &["text/html"]), 406, "about=\"\""),
    ];
    take_log();
    for (what, bend, status, about) in causes {
        let refused = async || {
            let mut bent = correct(&request(1, "tools/list", json!({})));
            bend(&mut bent);
            assert_eq!(post(&service, bent).await.status, status, "{what}");
        };
        for (passed, expected) in
            [(0, Some(0)), (0, None), (59, None), (1, Some(2)), (0, None), (3600, Some(1))]
        {
            hand.advance(Duration::from_secs(passed));
            refused().await;
            let logged = warnings();
            assert_eq!(logged.len(), usize::from(expected.is_some()), "{what}: {logged:?}");
            if let Some(expected) = expected {
                let line = &logged[0];
                let parts = [format!("status={status} "), format!("suppressed={expected}"), about.to_owned()];
                assert!(parts.iter().all(|part| line.contains(part)), "{what}: {line}");
            }
        }
    }
}

/// A wrong path is most often a wrong setting of a client or a proxy: the log names the path.
#[tokio::test]
async fn a_wrong_path_is_a_warning() {
    let running = serve(HttpOptions::default()).await;
    take_log();
    for (path, warned) in [("/", true), ("/mcp/", true), ("/mcp", false), ("/mcp/", false), ("/sse", true)] {
        let mut client = Client::new(&running).await;
        client.send(text(1, "echo", "x", "").replacen("/mcp", path, 1)).await;
        assert_eq!(client.receive().await.status, if path == "/mcp" { 200 } else { 404 }, "{path}");
        let logged = warnings();
        assert_eq!(logged.len(), usize::from(warned), "{path}: {logged:?}");
        for line in logged {
            let parts = ["status=404 ", "HttpOptions::path", &format!("about={path:?}")];
            assert!(parts.iter().all(|part| line.contains(part)), "{path}: {line}");
        }
    }
    running.shutdown.send(()).unwrap();
    soon(running.ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_names_of_hosts_are_bounded() {
    let service = HttpService::new(fixture(|builder| builder).server, HttpOptions::default());
    take_log();
    for n in 0..500 {
        let mut bent = correct(&request(1, "tools/list", json!({})));
        set(&mut bent, "host", &[&format!("host{n}.example")]);
        assert_eq!(post(&service, bent).await.status, 421);
    }
    let logged = warnings().len();
    assert!((10..=100).contains(&logged), "{logged}");
}

#[tokio::test]
async fn refused_states_do_not_fill_the_log() {
    let (clock, hand) = Clock::manual(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000));
    let fixture = fixture(|builder| builder.bind_principal(by_header).clock(clock));
    let (method, params) = askable()[0].clone();
    take_log();
    let forged = async |state: serde_json::Value| {
        let retry = with(&params, json!({"inputResponses": answers(), "requestState": state}));
        let (status, _) =
            send(Over::Http, &fixture.server, &request(9, method, retry), Some("alice@app")).await;
        assert_eq!(status, 400);
        let logged = warnings();
        logged.into_iter().filter(|line| line.contains("requestState refused")).collect::<Vec<_>>()
    };
    let of_token = forged(json!("r1.AAAA")).await;
    assert_eq!(of_token.len(), 1, "{of_token:?}");
    for n in 0..50 {
        assert_eq!(forged(json!("r1.AAAA")).await.len(), 0, "{n}");
    }
    // Another cause is another warning.
    assert!(forged(json!(7)).await[0].contains("reason=\"not_a_string\""));
    hand.advance(Duration::from_secs(60));
    let again = forged(json!("r1.AAAA")).await;
    assert!(again[0].contains("suppressed=50"), "{again:?}");
}
