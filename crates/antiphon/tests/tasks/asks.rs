//! Questions in a task.

use crate::client::{TaskClient, accept, client, keys_of, text_of};
use antiphon::{Error, Form, server::Ctx, tool};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Semaphore;

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Size {
    /// Size
    size: u32,
}

#[derive(Default, Clone)]
struct Counter(Arc<AtomicUsize>);

/// Asks twice, with a step between.
#[tool(task = "required")]
async fn order(ctx: &Ctx, counter: antiphon::server::State<Counter>) -> Result<String, Error> {
    let Name { name } = ctx.elicit("Whose order is it?").await?;
    let number: usize =
        ctx.step("number", async |_| Ok(counter.0.0.fetch_add(1, Ordering::SeqCst) + 1)).await?;
    let Size { size } = ctx.elicit("Which size?").await?;
    Ok(format!("{name} {size} no. {number}"))
}

/// Asks two things at once.
#[tool(task = "required")]
async fn both(ctx: &Ctx) -> Result<String, Error> {
    let (name, size) = tokio::try_join!(ctx.elicit::<Name>("Whose?"), ctx.elicit::<Size>("Which size?"))?;
    Ok(format!("{} {}", name.name, size.size))
}

/// Asks while a step runs.
#[tool(task = "required")]
async fn beside(ctx: &Ctx, gate: antiphon::server::State<Gate>) -> Result<String, Error> {
    let (name, done) = tokio::join!(
        ctx.elicit::<Name>("Whose?"),
        ctx.step("work", async |_| {
            gate.0.0.acquire().await.unwrap().forget();
            Ok("worked".to_owned())
        })
    );
    let done: String = done?;
    let again: String = ctx.step("after", async |_| Ok("after".to_owned())).await?;
    Ok(format!("{} {done} {again}", name?.name))
}

#[derive(Clone)]
struct Gate(Arc<Semaphore>);

fn tools() -> TaskClient {
    client(|server| {
        server
            .state(Counter::default())
            .state(Gate(Arc::new(Semaphore::new(0))))
            .tool(order)
            .tool(both)
            .tool(beside)
    })
}

#[tokio::test(start_paused = true)]
async fn questions_wait_in_the_task() {
    let client = tools();
    let id = client.task("order", json!({})).await;
    let asked = client.asked(&id, &["name"]).await;
    assert_eq!(asked["status"], "input_required");
    assert_eq!(asked["inputRequests"]["name"]["params"]["message"], "Whose order is it?");
    // The same question, under the same key, as often as it is looked at.
    assert_eq!(client.get(&id).await["inputRequests"], asked["inputRequests"]);
    client.update(&id, json!({"name": accept(json!({"name": "Anna"}))})).await;
    // The answer was acknowledged: the question is not shown again.
    assert!(!keys_of(&client.get(&id).await).contains(&"name"));
    client.asked(&id, &["size"]).await;
    client.update(&id, json!({"size": accept(json!({"size": 4}))})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "Anna 4 no. 1");
}

