//! The life of a task, from its creation to its end, and the refusals.

use crate::client::{client, text_of};
use antiphon::{
    Error,
    server::{Ctx, Server},
    tool,
};
use serde_json::json;
use std::time::Duration;

/// Adds numbers slowly.
#[tool(task = "required")]
async fn add(ctx: &Ctx, a: i64, b: i64) -> Result<String, Error> {
    let sum: i64 = ctx.step("add", async |_| Ok(a + b)).await?;
    Ok(sum.to_string())
}

/// Fails as a tool.
#[tool(task = "required")]
async fn fail() -> Result<String, Error> {
    Err(Error::user_facing("no luck"))
}

/// Panics.
#[tool(task = "required")]
async fn panics() -> String {
    panic!("on purpose")
}

/// Reports progress and waits for ever.
#[tool(task = "required")]
async fn progress(ctx: &Ctx) -> String {
    ctx.report_progress(1.0, Some(2.0), None);
    std::future::pending().await
}

/// Answers at once.
#[tool]
async fn echo(text: String) -> String {
    text
}

fn tools() -> crate::client::TaskClient {
    client(|server| server.tool(add).tool(fail).tool(panics).tool(progress).tool(echo))
}

#[tokio::test(start_paused = true)]
async fn a_required_task_runs_to_its_result() {
    let client = tools();
    let created = client.call("add", json!({"a": 2, "b": 3})).await["result"].clone();
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    assert_eq!((&created["ttlMs"], &created["pollIntervalMs"]), (&json!(86_400_000), &json!(1000)));
    assert!(created["createdAt"].is_string() && created["lastUpdatedAt"].is_string(), "{created}");
    let id = created["taskId"].as_str().unwrap();
    assert_eq!(id.len(), 32);
    let done = client.status(id, "completed").await;
    assert_eq!(text_of(&done), "5");
    assert_eq!(done["taskId"], created["taskId"]);
    assert!(done.get("error").is_none() && done.get("inputRequests").is_none(), "{done}");
    // A read changes nothing.
    assert_eq!(client.get(id).await, done);
}

#[tokio::test(start_paused = true)]
async fn a_tools_error_completes_and_a_protocol_error_fails() {
    let client = tools();
    let id = client.task("fail", json!({})).await;
    let done = client.status(&id, "completed").await;
    assert_eq!((&done["result"]["isError"], text_of(&done)), (&json!(true), "no luck"));
    let id = client.task("panics", json!({})).await;
    let failed = client.status(&id, "failed").await;
    assert_eq!(failed["error"]["code"], -32603);
    assert_eq!(failed["statusMessage"], failed["error"]["message"]);
    assert!(failed.get("result").is_none(), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_task_needs_the_extension() {
    let client = tools();
    let other = client.without_extension();
    let id = client.task("add", json!({"a": 1, "b": 1})).await;
    for (method, params) in [
        ("tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}})),
        ("tasks/get", json!({"taskId": id})),
        ("tasks/update", json!({"taskId": id, "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": id})),
    ] {
        let error = &other.send(method, params).await["error"];
        assert_eq!(error["code"], -32021, "{method}: {error}");
        let required = &error["data"]["requiredCapabilities"]["extensions"]["io.modelcontextprotocol/tasks"];
        assert_eq!(required, &json!({}), "{method}: {error}");
    }
    assert_eq!(other.call("echo", json!({"text": "a"})).await["result"]["content"][0]["text"], "a");
}

#[tokio::test(start_paused = true)]
async fn a_server_without_tasks_has_none_of_it() {
    let client = client(|server| server.tool(echo));
    for method in ["tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list"] {
        let error = &client.send(method, json!({"taskId": "0".repeat(32)})).await["error"];
        assert_eq!(error["code"], -32601, "{method}: {error}");
    }
    let discovered = client.send("server/discover", json!({})).await;
    assert!(discovered["result"]["capabilities"].get("extensions").is_none(), "{discovered}");
}

#[tokio::test(start_paused = true)]
async fn the_extension_is_declared_and_the_methods_of_earlier_drafts_are_unknown() {
    let client = tools();
    let discovered = client.send("server/discover", json!({})).await;
    let capabilities = &discovered["result"]["capabilities"];
    assert_eq!(capabilities["extensions"]["io.modelcontextprotocol/tasks"], json!({}));
    assert!(capabilities.get("tasks").is_none(), "{capabilities}");
    for method in ["tasks/result", "tasks/list", "tasks/input_response"] {
        let error = &client.send(method, json!({"taskId": "0".repeat(32)})).await["error"];
        assert_eq!(error["code"], -32601, "{method}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_of_another_caller_looks_like_an_unknown_one() {
    let client = tools();
    let (anna, bert) = (client.user("anna"), client.user("bert"));
    let id = anna.task("add", json!({"a": 1, "b": 1})).await;
    anna.status(&id, "completed").await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = |id: &str| json!({"taskId": id, "inputResponses": {}});
        let foreign = bert.send(method, params(&id)).await;
        let nobodys = client.send(method, params(&id)).await;
        let unknown = bert.send(method, params(&"0".repeat(32))).await;
        let malformed = bert.send(method, params("../../etc/passwd")).await;
        assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
        for other in [nobodys, unknown, malformed] {
            assert_eq!(foreign["error"], other["error"], "{method}");
        }
    }
    assert_eq!(text_of(&anna.get(&id).await), "2");
}

#[tokio::test(start_paused = true)]
async fn malformed_requests_are_refused_in_words() {
    let client = tools();
    let id = client.task("progress", json!({})).await;
    for (method, params) in [
        ("tasks/get", json!({})),
        ("tasks/get", json!({"taskId": 3})),
        ("tasks/update", json!({"taskId": id})),
        ("tasks/update", json!({"taskId": id, "inputResponses": []})),
        ("tools/call", json!({"name": "add", "arguments": 3})),
    ] {
        let reply = client.send(method, params.clone()).await;
        assert_eq!(reply["error"]["code"], -32602, "{method} {params}: {reply}");
    }
    // Arguments that do not fit are an error of the tool.
    let id = client.task("add", json!({"a": "x"})).await;
    assert_eq!(client.status(&id, "completed").await["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn progress_is_the_status_message() {
    let client = tools();
    let id = client.task("progress", json!({})).await;
    let task = client.until(&id, |task| task["statusMessage"] == "1 of 2").await;
    assert_eq!(task["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn a_task_in_memory_with_shared_keys_is_an_error_at_the_start() {
    let ring = || antiphon::seal::KeyRing::new(vec![antiphon::seal::SecretKey::from_bytes([1; 32])]).unwrap();
    let fault = Server::builder("a", "1").keys(ring()).tool(add).build().map(drop).unwrap_err();
    assert!(fault.to_string().contains("single_instance"), "{fault}");
    assert!(Server::builder("a", "1").keys(ring()).single_instance(true).tool(add).build().is_ok());
    let late = Server::builder("a", "1").list_changed(true).tool(echo).build().unwrap();
    assert!(late.add_tool(add).unwrap_err().to_string().contains("task_store"));
}

#[tokio::test(start_paused = true)]
async fn the_server_is_not_kept_alive_by_its_tasks() {
    let client = tools();
    let id = client.task("progress", json!({})).await;
    client.until(&id, |task| task["statusMessage"] == "1 of 2").await;
    client.server.drain();
    tokio::time::timeout(Duration::from_secs(60), client.server.steps_ended()).await.unwrap();
}
