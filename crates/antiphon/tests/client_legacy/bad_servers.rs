//! Servers of sessions that are stuck, slow, lying or gone: each call ends in time, with an error that says so, or
//! goes well.

use crate::scripted_server::{
    Peer, ReceivedRequest, ScriptedHttpServer, ScriptedReply, builder, event, hello, result,
};
use antiphon::client::{
    Client, ClientErrorKind, Mode, calls::RequestFault, transport::TransportErrorKind as Kind,
};
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
enum CallEnd {
    Good,
    Failed(Kind),
    Timeout,
    Refused(i64),
    BadResult,
    NoVersion,
}

async fn call(client: &Client) -> CallEnd {
    match client.call_tool("t", ()).await {
        Ok(_) => CallEnd::Good,
        Err(error) => match error.kind() {
            ClientErrorKind::Request(RequestFault::Transport(error)) => CallEnd::Failed(error.kind()),
            ClientErrorKind::Request(RequestFault::Timeout(_)) => CallEnd::Timeout,
            ClientErrorKind::Request(RequestFault::Server(error)) => CallEnd::Refused(error.code.0),
            ClientErrorKind::Request(RequestFault::Result { .. }) => CallEnd::BadResult,
            ClientErrorKind::Request(RequestFault::Version { .. }) => CallEnd::NoVersion,
            other => panic!("{other:?}"),
        },
    }
}

fn done(id: &Value) -> Value {
    result(id, json!({"content": []}))
}

