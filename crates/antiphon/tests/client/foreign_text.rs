//! Texts of servers in logs and errors, URLs that no callback gets, and HTTP refusals with what the server said.
#![cfg(feature = "http")]

use crate::{
    client_support::{Fake, Reply, asking, builder, chain, done, form, url},
    log::take_log,
    transport_support::server::*,
};
use antiphon::client::{
    Call, Client, ClientError, ClientErrorKind, Mode, PendingCall,
    asks::{AskFault, ElicitAsk},
};
use antiphon_wire::{AskSupport, ProtocolVersion};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::io::AsyncWriteExt;

const HOSTILE: &str = "roots/list\u{1b}]0;owned\u{7}\u{202e}\u{3164}\n WARN forged";

/// Checks that the log has this text escaped, on one line.
fn check_log(what: &str, log: &str) {
    let line = log.lines().find(|line| line.contains("]0;owned")).unwrap_or_else(|| panic!("{what}: {log}"));
    assert!(line.contains(r"\u{1b}]0;owned\u{7}\u{202e}\u{3164}\n WARN forged"), "{what}: {line}");
    assert!(!log.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{3164}']), "{what}: {log:?}");
}

#[tokio::test]
async fn a_request_of_the_server_is_logged_escaped() {
    let server = Server::new().await;
    let client = Client::builder("my-host", "1.0").connect(server.client());
    take_log();
    let call = tokio::spawn(async move { client.call_tool("t", ()).await });
    let mut connection = server.accepts().await;
    let (_, body) = receive(&mut connection).await;
    let id = serde_json::from_slice::<Value>(&body).unwrap()["id"].clone();
    let events = [
        json!({"jsonrpc": "2.0", "id": 1, "method": HOSTILE}),
        json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "ok"}]}}),
    ];
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    connection.write_all((head.to_owned() + &events).as_bytes()).await.unwrap();
    assert_eq!(call.await.unwrap().unwrap().first_text(), Some("ok"));
    check_log("method", &take_log());
}

#[tokio::test]
async fn the_name_of_a_tool_is_logged_escaped() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "not a token"}}});
    let tool = json!({"name": HOSTILE, "inputSchema": schema});
    let fake = Fake::http(move |_| Reply::Result(json!({"tools": [tool.clone()]})));
    take_log();
    assert_eq!(fake.client(builder()).list_tools().await.unwrap().len(), 0);
    check_log("tool", &take_log());
}

#[tokio::test]
async fn errors_show_the_words_of_a_server_escaped_and_cut() {
    let long = HOSTILE.to_owned() + &"e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}".repeat(5000);
    let body = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": long}}).to_string();
    let error = refused("200 OK", "Content-Type: application/json\r\n", &body).await;
    assert_eq!(error.server_error().unwrap().message, long, "programs get the text as it was sent");
    let shown = chain(&error);
    assert!(shown.contains(r"\u{1b}]0;owned\u{7}\u{202e}\u{3164}\n WARN forged"), "{shown}");
    assert!(shown.chars().count() < 1200 && shown.contains("bytes)"), "{}", shown.len());
    assert!(!shown.contains(['\u{1b}', '\u{202e}', '\n']), "{shown:?}");
}

/// Calls a tool that asks the person to open this URL. Returns the URLs that the callback got.
async fn opened(to: &str, any_scheme: bool) -> (Result<(), ClientError>, Vec<String>) {
    let got = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&got);
    let client = builder().any_url_scheme(any_scheme).on_elicit(move |ask| {
        let log = Arc::clone(&log);
        async move {
            let ElicitAsk::Url(ask) = ask else { panic!("a form") };
            log.lock().unwrap().push(ask.url.clone());
            Ok(ask.consent())
        }
    });
    let fake = Fake::script([asking(json!({"u": url(to)}), Some("s")), done("ok")]);
    let called = fake.client(client).call_tool("t", ()).await.map(drop);
    let got = got.lock().unwrap().clone();
    (called, got)
}

