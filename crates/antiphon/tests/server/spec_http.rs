//! Requirements of the specification on the HTTP endpoint, with clients that write every byte themselves.

use crate::common;
use crate::common::{
    fixture,
    gate::soon,
    post::{correct, post, set},
    request, socket,
};
use antiphon::{
    serve::http::{HttpOptions, HttpService},
    server::{Ctx, Limits, Server, Tool},
};
use serde_json::{Map, Value, json};

/// A tool whose `region` is repeated in a header, and that says what it was given.
fn routed() -> Server {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "n": {"type": "integer", "x-mcp-header": "N"}
    }});
    let echo = async |_: &Ctx, given: Map<String, Value>| Value::Object(given).to_string();
    fixture(|builder| builder.tool(Tool::with_schema("route", schema, echo))).server
}

/// A call of `route` with these arguments, as text, and these header lines.
fn call(arguments: &str, headers: &[u8]) -> Vec<u8> {
    let meta = common::meta();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"route","arguments":{arguments},"_meta":{meta}}}}}"#
    );
    let mut text = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
          Mcp-Method: tools/call\r\nMcp-Name: route\r\n"
        .to_vec();
    text.extend_from_slice(headers);
    text.extend_from_slice(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    text
}

/// > Servers **MUST** reject requests with a recognized `Mcp-Param-{Name}` header that contains invalid characters
#[tokio::test]
async fn header_and_body_agree_however_they_are_written() {
    let running = socket::serve_this(routed(), HttpOptions::default()).await;
    let eu = r#"{"region":"eu"}"#;
    for (what, arguments, headers, expected) in [
        ("as it should be", eu, &b"Mcp-Param-Region: eu\r\n"[..], (200, 0)),
        ("space around it", eu, b"mCP-pARAM-rEGION:\t eu \t\r\n", (200, 0)),
        ("twice the same", eu, b"Mcp-Param-Region: eu\r\nMcp-Param-Region: eu\r\n", (400, -32020)),
        ("twice, in two cases", eu, b"Mcp-Param-Region: eu\r\nMCP-PARAM-REGION: us\r\n", (400, -32020)),
        ("a list", eu, b"Mcp-Param-Region: eu, us\r\n", (400, -32020)),
        ("another case of the value", eu, b"Mcp-Param-Region: EU\r\n", (400, -32020)),
        (
            "bytes that are no ASCII",
            r#"{"region":"\u00e9"}"#,
            b"Mcp-Param-Region: \xc3\xa9\r\n",
            (400, -32020),
        ),
        ("bytes that are no UTF-8", r#"{"region":"\ufffd"}"#, b"Mcp-Param-Region: \xff\r\n", (400, -32020)),
        ("base64", r#"{"region":"\u00e9"}"#, b"Mcp-Param-Region: =?base64?w6k=?=\r\n", (200, 0)),
        (
            "base64 of no UTF-8",
            r#"{"region":"\ufffd"}"#,
            b"Mcp-Param-Region: =?base64?/w==?=\r\n",
            (400, -32020),
        ),
        ("base64 without its padding", eu, b"Mcp-Param-Region: =?base64?ZXU?=\r\n", (400, -32020)),
        ("base64 in capitals", eu, b"Mcp-Param-Region: =?BASE64?ZXU=?=\r\n", (400, -32020)),
        ("base64 of what needs none", eu, b"Mcp-Param-Region: =?base64?ZXU=?=\r\n", (200, 0)),
        (
            "a member twice, the last one",
            r#"{"region":"us","region":"eu"}"#,
            b"Mcp-Param-Region: eu\r\n",
            (400, -32602),
        ),
        (
            "a member twice, the first one",
            r#"{"region":"eu","region":"us"}"#,
            b"Mcp-Param-Region: eu\r\n",
            (400, -32020),
        ),
        (
            "a member twice, escaped",
            r#"{"region":"us","\u0072egion":"eu"}"#,
            b"Mcp-Param-Region: eu\r\n",
            (400, -32602),
        ),
        ("an escaped member", r#"{"\u0072egion":"\u0065u"}"#, b"Mcp-Param-Region: eu\r\n", (200, 0)),
        ("half a character", r#"{"region":"\ud800"}"#, b"Mcp-Param-Region: eu\r\n", (400, -32020)),
        (
            "beyond the safe range",
            r#"{"n":9007199254740993}"#,
            b"Mcp-Param-N: 9007199254740993\r\n",
            (400, -32020),
        ),
        ("a number in other words", r#"{"n":1e2}"#, b"Mcp-Param-N: 100\r\n", (200, 0)),
        ("a second name", eu, b"Mcp-Param-Region: eu\r\nMcp-Name: other\r\n", (400, -32020)),
        ("a second method", eu, b"Mcp-Param-Region: eu\r\nMcp-Method: tools/list\r\n", (400, -32020)),
        (
            "a second version",
            eu,
            b"Mcp-Param-Region: eu\r\nMCP-Protocol-Version: 2025-11-25\r\n",
            (400, -32020),
        ),
        ("of nothing", "{}", b"Mcp-Param-N: \r\n", (400, -32020)),
    ] {
        let mut client = socket::Client::new(&running).await;
        client.send(call(arguments, headers)).await;
        let heard = client.receive().await;
        let reply: Value =
            serde_json::from_str(&heard.body).unwrap_or_else(|_| panic!("{what}: {}", heard.body));
        let code = reply["error"]["code"].as_i64().unwrap_or_default();
        assert_eq!((heard.status, code), expected, "{what}: {reply}");
        assert!(
            code != 0 || reply["result"].get("isError").is_none_or(|failed| failed == false),
            "{what}: {reply}"
        );
    }
}

/// Header lines that HTTP forbids never reach a tool.
#[tokio::test]
async fn broken_header_lines_are_no_request() {
    let running = socket::serve_this(routed(), HttpOptions::default()).await;
    for (what, headers) in [
        ("a line that is folded", &b"Mcp-Param-Region: e\r\n u\r\n"[..]),
        ("a space before the colon", b"Mcp-Param-Region : eu\r\n"),
        ("a zero byte", b"Mcp-Param-Region: e\0u\r\n"),
        ("a lone carriage return", b"Mcp-Param-Region: eu\rX: y\r\n"),
        ("two lengths", b"Mcp-Param-Region: eu\r\nContent-Length: 5\r\n"),
        ("a name that is none", b"Mcp-Param-R\xc3\xa9gion: eu\r\n"),
    ] {
        let mut client = socket::Client::new(&running).await;
        client.send(call(r#"{"region":"eu"}"#, headers)).await;
        let heard = client.receive_head().await;
        assert!(heard.starts_with("http/1.1 400"), "{what}: {heard}");
    }
}

/// > header requirements for notification POSTs are not defined by this revision.
#[tokio::test]
async fn a_notification_is_accepted_with_any_headers_and_cancels_nothing() {
    let mut running = socket::serve(HttpOptions::default()).await;
    let mut held = socket::Client::new(&running).await;
    held.send(socket::text(7, "hold", "one", "")).await;
    running.gate.started("one").await;
    let service = HttpService::new(routed(), HttpOptions::default());
    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}),
        json!({"jsonrpc": "2.0", "method": "notifications/what"}),
        json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo"}}),
    ] {
        for headers in [&["2026-07-28"][..], &["1999-01-01"], &[]] {
            let mut post_of = correct(&message);
            set(&mut post_of, "mcp-protocol-version", headers);
            set(&mut post_of, "mcp-method", if headers.is_empty() { &[] } else { &["other"] });
            post(&service, post_of).await.check("a notification", (202, 0));
        }
    }
    let body = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        .to_string();
    let mut other = socket::Client::new(&running).await;
    other
        .send(format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    assert!(other.receive_head().await.starts_with("http/1.1 202"));
    // Still there: on HTTP only the end of the stream cancels.
    running.gate.open("one");
    running.gate.ended("one").await;
    held.receive_result(7, "one").await;
}

/// > The server **MUST** treat a client disconnect as cancellation of that request.
#[tokio::test]
async fn a_subscription_ends_with_its_connection_and_leaves_its_place() {
    let limits = Limits::default().subscriptions(1);
    let server = fixture(|builder| builder.list_changed(true).limits(limits)).server;
    let running = socket::serve_this(server, HttpOptions::default()).await;
    let listen = request(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    for _ in 0..3 {
        let mut client = loop {
            let mut client = socket::Client::new(&running).await;
            client.send(socket::text_of(&listen)).await;
            let head = client.receive_head().await;
            // Refused for as long as the server has not noticed that the last one is gone.
            if head.contains("text/event-stream") {
                break client;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(
            soon(client.receive_event()).await.unwrap()["method"],
            "notifications/subscriptions/acknowledged"
        );
        let mut second = socket::Client::new(&running).await;
        second.send(socket::text_of(&listen)).await;
        assert!(second.receive().await.body.contains("\"reason\":\"busy\""));
        drop(client);
    }
}
