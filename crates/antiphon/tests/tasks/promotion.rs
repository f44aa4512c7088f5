//! Calls that become tasks: at a place of the handler, and by time.

use crate::client::{TaskClient, accept, client, keys_of, text_of};
use antiphon::{
    Error, Form,
    server::{Ctx, State},
    tool,
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::Semaphore;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Log {
    fn push(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Keep {
    /// Keep it?
    keep: bool,
}

/// Asks first, then works in a task, then asks again.
#[tool(task = "optional")]
async fn provision(ctx: &Ctx, log: State<Log>) -> Result<String, Error> {
    let Name { name } = ctx.elicit("Whose?").await?;
    ctx.step("reserve", async |_| {
        log.push("reserve");
        Ok(())
    })
    .await?;
    ctx.into_task().await?;
    let carrier = ctx.carrier();
    ctx.step("create", async |_| {
        log.push("create");
        Ok(())
    })
    .await?;
    let Keep { keep } = ctx.elicit("Keep it?").await?;
    Ok(format!("{name} {keep} {carrier:?} {}", ctx.is_task()))
}

/// Works for a while.
#[tool(task = "optional", promote_after = "10s")]
async fn work(ctx: &Ctx, gate: State<Gate>, log: State<Log>, seconds: u64) -> Result<String, Error> {
    ctx.step("first", async |_| {
        log.push("first");
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(())
    })
    .await?;
    ctx.step("second", async |_| {
        log.push("second");
        if ctx.is_task() {
            gate.0.0.acquire().await.unwrap().forget();
        }
        Ok(())
    })
    .await?;
    Ok(format!("{}", ctx.is_task()))
}

#[derive(Clone)]
struct Gate(Arc<Semaphore>);

/// Returns at once, and never becomes a task.
#[tool]
async fn plain(ctx: &Ctx) -> Result<String, Error> {
    ctx.into_task().await?;
    Ok(String::new())
}

/// Tries to become a task inside of a step.
#[tool(task = "optional")]
async fn inside(ctx: &Ctx) -> Result<String, Error> {
    ctx.step("outer", async |_| {
        ctx.into_task().await?;
        Ok(())
    })
    .await?;
    Ok(String::new())
}

fn tools() -> (TaskClient, Log, Gate) {
    let (log, gate) = (Log::default(), Gate(Arc::new(Semaphore::new(0))));
    let client = client(|server| {
        server.state(log.clone()).state(gate.clone()).tool(provision).tool(work).tool(plain).tool(inside)
    });
    (client, log, gate)
}

/// Sends the second leg of a call.
async fn answered(client: &TaskClient, tool: &str, round: &Value, answers: Value) -> Value {
    let state = &round["result"]["requestState"];
    let params = json!({"name": tool, "arguments": {}, "requestState": state, "inputResponses": answers});
    client.send("tools/call", params).await
}

#[tokio::test(start_paused = true)]
async fn a_call_asks_becomes_a_task_and_asks_again() {
    let (client, log, _) = tools();
    let round = client.call("provision", json!({})).await;
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    let name = json!({"name": accept(json!({"name": "Anna"}))});
    let created = answered(&client, "provision", &round, name).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    assert!(created["result"].get("requestState").is_none(), "{created}");
    let id = created["result"]["taskId"].as_str().unwrap();
    client.asked(id, &["keep"]).await;
    client.update(id, json!({"keep": accept(json!({"keep": true}))})).await;
    assert_eq!(text_of(&client.status(id, "completed").await), "Anna true Task true");
    assert_eq!(log.take(), ["reserve", "create"]);
}

#[tokio::test(start_paused = true)]
async fn without_the_extension_the_call_stays_a_call() {
    let (client, log, _) = tools();
    let client = client.without_extension();
    let mut round = client.call("provision", json!({})).await;
    for answers in
        [json!({"name": accept(json!({"name": "Anna"}))}), json!({"keep": accept(json!({"keep": false}))})]
    {
        assert_eq!(round["result"]["resultType"], "input_required", "{round}");
        round = answered(&client, "provision", &round, answers).await;
    }
    assert_eq!(round["result"]["content"][0]["text"], "Anna false Sealed false", "{round}");
    assert_eq!(log.take(), ["reserve", "create"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_becomes_a_task_by_time_between_two_steps() {
    let (client, log, gate) = tools();
    let id = client.task("work", json!({"seconds": 11})).await;
    client.until(&id, |_| log.0.lock().unwrap().len() == 2).await;
    assert_eq!(client.get(&id).await["status"], "working");
    gate.0.add_permits(1);
    assert_eq!(text_of(&client.status(&id, "completed").await), "true");
    assert_eq!(log.take(), ["first", "second"]);
    // Quick calls stay calls.
    let reply = client.call("work", json!({"seconds": 1})).await;
    assert_eq!(reply["result"]["content"][0]["text"], "false", "{reply}");
    // So do those of clients that cannot take a task.
    let reply = client.without_extension().call("work", json!({"seconds": 20})).await;
    assert_eq!(reply["result"]["content"][0]["text"], "false", "{reply}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_without_tasks_says_so_and_a_step_cannot_become_one() {
    let (client, ..) = tools();
    let reply = client.call("plain", json!({})).await;
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    let reply = client.call("inside", json!({})).await;
    assert!(reply.get("error").is_some() || reply["result"]["isError"] == true, "{reply}");
}

#[tokio::test(start_paused = true)]
async fn the_same_leg_twice_is_the_same_task() {
    let (client, ..) = tools();
    let round = client.call("provision", json!({})).await;
    let name = json!({"name": accept(json!({"name": "Anna"}))});
    // As a client does that has lost the reply.
    let first = answered(&client, "provision", &round, name.clone()).await;
    let second = answered(&client, "provision", &round, name).await;
    assert_eq!(first["result"]["taskId"], second["result"]["taskId"]);
    let id = first["result"]["taskId"].as_str().unwrap();
    assert_eq!(keys_of(&client.asked(id, &["keep"]).await), ["keep"]);
}