#[tokio::test]
async fn only_web_addresses_reach_a_callback() {
    for (to, is_web) in [
        ("https://pay.example/x", true),
        ("http://pay.example/x", true),
        ("javascript://host/%0aalert(1)", false),
        ("javascript:alert(1)", false),
        ("data://text/html,x", false),
        ("file://host/etc/passwd", false),
        ("vbscript://host/x", false),
        ("smb://host/share", false),
        ("ms-msdt://host/x", false),
        ("not a url", false),
        ("", false),
    ] {
        let (called, got) = opened(to, false).await;
        assert_eq!((called.is_ok(), got.len()), (is_web, usize::from(is_web)), "{to}: {called:?}");
        if let Err(error) = called {
            let kind = error.kind();
            assert!(
                matches!(kind, ClientErrorKind::Ask(AskFault::Url { key, url }) if key == "u" && url == to),
                "{kind:?}"
            );
            assert!(chain(&error).contains("not a valid http or https URL"), "{}", chain(&error));
        }
        let (called, got) = opened(to, true).await;
        assert_eq!((called.is_ok(), got), (true, vec![to.to_owned()]), "any scheme, {to}");
    }
}

#[tokio::test]
async fn only_web_addresses_are_agreed_to_by_hand() {
    for (to, any_scheme, agrees) in [
        ("https://pay.example/x", false, true),
        ("http://pay.example/x", false, true),
        ("javascript://host/%0aalert(1)", false, false),
        ("file://host/etc/passwd", false, false),
        ("not a url", false, false),
        ("ftp://host/x", true, true),
    ] {
        let client = || builder().any_url_scheme(any_scheme).declare(AskSupport::ELICITATION);
        let fake = Fake::script([asking(json!({"u": url(to)}), Some("s")), done("ok")]);
        let begun = fake.client(client()).begin(Call::tool("t", ()).unwrap()).await.unwrap();
        let mut pending = begun.pending().unwrap();
        let kept = serde_json::to_string(&pending).unwrap();
        for agree in [json!({"action": "accept"}), json!({"action": "accept", "content": {}})] {
            let set = pending.answer("u", &agree);
            assert_eq!(set.is_ok(), agrees, "{to}: {set:?}");
            assert_eq!(pending.missing().is_empty(), agrees, "{to}");
        }
        let set = pending.accept("u", &());
        assert_eq!(set.is_ok(), agrees, "{to}: {set:?}");
        // A refusal is always possible.
        pending.decline("u").unwrap();

        // The setting is kept with the call.
        let mut read: PendingCall = serde_json::from_str(&kept).unwrap();
        assert_eq!(read.accept("u", &()).is_ok(), agrees, "{to}");

        // A consent that was written into the kept call does not leave.
        let mut changed: Value = serde_json::from_str(&kept).unwrap();
        changed["answers"]["u"] = json!({"action": "accept"});
        let resumed = fake.client(client()).resume(serde_json::from_value(changed).unwrap()).await;
        assert_eq!((resumed.is_ok(), fake.requests().len()), (agrees, 1 + usize::from(agrees)), "{to}");
        if let Err(error) = resumed {
            assert!(chain(&error).contains("not a valid http or https URL"), "{}", chain(&error));
        }
    }
}

#[tokio::test]
async fn a_form_that_asks_for_a_password_has_a_warning() {
    let secret = json!({"type": "object", "properties": {"password": {"type": "string"}}});
    let mut ask = form();
    ask["params"]["requestedSchema"] = secret;
    for (ask, expected) in [(form(), 0), (ask, 1)] {
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&warnings);
        let client = builder().on_elicit_form(move |ask| {
            log.lock().unwrap().extend(ask.warnings.iter().map(ToString::to_string));
            let page = serde_json::to_value(&ask).unwrap();
            assert_eq!(page.get("warnings").is_some(), !ask.warnings.is_empty(), "a web page gets them too");
            std::future::ready(Ok(ask.decline()))
        });
        let fake = Fake::script([asking(json!({"f": ask}), Some("s")), done("ok")]);
        fake.client(client).call_tool("t", ()).await.unwrap();
        let warnings = warnings.lock().unwrap();
        assert_eq!(warnings.len(), expected, "{warnings:?}");
        assert!(
            warnings.iter().all(|text| text.starts_with("the field `password` seems to ask for a secret"))
        );
    }
}

