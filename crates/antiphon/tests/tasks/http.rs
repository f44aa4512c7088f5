//! Tasks over HTTP: statuses, and the header that names the task.

use crate::client::{TaskClient, client};
use antiphon::{
    serve::http::{HttpOptions, HttpService},
    server::Server,
    tool,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower_service::Service as _;

/// Answers.
#[tool(task = "required")]
async fn answer() -> String {
    "42".to_owned()
}

async fn post(server: &Server, method: &str, id: &str, names: &[&str], declares: bool) -> (u16, Value) {
    let mut capabilities = json!({});
    if declares {
        capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let params = json!({"_meta": meta, "taskId": id, "inputResponses": {}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut request = http::Request::post("http://127.0.0.1/mcp")
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    for name in names {
        request = request.header("mcp-name", *name);
    }
    let request: http::Request<Full<bytes::Bytes>> = request.body(Full::from(body)).unwrap();
    let mut service = HttpService::new(server.clone(), HttpOptions::default());
    let response = service.call(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_header_that_names_a_task_names_the_task_of_the_request() {
    let client = client(|server| server.tool(answer));
    let id = client.task("answer", json!({})).await;
    let id = id.as_str();
    let (unknown, upper, encoded) =
        ("f".repeat(32), id.to_uppercase(), format!("=?base64?{}?=", STANDARD.encode(id)));
    let (unknown, upper, encoded) = (unknown.as_str(), upper.as_str(), encoded.as_str());
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for (task, names, declares, status, code) in [
            (id, &[id][..], true, 200, Value::Null),
            (id, &[encoded], true, 200, Value::Null),
            // Clients that send no such header are served.
            (id, &[], true, 200, Value::Null),
            (unknown, &[], true, 400, json!(-32602)),
            (id, &[], false, 400, json!(-32021)),
            (id, &[unknown], true, 400, json!(-32020)),
            (id, &[""], true, 400, json!(-32020)),
            (id, &["answer"], true, 400, json!(-32020)),
            (id, &[&id[1..]], true, 400, json!(-32020)),
            (id, &[id, id], true, 400, json!(-32020)),
            (id, &[id, unknown], true, 400, json!(-32020)),
            (id, &[&encoded[..20]], true, 400, json!(-32020)),
            (unknown, &[unknown], true, 400, json!(-32602)),
            (id, &[id], false, 400, json!(-32021)),
        ] {
            let (found, reply) = post(&client.server, method, task, names, declares).await;
            let expected = (status, &code);
            assert_eq!((found, &reply["error"]["code"]), expected, "{method} {names:?}: {reply}");
        }
        if upper != id {
            let (status, reply) = post(&client.server, method, id, &[upper], true).await;
            assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32020)), "{reply}");
        }
    }
    for method in ["tasks/result", "tasks/list"] {
        let (status, reply) = post(&client.server, method, id, &[id], true).await;
        assert_eq!((status, &reply["error"]["code"]), (404, &json!(-32601)), "{reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn so_does_the_header_of_a_request_of_the_draft() {
    let client = client(|server| server.draft_tasks(true).tool(answer));
    let reply = client.without_extension().send("tools/call", json!({"name": "answer", "task": {}})).await;
    let id = reply["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{reply}"));
    let unknown = "f".repeat(32);
    for method in ["tasks/get", "tasks/result", "tasks/input_response", "tasks/cancel"] {
        for (names, is_refused) in
            [(&[id][..], false), (&[], false), (&[unknown.as_str()], true), (&[""], true), (&[id, id], true)]
        {
            let (_, reply) = post(&client.server, method, id, names, false).await;
            assert_eq!(reply["error"]["code"] == -32020, is_refused, "{method} {names:?}: {reply}");
        }
    }
}

/// A session over HTTP, of a user.
struct HttpSession {
    service: HttpService,
    user: &'static str,
    id: Option<String>,
}

impl HttpSession {
    async fn open(server: &Server, user: &'static str) -> Self {
        let service = HttpService::new(server.clone(), HttpOptions::default());
        let mut session = Self { service, user, id: None };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
        session.send("initialize", params).await;
        session
    }

    async fn send(&mut self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut request = http::Request::post("http://127.0.0.1/mcp")
            .header("host", "127.0.0.1")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("x-user", self.user);
        if let Some(id) = &self.id {
            request = request.header("mcp-session-id", id).header("mcp-protocol-version", "2025-11-25");
        }
        let request: http::Request<Full<bytes::Bytes>> = request.body(Full::from(body)).unwrap();
        let response = self.service.call(request).await.unwrap();
        if let Some(id) = response.headers().get("mcp-session-id") {
            self.id = Some(id.to_str().unwrap().to_owned());
        }
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        // One JSON message, or the last event of a stream.
        let last = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
        serde_json::from_str(last).unwrap_or_else(|fault| panic!("{text}: {fault}"))
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_has_the_tasks_of_its_principal() {
    let TaskClient { server, .. } = client(|server| server.tool(answer));
    let mut anna = HttpSession::open(&server, "anna").await;
    let mut bert = HttpSession::open(&server, "bert").await;
    let created = anna.send("tools/call", json!({"name": "answer", "arguments": {}, "task": {}})).await;
    let id = created["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let foreign = bert.send(method, json!({"taskId": id})).await;
        let unknown = bert.send(method, json!({"taskId": "0".repeat(32)})).await;
        assert_eq!(
            (&foreign["error"], &foreign["error"]["code"]),
            (&unknown["error"], &json!(-32602)),
            "{method}"
        );
    }
    let done = anna.send("tasks/result", json!({"taskId": id})).await;
    assert_eq!(done["result"]["content"][0]["text"], "42", "{done}");
    // Another session of the same principal lists the task, that of another principal does not.
    let mut again = HttpSession::open(&server, "anna").await;
    for (session, ids) in [(&mut anna, json!([id])), (&mut again, json!([id])), (&mut bert, json!([]))] {
        let page = session.send("tasks/list", json!({})).await["result"]["tasks"].clone();
        let listed: Vec<Value> = page.as_array().unwrap().iter().map(|task| task["taskId"].clone()).collect();
        assert_eq!(json!(listed), ids);
    }
}
