//! Transports on a test double: they need a `MessageService`, not a `Server`.

use super::common::{
    gate::soon,
    post::{correct, post, set},
    request,
};
use antiphon::{
    serve::{
        CallOutcome, MessageKind, MessageService, NoSession, Request,
        http::{HttpOptions, HttpService},
        stdio::serve_streams,
    },
    server::{Caller, operations::ReplyMessage},
    wire::ErrorObject,
};
use antiphon_wire::write_result;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// Answers each request with the name of its method, and one method in another way each.
#[derive(Clone)]
struct Echo;

impl MessageService for Echo {
    type Session = NoSession;
    type Offers = ();

    fn offers(&self) {}

    async fn call(&self, (): &(), request: &Request<'_>, caller: &Caller<'_>) -> CallOutcome {
        let outbox = caller.outbox().unwrap().clone();
        let body = write_result(request.id(), &json!({ "method": request.method() })).unwrap();
        match request.method() {
            "test/unknown" => {
                let error = ErrorObject::method_not_found(request.method());
                return CallOutcome::Reply(ReplyMessage::error(Some(request.id()), &error));
            }
            // The second text is no scope, and could add a parameter to the challenge.
            "test/scopes" => {
                let reply = ReplyMessage::insufficient_scope(Some(request.id()), ["write", "a\", realm=\"b"]);
                return CallOutcome::Reply(reply);
            }
            // The message comes from another task, while this one waits.
            "test/wait" => {
                tokio::spawn(async move {
                    tokio::task::yield_now().await;
                    outbox.push(MessageKind::Log, notification());
                });
                std::future::pending::<()>().await;
            }
            "subscriptions/listen" => {
                outbox.push(MessageKind::Change(0), notification());
                return CallOutcome::Open(Box::pin(async move { ReplyMessage::result(body) }));
            }
            _ => {}
        }
        CallOutcome::Reply(ReplyMessage::result(body))
    }
}

fn notification() -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "method": "notifications/test" }).to_string().into_bytes()
}

#[tokio::test]
async fn streams_run_on_a_test_double() {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(far);
    tokio::spawn(serve_streams(input, output, Echo));
    let (read, mut writer) = tokio::io::split(near);
    let mut lines = BufReader::new(read).lines();
    let initialize = json!({ "jsonrpc": "2.0", "id": 9, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25" } });
    for (message, replies) in [
        (request(1, "test/echo", json!({})), vec![json!({ "id": 1, "result": { "method": "test/echo" } })]),
        (request(2, "test/unknown", json!({})), vec![json!({ "id": 2, "code": -32601 })]),
        (initialize, vec![json!({ "id": 9, "code": -32022 })]),
        (
            request(3, "subscriptions/listen", json!({})),
            vec![
                json!({ "method": "notifications/test" }),
                json!({ "id": 3, "result": { "method": "subscriptions/listen" } }),
                json!({ "method": "notifications/cancelled" }),
            ],
        ),
        (request(4, "test/wait", json!({})), vec![json!({ "method": "notifications/test" })]),
    ] {
        writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        for expected in replies {
            let line = soon(lines.next_line()).await.unwrap().unwrap();
            let line: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(outline(&line), expected);
        }
    }
}

/// The id of a message with its result or its error code, or its method.
fn outline(message: &Value) -> Value {
    match (&message["id"], &message["error"]["code"]) {
        (Value::Null, _) => json!({ "method": message["method"] }),
        (id, Value::Null) => json!({ "id": id, "result": message["result"] }),
        (id, code) => json!({ "id": id, "code": code }),
    }
}

#[tokio::test]
async fn http_runs_on_a_test_double() {
    let service = HttpService::new(Echo, HttpOptions::default());
    for (method, status, content_type, text) in [
        ("test/echo", 200, "application/json", r#""method":"test/echo""#),
        ("test/unknown", 404, "application/json", "-32601"),
        ("subscriptions/listen", 200, "text/event-stream", "notifications/test"),
    ] {
        let got = soon(post(&service, correct(&request(1, method, json!({}))))).await;
        assert_eq!((got.status, &got.headers["content-type"]), (status, &content_type.parse().unwrap()));
        let body = String::from_utf8(got.body.to_vec()).unwrap();
        assert!(body.contains(text), "{method}: {body}");
    }
    let got = soon(post(&service, correct(&request(1, "test/scopes", json!({}))))).await;
    assert_eq!(got.status, 403);
    assert_eq!(got.headers["www-authenticate"], "Bearer error=\"insufficient_scope\", scope=\"write\"");
    assert_eq!(got.json()["error"]["data"]["reason"], "insufficient_scope");
    // The checks of headers are the transport's own.
    let mut other = correct(&request(1, "test/echo", json!({})));
    set(&mut other, "mcp-method", &["tools/call"]);
    assert_eq!(soon(post(&service, other)).await.json()["error"]["code"], -32020);
}

#[tokio::test]
async fn a_message_of_another_task_wakes_an_http_response() {
    use http_body_util::{BodyExt as _, Full};
    use tower_service::Service as _;
    let mut service = HttpService::new(Echo, HttpOptions::default());
    let call = service.call(correct(&request(1, "test/wait", json!({}))).map(Full::new));
    let mut body = soon(call).await.unwrap().into_body();
    let frame = soon(body.frame()).await.unwrap().unwrap().into_data().unwrap();
    assert!(frame.starts_with(b"data: ") && frame.ends_with(b"\n\n"), "{frame:?}");
}
