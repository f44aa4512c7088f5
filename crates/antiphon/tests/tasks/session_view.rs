//! Tasks as sessions of 2025-11-25 have them.

use crate::{
    client::{accept, client},
    session_client::{SessionClient, related},
    view_tools::{Gate, Size, fail, gate, panics, work},
};
use antiphon::{
    Error, Form,
    server::{Ask, Ctx, Limits, Reply, Server, State, asks::InputRequired},
    store::{MemoryTasks, StoreClock, calls::Micros},
    tool,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// Adds numbers.
#[tool(task = "required")]
async fn add(ctx: &Ctx, a: i64, b: i64) -> Result<String, Error> {
    let sum: i64 = ctx.step("add", async |_| Ok(a + b)).await?;
    Ok(sum.to_string())
}

/// Asks twice.
#[tool(task = "optional")]
async fn order(ctx: &Ctx) -> Result<String, Error> {
    let Name { name } = ctx.elicit("Whose order is it?").await?;
    ctx.into_task().await?;
    let Size { size } = ctx.elicit("Which size?").await?;
    Ok(format!("{name} {size}"))
}

/// Asks to open a page.
#[tool(task = "required")]
async fn pay(ctx: &Ctx) -> Result<String, Error> {
    ctx.elicit_url("Pay.", |r| format!("https://pay.example/{r}")).await?;
    Ok("paid".to_owned())
}

/// Asks to open a page whose completion is announced.
#[tool(task = "required")]
async fn announced(ctx: &Ctx) -> Result<String, Error> {
    ctx.elicit_url("Pay.", |_| "https://pay.example/7".to_owned()).id("payment-7").await?;
    Ok("paid".to_owned())
}

/// The same, while a step runs.
#[tool(task = "required")]
async fn announced_beside_a_step(ctx: &Ctx, gate: State<Gate>) -> Result<String, Error> {
    let page = ctx.elicit_url("Pay.", |_| "https://pay.example/7".to_owned()).id("payment-7");
    let step = ctx.step("work", async |_| {
        gate.0.0.acquire().await.unwrap().forget();
        Ok(())
    });
    let (paid, worked) = tokio::join!(page, step);
    paid?;
    worked?;
    Ok("paid".to_owned())
}

/// The same, with a question that is returned.
#[tool(task = "required")]
async fn announced_by_hand(ctx: &Ctx) -> Result<Reply<String>, Error> {
    let ask = Ask::url("page", "Pay.", "https://pay.example/7").id("payment-7");
    Ok(match ctx.by_hand().url(&ask) {
        None => Reply::from(InputRequired::ask(ask)),
        Some(_) => Reply::Complete("paid".to_owned()),
    })
}

/// Answers at once.
#[tool]
async fn echo(text: String) -> String {
    text
}

fn server() -> Server {
    server_with(gate())
}

fn server_with(gate: Gate) -> Server {
    client(|server| {
        server
            .state(gate)
            .tool(add)
            .tool(order)
            .tool(pay)
            .tool(announced)
            .tool(announced_beside_a_step)
            .tool(announced_by_hand)
            .tool(fail)
            .tool(panics)
            .tool(work)
            .tool(echo)
    })
    .server
}

#[tokio::test(start_paused = true)]
async fn the_capability_is_declared_to_sessions_that_have_tasks() {
    let all = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    let without = client(|server| server.tool(echo)).server;
    for (server, version, declared) in [
        (server(), "2025-11-25", &all),
        (server(), "2025-06-18", &Value::Null),
        (server(), "2024-11-05", &Value::Null),
        (without, "2025-11-25", &Value::Null),
    ] {
        let session = SessionClient::of_version(&server, version).await;
        assert_eq!(&session.capabilities()["tasks"], declared, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_tool_says_whether_it_has_tasks() {
    for (version, has) in [("2025-11-25", true), ("2025-06-18", false)] {
        let mut session = SessionClient::of_version(&server(), version).await;
        let tools = session.send("tools/list", json!({})).await["result"]["tools"].clone();
        for (name, support) in
            [("add", json!("required")), ("order", json!("optional")), ("echo", Value::Null)]
        {
            let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
            let expected = if has { &support } else { &Value::Null };
            assert_eq!(&tool["execution"]["taskSupport"], expected, "{version} {name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_misuse_of_a_tool_is_refused() {
    for (version, tool, task, code) in [
        ("2025-11-25", "echo", json!({}), json!(-32601)),
        ("2025-11-25", "add", Value::Null, json!(-32601)),
        ("2025-11-25", "add", json!(3), json!(-32602)),
        ("2025-11-25", "add", json!({"ttl": "long"}), json!(-32602)),
        ("2025-11-25", "add", json!({"ttl": -1}), json!(-32602)),
        ("2025-11-25", "add", json!({}), Value::Null),
        ("2025-06-18", "add", json!({}), json!(-32601)),
        // A client that was not told of tasks cannot want one.
        ("2025-06-18", "echo", json!({}), Value::Null),
    ] {
        let mut session = SessionClient::of_version(&server(), version).await;
        let mut params = json!({"name": tool, "arguments": {"a": 1, "b": 2, "text": "a"}, "task": task});
        if params["task"].is_null() {
            params.as_object_mut().unwrap().remove("task");
        }
        if tool == "echo" {
            params["arguments"] = json!({"text": "a"});
        }
        if tool == "add" {
            params["arguments"] = json!({"a": 1, "b": 2});
        }
        let reply = session.send("tools/call", params).await;
        assert_eq!(reply["error"]["code"], code, "{version} {tool} {task}: {reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_tasks_ignores_the_wish() {
    let server = client(|server| server.tool(echo)).server;
    let mut session = SessionClient::open(&server).await;
    let params = json!({"name": "echo", "arguments": {"text": "a"}, "task": {"ttl": 60000}});
    assert_eq!(session.send("tools/call", params).await["result"]["content"][0]["text"], "a");
    for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"] {
        let reply = session.send(method, json!({"taskId": "0".repeat(32)})).await;
        assert_eq!(reply["error"]["code"], -32601, "{method}: {reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_nested_and_begins_working() {
    let day = 86_400_000;
    for (wish, ttl) in [
        (json!({}), day),
        (json!({"ttl": 60000}), 60000),
        (json!({"ttl": 2 * day}), day),
        (json!({"ttl": 0}), 1000),
    ] {
        let mut session = SessionClient::open(&server()).await;
        let params = json!({"name": "work", "arguments": {}, "task": wish});
        let result = session.send("tools/call", params).await["result"].clone();
        let members: Vec<&String> = result.as_object().unwrap().keys().collect();
        assert_eq!(members, ["task"], "{result}");
        let task = &result["task"];
        assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &json!(ttl)), "{wish}");
        assert_eq!(task["pollInterval"], 1000);
        assert!(task["createdAt"].is_string() && task["lastUpdatedAt"].is_string(), "{task}");
        let got = session.get(task["taskId"].as_str().unwrap()).await;
        assert_eq!((&got["taskId"], &got["ttl"]), (&task["taskId"], &json!(ttl)));
        assert!(got.get("_meta").is_none() && got.get("resultType").is_none(), "{got}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_result_waits_for_answers_that_the_server_asks_for() {
    let server = server();
    let mut session = SessionClient::open(&server).await;
    let id = session.task("order", json!({})).await;
    assert_eq!(session.status(&id, "input_required").await["taskId"], id.as_str());
    assert!(session.is_asked_nothing().await, "questions are sent beside `tasks/result` only");
    let result = session.begin("tasks/result", json!({"taskId": id})).await;
    let asked = session.asked().await;
    assert_eq!(
        (&asked["method"], &asked["params"]["message"]),
        (&json!("elicitation/create"), &json!("Whose order is it?"))
    );
    assert_eq!(related(&asked["params"]), id.as_str());
    session.answer(&asked, accept(json!({"name": "Anna"}))).await;
    let asked = session.asked().await;
    assert_eq!(asked["params"]["message"], "Which size?");
    // > requestors can continue polling via `tasks/get` in parallel
    assert_eq!(session.get(&id).await["status"], "input_required");
    session.answer(&asked, accept(json!({"size": 4}))).await;
    let reply = session.reply(result).await["result"].clone();
    assert_eq!((&reply["content"][0]["text"], related(&reply)), (&json!("Anna 4"), &json!(id)));
    assert!(reply.get("resultType").is_none() && reply["_meta"].as_object().unwrap().len() == 1, "{reply}");
    // The same result again, and at once.
    assert_eq!(session.send("tasks/result", json!({"taskId": id})).await["result"], reply);
    assert_eq!(session.get(&id).await["status"], "completed");
    // The same tool without a task: the same result.
    let call = session.begin("tools/call", json!({"name": "order", "arguments": {}})).await;
    for answer in [json!({"name": "Anna"}), json!({"size": 4})] {
        let asked = session.asked().await;
        assert_eq!(related(&asked["params"]), &Value::Null);
        session.answer(&asked, accept(answer)).await;
    }
    assert_eq!(session.reply(call).await["result"]["content"], reply["content"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_is_sent_once_although_several_requests_wait() {
    let server = server();
    let (mut first, mut second) = (SessionClient::open(&server).await, SessionClient::open(&server).await);
    let id = first.task("order", json!({})).await;
    let one = first.begin("tasks/result", json!({"taskId": id})).await;
    let asked = first.asked().await;
    let two = first.begin("tasks/result", json!({"taskId": id})).await;
    let three = second.begin("tasks/result", json!({"taskId": id})).await;
    assert!(first.is_asked_nothing().await && second.is_asked_nothing().await);
    // The request that has sent the question is cancelled: another one sends it.
    first.notify("notifications/cancelled", json!({"requestId": one})).await;
    let (asked_first, again) = tokio::select! {
        asked = first.asked() => (true, asked),
        asked = second.asked() => (false, asked),
    };
    assert_eq!(again["params"]["message"], asked["params"]["message"]);
    let answer = accept(json!({"name": "Anna"}));
    if asked_first {
        first.answer(&again, answer).await
    } else {
        second.answer(&again, answer).await
    };
    let (asked_first, size) = tokio::select! {
        asked = first.asked() => (true, asked),
        asked = second.asked() => (false, asked),
    };
    assert_eq!(size["params"]["message"], "Which size?");
    let answer = accept(json!({"size": 4}));
    if asked_first {
        first.answer(&size, answer).await
    } else {
        second.answer(&size, answer).await
    };
    for reply in [first.reply(two).await, second.reply(three).await] {
        assert_eq!(reply["result"]["content"][0]["text"], "Anna 4");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_goes_on_in_another_session_when_its_session_ends() {
    let server = server();
    let (mut first, mut second) = (SessionClient::open(&server).await, SessionClient::open(&server).await);
    let id = first.task("order", json!({})).await;
    first.begin("tasks/result", json!({"taskId": id})).await;
    first.asked().await;
    let result = second.begin("tasks/result", json!({"taskId": id})).await;
    assert!(second.is_asked_nothing().await);
    // The blocked request ends with its session: the server waits for nothing.
    first.ends().await;
    for answer in [json!({"name": "Anna"}), json!({"size": 4})] {
        let asked = second.asked().await;
        second.answer(&asked, accept(answer)).await;
    }
    assert_eq!(second.reply(result).await["result"]["content"][0]["text"], "Anna 4");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_answer_is_asked_again() {
    let server = server();
    let mut session = SessionClient::open(&server).await;
    let id = session.task("order", json!({})).await;
    let result = session.begin("tasks/result", json!({"taskId": id})).await;
    for answer in [json!({"name": 3}), json!({"name": "Anna"}), json!({"size": 4})] {
        let asked = session.asked().await;
        assert_eq!(related(&asked["params"]), id.as_str());
        session.answer(&asked, accept(answer)).await;
    }
    assert_eq!(session.reply(result).await["result"]["content"][0]["text"], "Anna 4");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_fails_to_ask_leaves_the_task_alone() {
    let server = server();
    let mut session = SessionClient::open(&server).await;
    let id = session.task("order", json!({})).await;
    let result = session.begin("tasks/result", json!({"taskId": id})).await;
    let asked = session.asked().await;
    session.fail(&asked, -32603).await;
    let reply = session.reply(result).await;
    assert_eq!(reply["error"]["message"], "The client did not answer `name`: no window", "{reply}");
    assert_eq!(session.get(&id).await["status"], "input_required");
    let result = session.begin("tasks/result", json!({"taskId": id})).await;
    let asked = session.asked().await;
    session.answer(&asked, json!({"action": "decline"})).await;
    assert_eq!(session.reply(result).await["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn a_page_to_open_has_an_id() {
    let server = server();
    let mut session = SessionClient::open(&server).await;
    let id = session.task("pay", json!({})).await;
    let result = session.begin("tasks/result", json!({"taskId": id})).await;
    let asked = session.asked().await["params"].clone();
    assert_eq!((&asked["mode"], related(&asked)), (&json!("url"), &json!(id)), "{asked}");
    assert!(asked["elicitationId"].as_str().unwrap().starts_with(&id), "{asked}");
    session.notify("notifications/cancelled", json!({"requestId": result})).await;
    assert_eq!(session.get(&id).await["status"], "input_required");
}

#[tokio::test(start_paused = true)]
async fn the_client_gets_a_notification_when_the_work_behind_a_page_is_finished() {
    for tool in ["announced", "announced_beside_a_step", "announced_by_hand"] {
        let gate = gate();
        let server = server_with(gate.clone());
        let mut session = SessionClient::open(&server).await;
        assert!(!server.elicitation_complete("payment-7"));
        let id = session.task(tool, json!({})).await;
        let result = session.begin("tasks/result", json!({"taskId": id})).await;
        let asked = session.asked().await;
        assert_eq!(asked["params"]["elicitationId"], "payment-7", "{tool}: {asked}");
        assert!(server.elicitation_complete("payment-7"));
        gate.0.add_permits(1);
        session.answer(&asked, json!({"action": "accept"})).await;
        assert_eq!(session.reply(result).await["result"]["content"][0]["text"], "paid", "{tool}");
        let told = |note: &&Value| note["method"] == "notifications/elicitation/complete";
        let told: Vec<&Value> = session.notified.iter().filter(told).map(|note| &note["params"]).collect();
        assert_eq!(told, [&json!({"elicitationId": "payment-7"})], "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_what_the_call_would_have_returned() {
    let server = server();
    let mut session = SessionClient::open(&server).await;
    let id = session.task("fail", json!({})).await;
    let failed = session.status(&id, "failed").await;
    assert_eq!(failed["statusMessage"], "no luck");
    let reply = session.send("tasks/result", json!({"taskId": id})).await["result"].clone();
    assert_eq!((&reply["isError"], &reply["content"][0]["text"]), (&json!(true), &json!("no luck")));
    assert_eq!(related(&reply), id.as_str());
    let id = session.task("panics", json!({})).await;
    let failed = session.status(&id, "failed").await;
    let reply = session.send("tasks/result", json!({"taskId": id})).await;
    assert_eq!(
        (&reply["error"]["code"], &reply["error"]["message"]),
        (&json!(-32603), &failed["statusMessage"])
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_task_stays_cancelled() {
    let gate = gate();
    let server = server_with(gate.clone());
    let mut session = SessionClient::open(&server).await;
    let id = session.task("work", json!({})).await;
    let result = session.begin("tasks/result", json!({"taskId": id})).await;
    let cancelled = session.send("tasks/cancel", json!({"taskId": id})).await["result"].clone();
    assert_eq!((&cancelled["status"], &cancelled["taskId"]), (&json!("cancelled"), &json!(id)));
    assert!(cancelled["createdAt"].is_string() && cancelled.get("_meta").is_none(), "{cancelled}");
    // Who waits is told at once, although the step still runs.
    assert_eq!(session.reply(result).await["error"]["data"]["reason"], "cancelled");
    gate.0.add_permits(1);
    // The handler ends with a result, which does not count.
    for _ in 0..100 {
        assert_eq!(session.get(&id).await["status"], "cancelled");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let again = session.send("tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(again["error"]["code"], -32602, "{again}");
    assert_eq!(again["error"]["message"], "Cannot cancel task: already in terminal status 'cancelled'");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_over_cannot_be_cancelled() {
    let server = server();
    let mut session = SessionClient::open(&server).await;
    for (tool, arguments, status) in [
        ("add", json!({"a": 1, "b": 1}), "completed"),
        ("fail", json!({}), "failed"),
        ("panics", json!({}), "failed"),
    ] {
        let id = session.task(tool, arguments).await;
        session.status(&id, status).await;
        let reply = session.send("tasks/cancel", json!({"taskId": id})).await;
        let text = format!("Cannot cancel task: already in terminal status '{status}'");
        assert_eq!((&reply["error"]["code"], &reply["error"]["message"]), (&json!(-32602), &json!(text)));
        assert_eq!(session.get(&id).await["status"], status);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_task_is_an_error() {
    let server = server();
    let mut session = SessionClient::open(&server).await;
    let id = session.task("add", json!({"a": 1, "b": 1})).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        // > receivers **MUST** ignore such metadata if present in favor of the RPC method parameter.
        let meta = json!({"io.modelcontextprotocol/related-task": {"taskId": id}});
        for params in
            [json!({"taskId": "0".repeat(32), "_meta": meta}), json!({"_meta": meta}), json!({"taskId": 3})]
        {
            let reply = session.send(method, params).await;
            assert_eq!(reply["error"]["code"], -32602, "{method}: {reply}");
        }
    }
    for method in ["tasks/update", "tasks/input_response"] {
        let reply = session.send(method, json!({"taskId": id, "inputResponses": {}})).await;
        assert_eq!(reply["error"]["code"], -32601, "{method}: {reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_has_pages_and_the_tasks_of_its_session_only() {
    let server = client(|server| server.page_size(2).tool(add)).server;
    let (mut own, mut other) = (SessionClient::open(&server).await, SessionClient::open(&server).await);
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(own.task("add", json!({"a": number, "b": 1})).await);
    }
    other.task("add", json!({"a": 1, "b": 1})).await;
    ids.sort();
    let (mut listed, mut params) = (Vec::new(), json!({}));
    loop {
        let page = own.send("tasks/list", params).await["result"].clone();
        let tasks = page["tasks"].as_array().unwrap();
        assert!(tasks.len() <= 2 && page.get("_meta").is_none(), "{page}");
        listed.extend(tasks.iter().map(|task| task["taskId"].as_str().unwrap().to_owned()));
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(listed, ids);
    assert_eq!(other.send("tasks/list", json!({})).await["result"]["tasks"].as_array().unwrap().len(), 1);
    for cursor in [json!("next"), json!(3), json!("")] {
        let reply = own.send("tasks/list", json!({"cursor": cursor})).await;
        assert_eq!(reply["error"]["code"], -32602, "{cursor}: {reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_are_bounded() {
    let limits = Limits::default().session_requests(3);
    let server = client(|server| server.limits(limits).state(gate()).tool(work)).server;
    let mut session = SessionClient::open(&server).await;
    let id = session.task("work", json!({})).await;
    for _ in 0..3 {
        session.begin("tasks/result", json!({"taskId": id})).await;
    }
    let refused = session.send("tasks/result", json!({"taskId": id})).await;
    assert_eq!(refused["error"]["data"]["reason"], "busy", "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_drains_ends_the_requests_that_wait() {
    let server = server();
    let mut session = SessionClient::open(&server).await;
    let id = session.task("work", json!({})).await;
    let result = session.begin("tasks/result", json!({"taskId": id})).await;
    assert!(session.is_asked_nothing().await);
    server.drain();
    assert_eq!(session.reply(result).await["error"]["data"]["reason"], "busy");
}

#[tokio::test(start_paused = true)]
async fn a_task_expires_when_its_client_wants() {
    let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    let store = Arc::new(MemoryTasks::new().clock(clock));
    let server = client(|server| server.task_store(store).tool(order)).server;
    let mut session = SessionClient::open(&server).await;
    let params = json!({"name": "order", "arguments": {}, "task": {"ttl": 2000}});
    let created = session.send("tools/call", params).await;
    let id = created["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    session.status(&id, "input_required").await;
    hand.advance(Duration::from_secs(3));
    let reply = session.send("tasks/get", json!({"taskId": id})).await;
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
}

#[tokio::test(start_paused = true)]
async fn the_session_is_notified_of_each_status() {
    let gate = gate();
    let server = server_with(gate.clone());
    let (mut session, mut other) = (SessionClient::open(&server).await, SessionClient::open(&server).await);
    let id = session.task("order", json!({})).await;
    let result = session.begin("tasks/result", json!({"taskId": id})).await;
    for answer in [json!({"name": "Anna"}), json!({"size": 4})] {
        let asked = session.asked().await;
        session.answer(&asked, accept(answer)).await;
    }
    session.reply(result).await;
    session.send("ping", json!({})).await;
    let statuses: Vec<&Value> = session.notified.iter().map(|message| &message["params"]["status"]).collect();
    assert_eq!(statuses.last(), Some(&&json!("completed")), "{statuses:?}");
    assert!(statuses.contains(&&json!("input_required")), "{statuses:?}");
    for message in &session.notified {
        assert_eq!(message["method"], "notifications/tasks/status");
        assert_eq!(message["params"]["taskId"], id.as_str());
        assert!(message["params"]["ttl"].is_u64() && message["params"].get("_meta").is_none(), "{message}");
    }
    assert!(other.is_asked_nothing().await && other.notified.is_empty(), "a task of another session");
}