#[tokio::test(start_paused = true)]
async fn answers_that_nobody_waits_for_are_ignored() {
    let client = tools();
    let id = client.task("order", json!({})).await;
    client.asked(&id, &["name"]).await;
    // Never asked, not asked yet, of a wrong shape.
    client.update(&id, json!({"other": accept(json!({})), "size": accept(json!({"size": 1})), "x": 3})).await;
    client.asked(&id, &["name"]).await;
    client.update(&id, json!({"name": accept(json!({"name": "Anna"}))})).await;
    client.asked(&id, &["size"]).await;
    // Answered before.
    client.update(&id, json!({"name": accept(json!({"name": "Bert"}))})).await;
    client.update(&id, json!({"size": accept(json!({"size": 4}))})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "Anna 4 no. 1");
    // Too late.
    client.update(&id, json!({"size": accept(json!({"size": 5}))})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "Anna 4 no. 1");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_answer_is_asked_again_under_a_new_key() {
    let client = tools();
    let id = client.task("order", json!({})).await;
    client.asked(&id, &["name"]).await;
    client.update(&id, json!({"name": accept(json!({"name": 3}))})).await;
    let again = client.asked(&id, &["name~2"]).await;
    let message = again["inputRequests"]["name~2"]["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("Whose order is it?") && message.len() > 20, "{message}");
    // The first key is used up.
    client.update(&id, json!({"name": accept(json!({"name": "Bert"}))})).await;
    client.asked(&id, &["name~2"]).await;
    client.update(&id, json!({"name~2": accept(json!({"name": "Anna"}))})).await;
    client.asked(&id, &["size"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_asked_again_stays_when_another_one_is_answered() {
    let client = tools();
    let id = client.task("both", json!({})).await;
    client.asked(&id, &["name", "size"]).await;
    client.update(&id, json!({"name": accept(json!({"name": 3}))})).await;
    let again = client.asked(&id, &["name~2", "size"]).await["inputRequests"]["name~2"].clone();
    client.update(&id, json!({"size": accept(json!({"size": 4}))})).await;
    // Neither a third key nor another text: the person has read this question.
    client.until(&id, |task| keys_of(task).len() == 1).await;
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(client.get(&id).await["inputRequests"], json!({"name~2": again}));
    }
    client.update(&id, json!({"name~2": accept(json!({"name": "Anna"}))})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "Anna 4");
}

#[tokio::test(start_paused = true)]
async fn a_partial_answer_leaves_the_other_question_as_it_is() {
    let client = tools();
    for (first, second) in [("name", "size"), ("size", "name")] {
        let answer = |key: &str| match key {
            "name" => accept(json!({"name": "Anna"})),
            _ => accept(json!({"size": 4})),
        };
        let id = client.task("both", json!({})).await;
        client.asked(&id, &["name", "size"]).await;
        client.update(&id, json!({first: answer(first)})).await;
        let rest = client.asked(&id, &[second]).await;
        assert_eq!(rest["status"], "input_required");
        client.update(&id, json!({second: answer(second)})).await;
        assert_eq!(text_of(&client.status(&id, "completed").await), "Anna 4");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_shown_while_a_step_runs() {
    let gate = Gate(Arc::new(Semaphore::new(0)));
    for answers_first in [true, false] {
        let client = client(|server| server.state(gate.clone()).tool(beside));
        let id = client.task("beside", json!({})).await;
        client.asked(&id, &["name"]).await;
        let answer = json!({"name": accept(json!({"name": "Anna"}))});
        if answers_first {
            client.update(&id, answer.clone()).await;
            assert_eq!(client.get(&id).await["status"], "working");
        }
        gate.0.add_permits(1);
        if !answers_first {
            client.asked(&id, &["name"]).await;
            client.update(&id, answer).await;
        }
        assert_eq!(text_of(&client.status(&id, "completed").await), "Anna worked after");
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_are_answers() {
    let client = tools();
    for action in ["decline", "cancel"] {
        let id = client.task("order", json!({})).await;
        client.asked(&id, &["name"]).await;
        client.update(&id, json!({"name": {"action": action}})).await;
        let done = client.status(&id, "completed").await;
        assert_eq!(done["result"]["isError"], true, "{done}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_client_did_not_declare_is_not_asked() {
    let client = tools();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": meta, "name": "order", "arguments": {}}});
    let caller = antiphon::server::Caller::default();
    let reply = client.server.respond(call.to_string().as_bytes(), &caller).await.unwrap();
    let reply: Value = serde_json::from_slice(&reply.body).unwrap();
    let id = reply["result"]["taskId"].as_str().unwrap().to_owned();
    let failed = client.status(&id, "failed").await;
    assert_eq!(failed["error"]["code"], -32021, "{failed}");
}
