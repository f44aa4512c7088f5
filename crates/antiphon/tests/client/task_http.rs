//! Tasks over real HTTP: their headers.
#![cfg(feature = "http")]

use crate::{client_support::form, task_server::*, transport_support::server::*};
use antiphon::client::Client;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

#[tokio::test]
async fn requests_about_a_task_carry_its_id() {
    let server = Server::new().await;
    let client = Client::builder("my-host", "1.0")
        .on_elicit_form(async |ask| Ok(ask.decline()))
        .connect(server.client());
    let call = tokio::spawn(async move {
        let result = client.call_tool("slow", ()).await;
        client.attach(ID).cancel().await.unwrap();
        result
    });
    let soon = json!({"resultType": "complete", "pollIntervalMs": 1});
    let done = json!({"result": {"content": [{"type": "text", "text": "done"}]}});
    let complete = |task: Value, members: Value| with(with(task, soon.clone()), members);
    let replies = [
        with(task("input_required"), json!({"resultType": "task"})),
        complete(task("input_required"), json!({"inputRequests": {"a": form()}})),
        json!({"resultType": "complete"}),
        complete(task("completed"), done),
        json!({"resultType": "complete"}),
    ];
    let mut connection = server.accepts().await;
    let mut received = Vec::new();
    for result in replies {
        let (head, body) = receive(&mut connection).await;
        let request: Value = serde_json::from_slice(&body).unwrap();
        let header =
            |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("none").to_owned();
        received.push(format!(
            "{} {} {}",
            request["method"].as_str().unwrap(),
            header("mcp-method: "),
            header("mcp-name: ")
        ));
        let reply = json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
        connection.write_all(json_response("200 OK", &reply).as_bytes()).await.unwrap();
    }
    let of = |method: &str, name: &str| format!("{method} {method} {name}");
    assert_eq!(
        received,
        [
            of("tools/call", "slow"),
            of("tasks/get", ID),
            of("tasks/update", ID),
            of("tasks/get", ID),
            of("tasks/cancel", ID),
        ]
    );
    assert_eq!(call.await.unwrap().unwrap().first_text(), Some("done"));
}
