//! Tasks as the draft after 2025-11-25 had them: the workflow of its examples, message by message.

use crate::{
    client::{TaskClient, accept, client},
    view_tools::{Gate, Size, fail, gate, panics, work},
};
use antiphon::{
    Error, Form,
    server::{Ctx, State},
    tool,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct EchoInput {
    input: String,
}

/// Echoes what the person types.
#[tool(task = "required")]
async fn echo(ctx: &Ctx) -> Result<String, Error> {
    let answer: EchoInput =
        ctx.elicit("Please provide the input string to echo back").key("echo_input").await?;
    Ok(format!("Echo: {}", answer.input))
}

/// Asks, becomes a task, works, and asks again.
#[tool(task = "optional")]
async fn provision(ctx: &Ctx, gate: State<Gate>) -> Result<String, Error> {
    let first: EchoInput = ctx.elicit("Which name?").key("name").await?;
    ctx.into_task().await?;
    let made: String = ctx
        .step("make", async |_| {
            gate.0.0.acquire().await.unwrap().forget();
            Ok("made".to_owned())
        })
        .await?;
    let Size { size } = ctx.elicit("Which size?").await?;
    Ok(format!("{} {made} {size}", first.input))
}

/// Answers at once.
#[tool]
async fn plain() -> String {
    "plain".to_owned()
}

/// A client without the extension, of a server with the draft.
fn draft() -> TaskClient {
    draft_with(gate())
}

fn draft_with(gate: Gate) -> TaskClient {
    let all = client(|server| {
        server
            .draft_tasks(true)
            .state(gate)
            .tool(echo)
            .tool(provision)
            .tool(work)
            .tool(fail)
            .tool(panics)
            .tool(plain)
    });
    all.without_extension()
}

/// Calls a tool as a task. Returns the task.
async fn create(client: &TaskClient, tool: &str) -> Value {
    let reply = client.send("tools/call", json!({"name": tool, "task": {"ttl": 60000}})).await;
    let task = reply["result"]["task"].clone();
    assert!(task.is_object(), "{reply}");
    task
}

async fn created(client: &TaskClient, tool: &str) -> String {
    create(client, tool).await["taskId"].as_str().unwrap().to_owned()
}

async fn get(client: &TaskClient, id: &str) -> Value {
    let reply = client.send("tasks/get", json!({"taskId": id})).await;
    let result = reply["result"].clone();
    assert!(result.is_object(), "{reply}");
    result
}

async fn status(client: &TaskClient, id: &str, status: &str) -> Value {
    for _ in 0..1000 {
        let task = get(client, id).await;
        if task["status"] == status {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{}", get(client, id).await);
}

async fn result(client: &TaskClient, id: &str) -> Value {
    client.send("tasks/result", json!({"taskId": id})).await
}

fn related(id: &str) -> Value {
    json!({"io.modelcontextprotocol/related-task": {"taskId": id}})
}

/// Sends `params` of `tasks/input_response`, with the id in `_meta`.
async fn respond(client: &TaskClient, id: &str, answers: Value) -> Value {
    client.send_with("tasks/input_response", json!({"inputResponses": answers}), related(id)).await
}

/// Asserts that the `_meta` of this result names the task.
fn assert_related(result: &Value, id: &str) {
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"], json!({"taskId": id}), "{result}");
}

#[tokio::test(start_paused = true)]
async fn the_example_of_the_draft_message_by_message() {
    let client = draft();
    // 1, 2: the task is nested. States are in lower case.
    let task = create(&client, "echo").await;
    let id = task["taskId"].as_str().unwrap();
    assert_eq!(
        (&task["status"], &task["ttl"], &task["pollInterval"]),
        (&json!("working"), &json!(60000), &json!(1000))
    );
    assert!(task["createdAt"].is_string(), "{task}");
    // 3, 4: flat, and without the question.
    let waiting = status(&client, id, "input_required").await;
    assert_eq!((&waiting["taskId"], &waiting["ttl"]), (&json!(id), &json!(60000)));
    assert!(waiting.get("inputRequests").is_none() && waiting.get("task").is_none(), "{waiting}");
    // 5, 6: the question is a result. There need not be a state.
    let asked = result(&client, id).await["result"].clone();
    let question = &asked["inputRequests"]["echo_input"];
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["mode"], "form");
    assert_eq!(question["params"]["message"], "Please provide the input string to echo back");
    let schema = &question["params"]["requestedSchema"];
    assert_eq!(
        (&schema["type"], &schema["properties"]["input"]["type"]),
        (&json!("object"), &json!("string"))
    );
    assert_eq!(schema["required"], json!(["input"]));
    assert_eq!(asked["resultType"], "input_required");
    assert!(asked.get("requestState").is_none(), "{asked}");
    assert_related(&asked, id);
    // The same again, as often as it is requested.
    assert_eq!(result(&client, id).await["result"], asked);
    // 7, 8: the answer is wrapped, and the id is in `_meta` only.
    let answer = json!({"echo_input": {"result": accept(json!({"input": "Hello World!"}))}});
    let acknowledged = respond(&client, id, answer).await["result"].clone();
    assert_related(&acknowledged, id);
    // The question is answered: the status is not `input_required` any more.
    assert_ne!(get(&client, id).await["status"], "input_required");
    // 9, 10
    assert_eq!(status(&client, id, "completed").await["taskId"], id);
    // 11, 12
    let done = result(&client, id).await["result"].clone();
    assert_eq!(done["content"], json!([{"type": "text", "text": "Echo: Hello World!"}]));
    assert_ne!(done["isError"], true);
    assert_related(&done, id);
}

#[tokio::test(start_paused = true)]
async fn each_form_of_an_answer_is_taken() {
    let answer = accept(json!({"input": "a"}));
    for (wrapped, in_params) in [(true, true), (true, false), (false, true), (false, false)] {
        let client = draft();
        let id = created(&client, "echo").await;
        status(&client, &id, "input_required").await;
        let answer = if wrapped { json!({"result": answer}) } else { answer.clone() };
        let mut params =
            json!({"inputResponses": {"echo_input": answer, "other": {}}, "requestState": "none"});
        let meta = if in_params {
            params["taskId"] = json!(id);
            json!({})
        } else {
            related(&id)
        };
        let reply = client.send_with("tasks/input_response", params, meta).await;
        assert_related(&reply["result"], &id);
        status(&client, &id, "completed").await;
        assert_eq!(result(&client, &id).await["result"]["content"][0]["text"], "Echo: a");
    }
}

/// The id in the parameters counts, and the task that only `_meta` names is not touched.
///
/// > Requestors **SHOULD NOT** include the `io.modelcontextprotocol/related-task` metadata in these requests, and receivers
/// > **MUST** ignore such metadata if present in favor of the RPC method parameter.
#[tokio::test(start_paused = true)]
async fn of_two_ids_the_parameter_counts() {
    let client = draft();
    let (named, other) = (created(&client, "echo").await, created(&client, "echo").await);
    for id in [&named, &other] {
        status(&client, id, "input_required").await;
    }
    let answer = json!({"echo_input": accept(json!({"input": "a"}))});
    for (method, id, related_id, code) in [
        // The other one is unknown, of the wrong type, or another task.
        ("tasks/input_response", json!("unknown"), json!(other), json!(-32602)),
        ("tasks/input_response", json!(named), json!(other), Value::Null),
        ("tasks/get", json!(named), json!(other), Value::Null),
        ("tasks/result", json!(named), json!(other), Value::Null),
        ("tasks/cancel", json!("unknown"), json!(other), json!(-32602)),
        ("tasks/get", json!(named), json!(3), Value::Null),
    ] {
        let mut params = json!({"taskId": id});
        if method == "tasks/input_response" {
            params["inputResponses"] = answer.clone();
        }
        let meta = json!({"io.modelcontextprotocol/related-task": {"taskId": related_id}});
        let reply = client.send_with(method, params, meta).await;
        assert_eq!(reply["error"]["code"], code, "{method}: {reply}");
        assert_eq!(get(&client, &other).await["status"], "input_required", "{method}");
    }
    assert_eq!(result(&client, &named).await["result"]["content"][0]["text"], "Echo: a");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_answer_is_acknowledged_and_asked_again() {
    let client = draft();
    let id = created(&client, "echo").await;
    status(&client, &id, "input_required").await;
    let wrong = json!({"not_requested_parameter": "Information the server did not request."});
    let reply = respond(&client, &id, json!({"echo_input": {"result": accept(wrong)}})).await;
    assert_related(&reply["result"], &id);
    // The next result is a new question.
    let again = result(&client, &id).await["result"].clone();
    let keys: Vec<&String> = again["inputRequests"].as_object().unwrap().keys().collect();
    // > inputRequests keys are server assigned identifiers and MUST be unique within the scope of a Task.
    assert_eq!(keys, ["echo_input~2"]);
    assert_eq!(get(&client, &id).await["status"], "input_required");
    respond(&client, &id, json!({"echo_input~2": accept(json!({"input": "b"}))})).await;
    assert_eq!(result(&client, &id).await["result"]["content"][0]["text"], "Echo: b");
}

#[tokio::test(start_paused = true)]
async fn rounds_come_first_and_then_a_task() {
    let gate = gate();
    let client = draft_with(gate.clone());
    let call = json!({"name": "provision", "arguments": {}, "task": {"ttl": 60000}});
    // The round ends the request: there is no task yet.
    let round = client.send("tools/call", call.clone()).await["result"].clone();
    assert_eq!(
        (&round["resultType"], &round["inputRequests"]["name"]["method"]),
        (&json!("input_required"), &json!("elicitation/create"))
    );
    // Another request, with the answers and the wish for a task.
    let mut retry = call.clone();
    retry["inputResponses"] = json!({"name": accept(json!({"input": "disk"}))});
    retry["requestState"] = round["requestState"].clone();
    let created = client.send("tools/call", retry).await["result"].clone();
    let id = created["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
    assert_eq!((&created["task"]["status"], &created["task"]["ttl"]), (&json!("working"), &json!(60000)));
    gate.0.add_permits(1);
    // From here on, it is a task.
    let asked = result(&client, &id).await["result"].clone();
    assert_eq!(asked["inputRequests"]["size"]["params"]["message"], "Which size?");
    respond(&client, &id, json!({"size": accept(json!({"size": 4}))})).await;
    assert_eq!(result(&client, &id).await["result"]["content"][0]["text"], "disk made 4");
}

#[tokio::test(start_paused = true)]
async fn an_optional_tool_without_the_wish_stays_a_call() {
    let gate = gate();
    gate.0.add_permits(1);
    let client = draft_with(gate);
    let mut params = json!({"name": "provision", "arguments": {}});
    for (key, answer) in [("name", json!({"input": "disk"})), ("size", json!({"size": 4}))] {
        let round = client.send("tools/call", params.clone()).await["result"].clone();
        assert_eq!(round["resultType"], "input_required", "{round}");
        params["inputResponses"] = json!({key: accept(answer)});
        params["requestState"] = round["requestState"].clone();
    }
    let done = client.send("tools/call", params).await;
    assert_eq!(done["result"]["content"][0]["text"], "disk made 4", "{done}");
}

#[tokio::test(start_paused = true)]
async fn a_result_waits_while_the_task_works() {
    let gate = gate();
    let client = Arc::new(draft_with(gate.clone()));
    let call = json!({"name": "provision", "arguments": {}, "task": {}});
    let round = client.send("tools/call", call.clone()).await["result"].clone();
    let mut retry = call;
    retry["inputResponses"] = json!({"name": accept(json!({"input": "disk"}))});
    retry["requestState"] = round["requestState"].clone();
    let created = client.send("tools/call", retry).await["result"].clone();
    let id = created["task"]["taskId"].as_str().unwrap().to_owned();
    let waits = tokio::spawn({
        let (client, id) = (Arc::clone(&client), id.clone());
        async move { result(&client, &id).await }
    });
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(!waits.is_finished());
    assert_eq!(get(&client, &id).await["status"], "working");
    gate.0.add_permits(1);
    assert!(waits.await.unwrap()["result"]["inputRequests"]["size"].is_object());
}

#[tokio::test(start_paused = true)]
async fn failures_and_cancellations() {
    let client = draft();
    let id = created(&client, "fail").await;
    assert_eq!(status(&client, &id, "failed").await["statusMessage"], "no luck");
    let failed = result(&client, &id).await["result"].clone();
    assert_eq!(failed["isError"], true);
    assert_related(&failed, &id);
    let id = created(&client, "panics").await;
    status(&client, &id, "failed").await;
    assert_eq!(result(&client, &id).await["error"]["code"], -32603);
    let id = created(&client, "echo").await;
    status(&client, &id, "input_required").await;
    // > Clients MAY choose not to fulfill the input requests, in which case they MAY cancel the task.
    let cancelled = client.send("tasks/cancel", json!({"taskId": id})).await["result"].clone();
    assert_eq!((&cancelled["taskId"], &cancelled["status"]), (&json!(id), &json!("cancelled")));
    for (method, params) in [
        ("tasks/cancel", json!({"taskId": id})),
        ("tasks/input_response", json!({"taskId": id, "inputResponses": {}})),
        ("tasks/input_response", json!({"inputResponses": {}})),
        ("tasks/input_response", json!({"taskId": created(&client, "echo").await})),
    ] {
        let reply = client.send(method, params.clone()).await;
        assert_eq!(reply["error"]["code"], -32602, "{method} {params}: {reply}");
    }
    assert_eq!(result(&client, &id).await["error"]["data"]["reason"], "cancelled");
}

/// A client of the draft cannot know which tools have tasks: the wish is ignored for those that have none, as with the extension.
#[tokio::test(start_paused = true)]
async fn the_wish_is_ignored_for_tools_without_tasks() {
    let client = draft();
    for wish in [json!({}), json!({"ttl": 60000}), json!({"ttl": -1}), json!(3), json!([]), Value::Null] {
        let reply = client.send("tools/call", json!({"name": "plain", "task": wish})).await;
        assert_eq!(reply["result"]["content"][0]["text"], "plain", "{wish}: {reply}");
    }
    // For a tool with tasks, the wish counts.
    for wish in [json!({"ttl": -1}), json!(3)] {
        let reply = client.send("tools/call", json!({"name": "echo", "task": wish})).await;
        assert_eq!(reply["error"]["code"], -32602, "{wish}: {reply}");
    }
}

/// Cancels at each moment around the end of a task: an acknowledged cancellation counts, and a refused one does not.
#[tokio::test(start_paused = true)]
async fn a_cancellation_at_the_moment_of_the_end() {
    let (mut cancelled, mut completed) = (0, 0);
    for pause in 0..60 {
        let gate = gate();
        let client = draft_with(gate.clone());
        let id = created(&client, "work").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        gate.0.add_permits(1);
        for _ in 0..pause {
            tokio::task::yield_now().await;
        }
        let reply = client.send("tasks/cancel", json!({"taskId": id})).await;
        let expected = if reply["result"]["status"] == "cancelled" {
            cancelled += 1;
            "cancelled"
        } else {
            assert_eq!(reply["error"]["code"], -32602, "{reply}");
            completed += 1;
            "completed"
        };
        assert_eq!(get(&client, &id).await["status"], expected, "{pause}");
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(get(&client, &id).await["status"], expected, "{pause}");
    }
    assert!(cancelled > 0 && completed > 0, "{cancelled} {completed}");
}

#[tokio::test(start_paused = true)]
async fn the_draft_is_off_unless_the_author_turns_it_on() {
    let all = client(|server| server.tool(echo));
    let client = all.without_extension();
    let call = client.send("tools/call", json!({"name": "echo", "task": {"ttl": 60000}})).await;
    assert_eq!(call["error"]["code"], -32021, "{call}");
    for method in ["tasks/result", "tasks/list", "tasks/input_response"] {
        let reply = client.send(method, json!({"taskId": "0".repeat(32)})).await;
        assert_eq!(reply["error"]["code"], -32601, "{method}: {reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_extension_is_the_same_beside_the_draft() {
    let client = draft();
    let extension = TaskClient::of(client.server.clone());
    let discovered = extension.send("server/discover", json!({})).await;
    let capabilities = &discovered["result"]["capabilities"];
    assert_eq!(capabilities["extensions"]["io.modelcontextprotocol/tasks"], json!({}));
    assert!(capabilities.get("tasks").is_none(), "{capabilities}");
    // The wish is ignored: the server decides.
    let flat = extension.send("tools/call", json!({"name": "echo", "task": {"ttl": 60000}})).await;
    assert_eq!(
        (&flat["result"]["resultType"], &flat["result"]["ttlMs"]),
        (&json!("task"), &json!(86_400_000))
    );
    let plain = extension.send("tools/call", json!({"name": "plain", "task": {"ttl": 60000}})).await;
    assert_eq!(plain["result"]["content"][0]["text"], "plain");
    let id = flat["result"]["taskId"].as_str().unwrap().to_owned();
    for method in ["tasks/result", "tasks/list", "tasks/input_response"] {
        let reply = extension.send(method, json!({"taskId": id, "inputResponses": {}})).await;
        assert_eq!(reply["error"]["code"], -32601, "{method}: {reply}");
    }
    // One task, two views.
    extension.asked(&id, &["echo_input"]).await;
    assert_eq!(get(&client, &id).await["status"], "input_required");
    respond(&client, &id, json!({"echo_input": accept(json!({"input": "a"}))})).await;
    extension.status(&id, "completed").await;
    // Without the extension, its own method needs the extension.
    let reply = client.send("tasks/update", json!({"taskId": id, "inputResponses": {}})).await;
    assert_eq!(reply["error"]["code"], -32021, "{reply}");
}

#[tokio::test(start_paused = true)]
async fn a_task_belongs_to_its_caller() {
    let all = draft();
    let (anna, bert) = (all.user("anna").without_extension(), all.user("bert").without_extension());
    let id = created(&anna, "echo").await;
    status(&anna, &id, "input_required").await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel", "tasks/input_response"] {
        let params = |id: &str| json!({"taskId": id, "inputResponses": {}});
        let unknown = bert.send(method, params(&"0".repeat(32))).await["error"].clone();
        assert_eq!(unknown["code"], -32602, "{method}: {unknown}");
        for other in [bert.send(method, params(&id)).await, all.send(method, params(&id)).await] {
            assert_eq!(other["error"], unknown, "{method}");
        }
    }
    let listed = async |client: &TaskClient| {
        let page = client.send("tasks/list", json!({})).await["result"]["tasks"].clone();
        page.as_array().unwrap().iter().map(|task| task["taskId"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&anna).await, [json!(id)]);
    assert!(listed(&bert).await.is_empty());
    // All anonymous callers are one owner: a list would show the tasks of strangers.
    created(&all, "echo").await;
    assert!(listed(&all).await.is_empty());
}
