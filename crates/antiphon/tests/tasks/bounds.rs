//! The bounds of tasks, each crossed: their number, in all and of one caller, their time, their failures, those that run at once,
//! their messages, and their open questions.

use crate::client::{TaskClient, accept, client, text_of};
use antiphon::{
    Error, Form,
    server::{Ctx, Limits, Server, State, StepError, TaskOptions},
    store::{MemoryTasks, StoreClock, TaskLimits, calls::Micros},
    tool,
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Semaphore;

#[derive(Clone, Default)]
struct Attempts(Arc<AtomicUsize>);

/// Waits for ever.
#[tool(task = "required")]
async fn wait() -> String {
    std::future::pending().await
}

/// Answers.
#[tool(task = "required")]
async fn answer() -> String {
    "42".to_owned()
}

/// Fails for now, each time.
#[tool(task = "required")]
async fn never_now(ctx: &Ctx, attempts: State<Attempts>) -> Result<String, Error> {
    ctx.step("fails", async |_| {
        attempts.0.0.fetch_add(1, Ordering::SeqCst);
        Err::<(), _>(StepError::retry("not now"))
    })
    .await?;
    Ok(String::new())
}

/// Becomes a task.
#[tool(task = "optional")]
async fn promoted(ctx: &Ctx) -> Result<String, Error> {
    ctx.into_task().await?;
    Ok("done".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_full_store_refuses_a_task_and_a_call_keeps_its_state() {
    let options = TaskOptions::default().limits(TaskLimits::default().tasks(1));
    let client = client(|server| server.task_options(options).tool(wait).tool(promoted));
    client.task("wait", json!({})).await;
    let refused = client.call("wait", json!({})).await;
    assert_eq!(refused["error"]["data"]["reason"], "busy", "{refused}");
    // A call that has begun comes back with its state.
    let round = client.call("promoted", json!({})).await;
    assert_eq!(round["result"]["resultType"], "input_required", "{round}");
    assert!(round["result"]["requestState"].is_string(), "{round}");
}

#[tokio::test(start_paused = true)]
async fn a_task_is_gone_after_its_time() {
    let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    let options = TaskOptions::default().ttl(Duration::from_secs(60)).keep(Duration::from_secs(120));
    let server = Server::builder("a", "1")
        .task_store(Arc::new(MemoryTasks::new().clock(clock)))
        .task_options(options)
        .tool(wait)
        .tool(answer);
    let client = TaskClient::of(server.build().unwrap());
    let (waits, done) = (client.task("wait", json!({})).await, client.task("answer", json!({})).await);
    let ended = client.status(&done, "completed").await;
    assert!(ended["ttlMs"].as_u64().unwrap() >= 120_000, "{ended}");
    let is_gone = async |id: &str| {
        client.send("tasks/get", json!({"taskId": id})).await["error"]["code"] == json!(-32602)
    };
    hand.advance(Duration::from_secs(59));
    assert!(!is_gone(&waits).await && !is_gone(&done).await);
    hand.advance(Duration::from_secs(2));
    // One that ended is kept for a while.
    assert!(is_gone(&waits).await && !is_gone(&done).await);
    hand.advance(Duration::from_secs(60));
    assert!(is_gone(&done).await);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_fails_for_now_fails_the_task_at_last() {
    let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    let attempts = Attempts::default();
    let server = Server::builder("a", "1")
        .task_store(Arc::new(MemoryTasks::new().clock(clock)))
        .state(attempts.clone())
        .tool(never_now);
    let client = TaskClient::of(server.build().unwrap());
    let id = client.task("never_now", json!({})).await;
    for _ in 0..20 {
        hand.advance(Duration::from_secs(16));
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let failed = client.status(&id, "failed").await;
    assert_eq!(failed["error"]["data"]["reason"], "step_failed", "{failed}");
    assert_eq!(attempts.0.load(Ordering::SeqCst), 5);
}

#[tokio::test(start_paused = true)]
async fn as_many_tasks_run_at_once_as_the_options_say() {
    let options = TaskOptions::default().running(1);
    let client = client(|server| server.task_options(options).tool(wait).tool(answer));
    let first = client.task("wait", json!({})).await;
    let second = client.task("answer", json!({})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(client.get(&second).await["status"], "working");
    client.cancel(&first).await;
    client.status(&first, "cancelled").await;
    assert_eq!(text_of(&client.status(&second, "completed").await), "42");
}

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// Asks three questions while a step runs.
#[tool(task = "required")]
async fn three(ctx: &Ctx, gate: State<Gate>) -> Result<String, Error> {
    let asks = (0..3_u32).map(|at| ctx.elicit::<Name>("Who?").nth(at));
    let step = ctx.step("work", async |_| {
        gate.0.0.acquire().await.unwrap().forget();
        Ok(())
    });
    let (names, done) = tokio::join!(ctx.join_all(asks), step);
    done?;
    let names: Result<Vec<_>, _> = names.into_iter().collect();
    Ok(names?.into_iter().map(|name| name.name).collect())
}

#[derive(Clone)]
struct Gate(Arc<Semaphore>);

fn asking(options: TaskOptions, asks: usize) -> (TaskClient, Gate) {
    let gate = Gate(Arc::new(Semaphore::new(0)));
    let client = client(|server| {
        let limits = Limits::default().asks(asks);
        server.task_options(options).limits(limits).state(gate.clone()).tool(three).tool(wait)
    });
    (client, gate)
}

fn name(name: &str) -> Value {
    accept(json!({"name": name}))
}

#[tokio::test(start_paused = true)]
async fn one_caller_leaves_room_for_others() {
    let options = TaskOptions::default().limits(TaskLimits::default().tasks_of_owner(1));
    let (client, _) = asking(options, 64);
    let (anna, bert) = (client.user("anna"), client.user("bert"));
    let id = anna.task("wait", json!({})).await;
    assert_eq!(anna.call("wait", json!({})).await["error"]["data"]["reason"], "busy");
    bert.task("wait", json!({})).await;
    // A task that is over does not count.
    anna.cancel(&id).await;
    anna.status(&id, "cancelled").await;
    anna.task("wait", json!({})).await;
}

/// Waits for ever, with a text.
#[tool(task = "required")]
async fn wait_with(text: String) -> String {
    std::future::pending::<()>().await;
    text
}

/// The tasks in memory of all anonymous callers have a quarter of the bytes, and those of one principal have as much.
#[tokio::test(start_paused = true)]
async fn the_bytes_of_one_caller_leave_room_for_others() {
    // The defaults, divided by 64, and space for one task: tests seal slowly.
    let store = MemoryTasks::new().max_bytes((1 << 20) + 25_600).max_bytes_of_owner(1 << 18);
    let client = client(|server| server.task_store(Arc::new(store)).tool(wait_with).tool(wait));
    let long = || json!({"text": "x".repeat(1 << 14)});
    let mut ids = Vec::new();
    for (user, expected) in [
        (None, 10),
        (Some("anna"), 10),
        (Some("bert"), 10),
        (Some("cora"), 10),
        // The rest of all.
        (Some("dora"), 1),
        (None, 0),
    ] {
        let of_user = user.map_or_else(|| TaskClient::of(client.server.clone()), |user| client.user(user));
        let mut created = 0;
        for _ in 0..14 {
            let reply = of_user.call("wait_with", long()).await;
            match reply["result"]["taskId"].as_str() {
                Some(id) => {
                    created += 1;
                    ids.push((user, id.to_owned()));
                }
                None => assert_eq!(reply["error"]["data"]["reason"], "busy", "{reply}"),
            }
        }
        assert_eq!(created, expected, "{user:?}");
    }
    // A full memory takes a cancellation.
    for (user, id) in ids {
        let of_user = user.map_or_else(|| TaskClient::of(client.server.clone()), |user| client.user(user));
        of_user.cancel(&id).await;
        of_user.status(&id, "cancelled").await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_of_a_task_is_bounded() {
    for (limits, answer) in [
        (TaskLimits::default().messages(1), "Bert".to_owned()),
        (TaskLimits::default().message_bytes(4096), "Bert".repeat(1000)),
    ] {
        let (client, gate) = asking(TaskOptions::default().limits(limits), 64);
        let id = client.task("three", json!({})).await;
        client.asked(&id, &["name#0", "name#1", "name#2"]).await;
        // A step runs, so that the answers wait.
        client.update(&id, json!({"name#0": name("Anna")})).await;
        let answers = json!({"name#1": name(&answer)});
        let refused = client.send("tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
        assert_eq!(refused["error"]["data"]["reason"], "busy", "{refused}");
        // The question is still open.
        client.asked(&id, &["name#1", "name#2"]).await;
        gate.0.add_permits(1);
        for (key, text) in [("name#1", "B"), ("name#2", "C")] {
            // Now the answer before is taken at once.
            tokio::time::sleep(Duration::from_secs(1)).await;
            client.update(&id, json!({key: name(text)})).await;
        }
        assert_eq!(text_of(&client.status(&id, "completed").await), "AnnaBC");
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_takes_a_cancellation() {
    for limits in [TaskLimits::default().messages(1), TaskLimits::default().message_bytes(700)] {
        let (client, gate) = asking(TaskOptions::default().limits(limits), 64);
        let id = client.task("three", json!({})).await;
        client.asked(&id, &["name#0", "name#1", "name#2"]).await;
        client.update(&id, json!({"name#0": name("Anna")})).await;
        let answers = json!({"name#1": name(&"Bert".repeat(100))});
        let refused = client.send("tasks/update", json!({"taskId": id, "inputResponses": answers})).await;
        assert_eq!(refused["error"]["data"]["reason"], "busy", "{refused}");
        client.cancel(&id).await;
        // The same again changes nothing.
        client.cancel(&id).await;
        gate.0.add_permits(1);
        client.status(&id, "cancelled").await;
    }
}

/// The limit of open questions holds also while a step runs, before the round is there.
#[tokio::test(start_paused = true)]
async fn as_many_questions_are_open_as_the_limits_say() {
    let (client, gate) = asking(TaskOptions::default(), 2);
    let id = client.task("three", json!({})).await;
    client.until(&id, |task| task["status"] == "input_required").await;
    client.asked(&id, &["name#0", "name#1"]).await;
    gate.0.add_permits(1);
    client.update(&id, json!({"name#0": name("A"), "name#1": name("B")})).await;
    client.asked(&id, &["name#2"]).await;
    client.update(&id, json!({"name#2": name("C")})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "ABC");
}
