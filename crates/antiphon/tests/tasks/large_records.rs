//! The record of a task is limited by its store, not by the token of a call; an error names the limit.

use crate::client::{TaskClient, accept, client, text_of};
use antiphon::{
    Error, Form,
    server::{Ctx, Limits, ServerBuilder, StepError},
    store::MemoryStore,
    tool,
};
use serde_json::{Value, json};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// Collects chunks of 15 KiB, asks, and counts them.
#[tool(task = "required")]
async fn collect(ctx: &Ctx, chunks: u32, questions: u32) -> Result<String, Error> {
    let mut bytes = 0;
    for chunk in 0..chunks {
        let text: String = ctx.step(("chunk", chunk), async |_| Ok("x".repeat(15 << 10))).await?;
        bytes += text.len();
    }
    for question in 0..questions {
        let Name { name } = ctx.elicit("Whose?").key(format!("who{question}")).await?;
        bytes += name.len();
    }
    Ok(bytes.to_string())
}

/// Has results of 600 KB.
#[tool(task = "required")]
async fn blocks(ctx: &Ctx, blocks: u32) -> Result<String, Error> {
    for block in 0..blocks {
        let _text: String = ctx.step(("block", block), async |_| Ok("x".repeat(600_000))).await?;
    }
    Ok("done".to_owned())
}

/// The same as a call, which may become a task.
#[tool(task = "optional")]
async fn collect_then(ctx: &Ctx, before: u32, after: u32) -> Result<String, Error> {
    let mut bytes = 0;
    for chunk in 0..before {
        let text: String = ctx.step(("before", chunk), async |_| Ok("x".repeat(15 << 10))).await?;
        bytes += text.len();
    }
    ctx.into_task().await?;
    for chunk in 0..after {
        let text: String = ctx.step(("after", chunk), async |_| Ok("x".repeat(15 << 10))).await?;
        bytes += text.len();
    }
    Ok(bytes.to_string())
}

/// An error around that of a step.
#[derive(Debug)]
struct Wrapped(StepError);

impl std::fmt::Display for Wrapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the film cannot be cut")
    }
}

impl std::error::Error for Wrapped {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Has one result that is too large, and fails with it or goes on.
#[tool(task = "optional")]
async fn large(ctx: &Ctx, goes_on: bool, wrapped: bool) -> Result<String, Error> {
    let step: Result<String, StepError> = ctx.step("big", async |_| Ok("x".repeat(17 << 10))).await;
    match step {
        Ok(_) => Ok("recorded".to_owned()),
        Err(error) if goes_on => Ok(format!("{:?} {}", error.code, error.data.unwrap_or_default())),
        Err(error) if wrapped => Err(Wrapped(error).into()),
        Err(error) => Err(error.into()),
    }
}

fn with(build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> TaskClient {
    client(|server| build(server).tool(collect).tool(collect_then).tool(large))
}

async fn check(client: &TaskClient, chunks: u32) {
    let id = client.task("collect", json!({"chunks": chunks, "questions": 2})).await;
    for question in ["who0", "who1"] {
        client.asked(&id, &[question]).await;
        client.update(&id, json!({question: accept(json!({"name": "a"}))})).await;
    }
    let done = client.status(&id, "completed").await;
    assert_eq!(text_of(&done), (chunks * (15 << 10) + 2).to_string());
}

#[tokio::test(start_paused = true)]
async fn a_record_in_a_task_is_larger_than_a_token() {
    check(&with(|server| server), 30).await;
    for chunks in [7, 9] {
        check(&with(|server| server), chunks).await;
        check(&with(|server| server.store(MemoryStore::new()).single_use(true)), chunks).await;
        check(&with(|server| server.store(MemoryStore::new()).single_use(true).spill(true)), chunks).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_becomes_a_task_has_the_space_of_a_task_from_then_on() {
    let client = with(|server| server);
    let id = client.task("collect_then", json!({"before": 5, "after": 9})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), (14 * (15 << 10)).to_string());
    // As a call it is as limited as before: the record leaves, and then the error.
    let (client, mut params) =
        (client.without_extension(), json!({"name": "collect_then", "arguments": {"before": 9, "after": 0}}));
    let mut call = client.send("tools/call", params.clone()).await;
    while let Some(state) = call["result"]["requestState"].as_str() {
        params["requestState"] = json!(state);
        call = client.send("tools/call", params.clone()).await;
    }
    assert_eq!(call["error"]["data"]["limit"], "state");
}

/// The largest record of a task, and the next step.
#[tokio::test(start_paused = true)]
async fn the_record_of_a_task_has_a_limit_too() {
    let limits = || Limits::default().step_result(600 << 10);
    let client = with(|server| server.limits(limits()).tool(blocks));
    let id = client.task("blocks", json!({"blocks": 8})).await;
    let failed = client.status(&id, "failed").await;
    assert_eq!(
        (&failed["error"]["code"], &failed["error"]["data"]["limit"]),
        (&json!(-32602), &json!("state"))
    );
    // A larger limit is one of tasks too.
    let client = with(|server| server.limits(limits().state(6 << 20)).tool(blocks));
    let id = client.task("blocks", json!({"blocks": 8})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "done");
}

#[tokio::test(start_paused = true)]
async fn one_result_over_the_limit_names_the_limit() {
    let client = with(|server| server.draft_tasks(true));
    for (wrapped, step_result, is_over) in
        [(false, 16 << 10, true), (true, 16 << 10, true), (false, 18 << 10, false)]
    {
        let limits = Limits::default().step_result(step_result);
        let client = with(|server| server.draft_tasks(true).limits(limits));
        let arguments = json!({"goes_on": false, "wrapped": wrapped});
        let call = client.without_extension().call("large", arguments.clone()).await;
        if !is_over {
            assert_eq!(call["result"]["content"][0]["text"], "recorded", "{call}");
            continue;
        }
        let error = call["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]["limit"]),
            (&json!(-32602), &json!("step_result")),
            "{error}"
        );
        let text = error["message"].as_str().unwrap();
        assert!(text.contains("16384"), "{text}");
    }
    // A handler may go on.
    let call = client.call("large", json!({"goes_on": true, "wrapped": false})).await;
    let text = call["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{call}"));
    assert_eq!(text, r#"Some("unrecordable") {"limit":"step_result"}"#);
}

/// The same in a task, in each form.
#[tool(task = "required")]
async fn large_task(ctx: &Ctx) -> Result<String, Error> {
    let _text: String = ctx.step("big", async |_| Ok("x".repeat(17 << 10))).await?;
    Ok(String::new())
}

#[tokio::test(start_paused = true)]
async fn one_result_over_the_limit_names_the_limit_in_a_task() {
    let client = client(|server| server.draft_tasks(true).tool(large_task));
    let id = client.task("large_task", json!({})).await;
    let failed: Value = client.status(&id, "failed").await;
    let draft = client.without_extension().send("tasks/result", json!({"taskId": id})).await;
    for error in [&failed["error"], &draft["error"]] {
        assert_eq!(
            (&error["code"], &error["data"]["limit"]),
            (&json!(-32602), &json!("step_result")),
            "{error}"
        );
    }
}