/// Rows: the response to `initialize`, and the response to the call; `ID` stands for the id. `None` closes, an empty
/// text is silence.
#[tokio::test(start_paused = true)]
async fn over_streams() {
    let good = hello("2025-11-25").to_string();
    let hello = format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{good}}}"#);
    let done = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}"#;
    let closed = CallEnd::Failed(Kind::Closed);
    let flood = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#.to_owned() + "\n";
    let rows: Vec<(&str, Option<String>, Option<String>, CallEnd)> = vec![
        ("good", Some(hello.clone()), Some(done.into()), CallEnd::Good),
        ("no handshake", Some(String::new()), None, CallEnd::Timeout),
        ("closes instead of a handshake", None, None, closed),
        (
            "an error instead of a handshake",
            Some(r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"x"}}"#.into()),
            None,
            CallEnd::Refused(-32603),
        ),
        (
            "a handshake without a version",
            Some(r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#.into()),
            None,
            CallEnd::BadResult,
        ),
        (
            "a handshake of no legacy version",
            Some(hello.replace("2025-11-25", "2026-07-28")),
            None,
            CallEnd::NoVersion,
        ),
        ("someone else's handshake", Some(hello.replace("ID", "99")), None, CallEnd::Timeout),
        ("no answer", Some(hello.clone()), Some(String::new()), CallEnd::Timeout),
        ("closes", Some(hello.clone()), None, closed),
        (
            "garbage, then the answer",
            Some(hello.clone()),
            Some(format!("garbage\n{{}}\n[]\n[1]\n{done}")),
            CallEnd::Good,
        ),
        ("much garbage", Some(hello.clone()), Some("x\n".repeat(200)), CallEnd::Failed(Kind::Malformed)),
        (
            "a flood of pings, then the answer",
            Some(hello.clone()),
            Some(flood.repeat(300) + done),
            CallEnd::Good,
        ),
        ("pings without end", Some(hello.clone()), Some(flood.repeat(30_000) + done), closed),
        (
            "answers that nobody asked for",
            Some(hello.clone()),
            Some(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#.to_owned() + "\n" + done),
            CallEnd::Good,
        ),
        (
            "a result of another shape",
            Some(hello.clone()),
            Some(r#"{"jsonrpc":"2.0","id":ID,"result":[]}"#.into()),
            CallEnd::BadResult,
        ),
        (
            "cancels what nobody asked",
            Some(hello.clone()),
            Some(
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#.to_owned()
                    + "\n"
                    + done,
            ),
            CallEnd::Good,
        ),
    ];
    for (name, to_hello, to_call, expected) in rows {
        let (client, mut peer) = Peer::of(builder().mode(Mode::Legacy));
        let playing = async move {
            while let Some(message) = peer.receive().await {
                let said = match message["method"].as_str() {
                    Some("initialize") => to_hello.clone(),
                    Some("tools/call") => to_call.clone(),
                    _ => continue,
                };
                let Some(said) = said else { return };
                // Whoever floods does not read.
                peer.send_line(&said.replace("ID", &message["id"].to_string())).await;
            }
        };
        let playing = tokio::spawn(playing);
        assert_eq!(call(&client).await, expected, "{name}");
        playing.abort();
    }
}

#[tokio::test]
async fn over_http() {
    let sse = |text: &str| ScriptedReply::events(text.to_owned());
    type AnswerFn = Box<dyn Fn(&ReceivedRequest) -> ScriptedReply + Send + Sync>;
    let closed = CallEnd::Failed(Kind::Closed);
    let rows: Vec<(&str, AnswerFn, CallEnd)> = vec![
        ("good", Box::new(|heard| ScriptedReply::json(200, done(&heard.body["id"]))), CallEnd::Good),
        ("as a stream", Box::new(move |heard| sse(&event(&done(&heard.body["id"])))), CallEnd::Good),
        (
            "in a batch",
            Box::new(|heard| ScriptedReply::json(200, json!([done(&heard.body["id"])]))),
            CallEnd::Good,
        ),
        ("silence", Box::new(|_| ScriptedReply::Silence), CallEnd::Timeout),
        ("closed", Box::new(|_| ScriptedReply::Close), closed),
        ("an empty stream", Box::new(move |_| sse("")), closed),
        (
            "a stream without an id",
            Box::new(move |_| sse("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")),
            closed,
        ),
        ("a stream of garbage", Box::new(move |_| sse("data: <p>\n\n")), CallEnd::Failed(Kind::Malformed)),
        (
            "someone else's answer",
            Box::new(|_| ScriptedReply::json(200, done(&json!(99)))),
            CallEnd::Failed(Kind::Malformed),
        ),
        (
            "a page",
            Box::new(|_| ScriptedReply::typed(200, "text/html", "<p>")),
            CallEnd::Failed(Kind::Malformed),
        ),
        ("202", Box::new(|_| ScriptedReply::empty(202)), CallEnd::Failed(Kind::Malformed)),
        ("500", Box::new(|_| ScriptedReply::empty(500)), CallEnd::Failed(Kind::HttpStatus(500))),
        ("404 for ever", Box::new(|_| ScriptedReply::empty(404)), CallEnd::Failed(Kind::HttpStatus(404))),
        ("resumed for ever", Box::new(move |_| sse("id: 1\nretry: 1\n\n")), CallEnd::Timeout),
        (
            "an open stream that says nothing",
            Box::new(|_| {
                let (sender, said) = ScriptedReply::open(": still\n\n");
                std::mem::forget(sender);
                said
            }),
            CallEnd::Timeout,
        ),
    ];
    for (name, says, expected) in rows {
        let played = ScriptedHttpServer::new(move |heard| match (heard.verb.as_str(), heard.method()) {
            ("POST", "initialize") => {
                ScriptedReply::json(200, result(&heard.body["id"], hello("2025-06-18")))
                    .with("mcp-session-id", "s")
            }
            ("POST", "logging/setLevel") => ScriptedReply::json(200, result(&heard.body["id"], json!({}))),
            ("POST", "tools/call") => says(heard),
            ("POST", _) => ScriptedReply::empty(202),
            // The stream of the session ends at once, each time.
            ("GET", _) if heard.header("last-event-id").is_none() => ScriptedReply::events(""),
            ("GET", _) => says(heard),
            _ => ScriptedReply::empty(204),
        })
        .await;
        let limit =
            if expected == CallEnd::Timeout { Duration::from_millis(300) } else { Duration::from_secs(30) };
        let client = played.client(builder().mode(Mode::Legacy).leg_timeout(limit));
        assert_eq!(call(&client).await, expected, "{name}");
        client.close().await;
    }
}
