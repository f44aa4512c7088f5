//! Polls of tasks whose records, questions and results have different sizes.

use crate::{
    client::{TaskClient, request},
    engine::Engine,
    measured::{Result, median},
};
use antiphon::{
    Form,
    server::{Caller, Ctx, Limits, Server, TaskMode, Tool},
};
use serde_json::{Value, json};
use std::time::Instant;

/// The sizes of a task, in bytes.
#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema, Clone, Copy)]
struct Sizes {
    /// The number of steps, and the size of each result.
    steps: u32,
    step: usize,
    /// The size of the question, and of the result.
    text: usize,
}

#[derive(serde::Deserialize, Form)]
struct Confirmation {
    #[expect(dead_code, reason = "only its arrival counts")]
    confirm: bool,
}

async fn grow(ctx: &Ctx, sizes: Sizes) -> antiphon::Result<String> {
    for number in 0..sizes.steps {
        ctx.step(("grow", number), async |_| Ok("x".repeat(sizes.step))).await?;
    }
    let _: Confirmation = ctx.elicit("x".repeat(sizes.text)).key("confirm").await?;
    Ok("x".repeat(sizes.text))
}

/// Measures polls of a task that waits, and of the same task when it is over, and prints the lines.
pub(crate) async fn measure(engine: &Engine, polls: usize) -> Result<()> {
    const KIB: usize = 1024;
    println!("\n| engine | record | question or result | form | it waits, µs | it is over, µs |");
    println!("|---|--:|--:|---|--:|--:|");
    // The same limits before and after records of tasks had a limit of their own.
    let limits = Limits::default().state(16 << 20).step_result(1 << 20);
    let tool = Tool::new("grow", grow).task(TaskMode::Required);
    let server = engine.server().draft_tasks(true).limits(limits).tool(tool).build()?;
    for (steps, step, text) in
        [(1, KIB, KIB), (7, 15 * KIB, KIB), (20, 100 * KIB, KIB), (1, KIB, 100 * KIB), (1, KIB, 3900 * KIB)]
    {
        let sizes = Sizes { steps, step, text };
        let created = send(&server, "tools/call", json!({"name": "grow", "arguments": sizes}), true).await?;
        let id = created["taskId"].as_str().ok_or_else(|| format!("no task: {created}"))?.to_owned();
        until(&server, &id, "input_required").await?;
        let waits = [times(&server, &id, true, polls).await?, times(&server, &id, false, polls).await?];
        let answers = json!({"confirm": {"action": "accept", "content": {"confirm": true}}});
        send(&server, "tasks/update", json!({"taskId": id, "inputResponses": answers}), true).await?;
        until(&server, &id, "completed").await?;
        let over = [times(&server, &id, true, polls).await?, times(&server, &id, false, polls).await?];
        for (form, waits, over) in [("extension", waits[0], over[0]), ("draft", waits[1], over[1])] {
            let (record, text) = (steps as usize * step / KIB, text / KIB);
            println!("| {} | {record} KiB | {text} KiB | {form} | {waits:.0} | {over:.0} |", engine.name);
        }
    }
    Ok(())
}

/// Returns the median of the microseconds of a poll.
async fn times(server: &Server, id: &str, declares: bool, polls: usize) -> Result<f64> {
    let poll = request("tasks/get", json!({"taskId": id}), declares);
    let mut times = Vec::with_capacity(polls);
    for round in 0..polls + polls / 10 {
        let begin = Instant::now();
        server.respond(poll.as_bytes(), &Caller::default()).await.ok_or("no reply")?;
        // The first ones warm up.
        if round >= polls / 10 {
            times.push(begin.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(median(&mut times))
}

async fn until(server: &Server, id: &str, status: &str) -> Result<()> {
    while send(server, "tasks/get", json!({"taskId": id}), false).await?["status"] != status {
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn send(server: &Server, method: &str, params: Value, declares: bool) -> Result<Value> {
    let request = request(method, params, declares);
    TaskClient::reply(server, method, &request).await
}