/// Calls a tool of a server that answers with this status, these headers and this body.
async fn refused(status: &str, headers: &str, body: &str) -> ClientError {
    let server = Server::new().await;
    let client = Client::builder("my-host", "1.0")
        .mode(Mode::Pinned(ProtocolVersion::V2026_07_28))
        .connect(server.client());
    let call = tokio::spawn(async move { client.call_tool("t", ()).await });
    let mut connection = server.accepts().await;
    receive(&mut connection).await;
    let response = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len());
    connection.write_all(response.as_bytes()).await.unwrap();
    call.await.unwrap().unwrap_err()
}

#[tokio::test]
async fn a_refusal_keeps_what_the_server_said() {
    const JSON: &str = "Content-Type: application/json\r\n";
    let error =
        |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32001,"message":"the why"}}}}"#);
    for (status, headers, body, says, code, retry) in [
        (
            "403 Forbidden",
            "Content-Type: text/plain\r\n",
            "Access is only allowed at localhost:9182\n".to_owned(),
            "it said: Access is only allowed at localhost:9182",
            None,
            None,
        ),
        ("403 Forbidden", JSON, error("1"), "it said: the why (-32001)", Some(-32001), None),
        (
            "401 Unauthorized",
            "Content-Type: application/json\r\nWWW-Authenticate: Bearer\r\n",
            error("null"),
            "the why",
            Some(-32001),
            None,
        ),
        ("401 Unauthorized", JSON, error("\"server-error\""), "the why", Some(-32001), None),
        (
            "429 Too Many Requests",
            "Retry-After: 30\r\n",
            "Slow down".into(),
            "after 30s; it said: Slow down",
            None,
            Some(30),
        ),
        (
            "429 Too Many Requests",
            "Content-Type: application/json\r\nRetry-After: 5\r\n",
            error("1"),
            "the why",
            Some(-32001),
            Some(5),
        ),
        ("502 Bad Gateway", "", "a\u{1b}[2J\u{202e}b".into(), r"it said: a\u{1b}[2J\u{202e}b", None, None),
        ("502 Bad Gateway", "", "x".repeat(20_000), "… (8192 bytes)", None, None),
        (
            "503 Service Unavailable",
            "Retry-After: 2\r\n",
            "Full".into(),
            "after 2s; it said: Full",
            None,
            Some(2),
        ),
        ("503 Service Unavailable", "", "Down".into(), "it said: Down", None, None),
    ] {
        let error = refused(status, headers, &body).await;
        let text = chain(&error);
        assert!(text.contains(says), "{status}: {text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\n']) && text.len() < 700, "{text:?}");
        assert_eq!(error.server_error().map(|error| error.code.0), code, "{status} {headers}");
        assert_eq!(error.retry_after(), retry.map(Duration::from_secs), "{status}");
        assert_eq!(
            error.http_status().map(|status| status.to_string()),
            status.split(' ').next().map(str::to_owned)
        );
        assert_eq!(error.is_unauthorized(), status.starts_with("401"), "{status}");
        assert_eq!(error.is_forbidden(), status.starts_with("403"), "{status}");
        assert_eq!(error.is_busy(), retry.is_some(), "{status}");
        assert_eq!(error.is_unknown_outcome(), status.starts_with('5') && retry.is_none(), "{status}");
    }
    // What a page for browsers says helps nobody here.
    let page = refused("403 Forbidden", "Content-Type: text/html\r\n", "<html>").await.to_string();
    assert!(!page.contains("it said"), "{page}");
}
