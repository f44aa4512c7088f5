//! The checks of a body: the same on both transports, but for the headers.

use crate::common::{
    Over, fixture, meta,
    post::{correct, post, set},
    request, send, with,
};
use antiphon::serve::http::{HttpOptions, HttpService};
use bytes::Bytes;
use serde_json::{Value, json};

fn service() -> HttpService {
    HttpService::new(fixture(|builder| builder).server, HttpOptions::default())
}

const NONE: Value = Value::Null;

/// Sends this text with the headers of `server/discover`; checks the answer and its id.
async fn check(service: &HttpService, what: &str, text: impl Into<Bytes>, expected: (u16, i64), id: Value) {
    let headers = correct(&request(1, "server/discover", json!({})));
    let got = post(service, headers.map(|_| text.into())).await;
    got.check(what, expected);
    if expected.0 == 202 {
        assert!(got.body.is_empty(), "{what}");
    } else {
        assert_eq!(got.json().get("id").unwrap_or(&NONE), &id, "{what}: {:?}", got.body);
    }
}

#[tokio::test]
async fn the_body_is_one_message() {
    let service = service();
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}1{}}}"#,
        r#"{"a":"#.repeat(128),
        "}".repeat(128)
    );
    let valid = request(1, "server/discover", json!({})).to_string();
    let batch = format!("[{valid}]");
    let two = format!("{valid}{valid}");
    let padded = format!("\r\n\t {valid}\n");
    for (what, text, expected, id) in [
        ("space around it", padded.as_str(), (200, 0), json!(1)),
        ("nothing", "", (400, -32700), NONE),
        ("blanks", "  \r\n", (400, -32700), NONE),
        ("no JSON", "hello", (400, -32700), NONE),
        ("half of it", &valid[..valid.len() - 1], (400, -32700), NONE),
        ("two", &two, (400, -32700), NONE),
        ("a batch", &batch, (400, -32600), NONE),
        ("an empty batch", "[]", (400, -32600), NONE),
        ("a number", "7", (400, -32600), NONE),
        ("null", "null", (400, -32600), NONE),
        ("text", "\"x\"", (400, -32600), NONE),
        ("an empty object", "{}", (400, -32600), NONE),
        ("too deep", &deep, (400, -32600), json!(1)),
        ("no jsonrpc", r#"{"id":1,"method":"server/discover"}"#, (400, -32600), json!(1)),
        ("jsonrpc 1.0", r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, (400, -32600), json!(1)),
        ("jsonrpc 2", r#"{"jsonrpc":2,"id":1,"method":"x"}"#, (400, -32600), json!(1)),
        ("a number for a method", r#"{"jsonrpc":"2.0","id":1,"method":7}"#, (400, -32600), json!(1)),
        (
            "params by position",
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#,
            (400, -32600),
            json!(1),
        ),
        ("params are text", r#"{"jsonrpc":"2.0","id":1,"method":"x","params":"x"}"#, (400, -32600), json!(1)),
        ("two methods", r#"{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}"#, (400, -32600), json!(1)),
        ("two ids", r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#, (400, -32600), NONE),
        ("both kinds", r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#, (400, -32600), json!(1)),
        // Its id is one of the server's, not of the client's: no answer may carry it.
        ("a result", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, (400, -32600), NONE),
        ("an error", r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#, (400, -32600), NONE),
        ("a notification", r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, (202, 0), NONE),
        (
            "a cancellation",
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
            (202, 0),
            NONE,
        ),
        (
            "a request without an id",
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}"#,
            (202, 0),
            NONE,
        ),
    ] {
        check(&service, what, text.to_owned(), expected, id).await;
    }
    check(
        &service,
        "not UTF-8",
        &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"[..],
        (400, -32700),
        NONE,
    )
    .await;
}

#[tokio::test]
async fn ids_come_back_as_they_were_sent() {
    let service = service();
    for (id, comes_back) in [
        ("0", true),
        ("-1", true),
        ("9007199254740993", true),
        ("-9223372036854775808", true),
        ("18446744073709551615", true),
        (r#""""#, true),
        (r#""1""#, true),
        (r#""é\n""#, true),
        ("18446744073709551616", false),
        ("1.5", false),
        ("1e3", false),
        ("null", false),
        ("true", false),
        ("[1]", false),
        ("{}", false),
    ] {
        let text = request(1, "server/discover", json!({})).to_string();
        let text = text.replace(r#""id":1"#, &format!(r#""id":{id}"#));
        let (expected, back) = if comes_back { ((200, 0), id) } else { ((400, -32600), "null") };
        check(&service, id, text, expected, serde_json::from_str(back).unwrap()).await;
    }
}

#[tokio::test]
async fn metadata_is_complete_or_refused() {
    let service = service();
    let (version, can, info) = (
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
        "io.modelcontextprotocol/clientInfo",
    );
    let full = meta();
    let bad = (400, -32602);
    for (what, meta, expected) in [
        ("only what is required", json!({version: "2026-07-28", can: {}}), (200, 0)),
        ("with an identity", with(&full, json!({info: {"name": "a", "version": "1"}})), (200, 0)),
        ("with what nobody knows", with(&full, json!({"x.example/y": [1], "traceparent": "00-x"})), (200, 0)),
        ("with unknown capabilities", with(&full, json!({can: {"x": {"y": 1}, "extensions": {}}})), (200, 0)),
        ("null", NONE, bad),
        ("empty", json!({}), bad),
        ("a list", json!([]), bad),
        ("text", json!("2026-07-28"), bad),
        ("no version", json!({can: {}}), bad),
        ("version null", with(&full, json!({version: null})), bad),
        ("version a number", with(&full, json!({version: 20260728})), bad),
        ("no capabilities", json!({version: "2026-07-28"}), bad),
        ("capabilities null", with(&full, json!({can: null})), bad),
        ("capabilities a list", with(&full, json!({can: []})), bad),
        ("capabilities text", with(&full, json!({can: "all"})), bad),
        ("log level unknown", with(&full, json!({"io.modelcontextprotocol/logLevel": "loud"})), bad),
    ] {
        for method in ["server/discover", "tools/list", "no/such"] {
            let mut message = request(1, method, json!({"_meta": meta}));
            message["params"]["_meta"] = meta.clone();
            let request = correct(&message);
            let got = post(&service, request).await;
            got.check(what, if method == "no/such" && expected.0 == 200 { (404, -32601) } else { expected });
            assert_eq!(got.json()["id"], 1, "{what}");
        }
    }
    for (what, text, expected) in [
        ("no params", r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#, bad),
        ("params null", r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":null}"#, bad),
        ("empty params", r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}"#, bad),
    ] {
        check(&service, what, text, expected, json!(1)).await;
    }
    let twice = request(1, "server/discover", json!({})).to_string();
    let twice = twice.replacen(r#""_meta":{"#, &format!(r#""_meta":{{"{version}":"2026-07-28","#), 1);
    check(&service, "a version twice", twice, bad, json!(1)).await;
}

#[tokio::test]
async fn versions_not_spoken_here_are_answered_with_those_that_are() {
    let server = fixture(|builder| builder).server;
    for version in ["2025-11-25", "2024-11-05", "2027-01-01", "v999.0.0", "", "2026-07-28 "] {
        for over in [Over::Http, Over::Stdio] {
            let mut meta = meta();
            meta["io.modelcontextprotocol/protocolVersion"] = json!(version);
            let message = request(1, "tools/list", json!({"_meta": meta}));
            let reply = if over == Over::Stdio {
                send(over, &server, &message, None).await.1
            } else {
                let mut request = correct(&message);
                set(&mut request, "mcp-protocol-version", &[version]);
                let got = post(&HttpService::new(server.clone(), HttpOptions::default()), request).await;
                got.check(version, (400, -32022));
                got.json()
            };
            assert_eq!(
                reply["error"]["data"],
                json!({"supported": ["2026-07-28"], "requested": version}),
                "{version}"
            );
            assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(1), &json!(-32022)));
        }
    }
}

/// > A server that supports only modern versions **SHOULD** name the protocol versions it supports in any error it
/// > returns to an `initialize` request, on any transport
#[tokio::test]
async fn initialize_is_answered_with_the_versions() {
    let server = fixture(|builder| builder.modern_only(true)).server;
    let legacy = |version: &str| json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    let progress = with(&legacy("2025-11-25"), json!({"_meta": {"progressToken": 1}}));
    let modern = with(&legacy("2026-07-28"), json!({"_meta": meta()}));
    let old = |requested: &str| (400, -32022, json!({"supported": ["2026-07-28"], "requested": requested}));
    // With complete metadata it is no handshake, but a method that does not exist.
    let unknown = (404, -32601, json!({"supported": ["2026-07-28"], "method": "initialize"}));
    for (what, params, (status, code, data)) in [
        ("2025-11-25", legacy("2025-11-25"), old("2025-11-25")),
        ("2024-11-05", legacy("2024-11-05"), old("2024-11-05")),
        ("with metadata of its time", progress, old("2025-11-25")),
        ("empty", json!({}), old("none")),
        ("a number", json!({"protocolVersion": 1}), old("none")),
        ("with modern metadata", modern, unknown),
    ] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let service = HttpService::new(server.clone(), HttpOptions::default());
        for headers in [true, false] {
            let mut request = correct(&message);
            if !headers {
                set(&mut request, "mcp-protocol-version", &[]);
                set(&mut request, "mcp-method", &[]);
            }
            let got = post(&service, request).await;
            got.check(what, (status, code));
            assert_eq!((&got.json()["id"], &got.json()["error"]["data"]), (&json!(1), &data), "{what}");
        }
        let (_, reply) = send(Over::Stdio, &server, &message, None).await;
        assert_eq!((&reply["error"]["code"], &reply["error"]["data"]), (&json!(code), &data), "{what}");
    }
}

#[tokio::test]
async fn methods_that_do_not_exist_are_404() {
    let server = fixture(|builder| builder).server;
    for method in [
        "no/such",
        "",
        "Tools/List",
        "tools/list ",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "sampling/createMessage",
        "elicitation/create",
        "roots/list",
        "tasks/get",
        "notifications/initialized",
    ] {
        let message = request(1, method, json!({}));
        let got = post(&HttpService::new(server.clone(), HttpOptions::default()), correct(&message)).await;
        got.check(method, (404, -32601));
        assert_eq!(got.json()["error"]["data"], json!({"method": method}));
        let (_, reply) = send(Over::Stdio, &server, &message, None).await;
        assert_eq!(reply, got.json());
    }
}
