//! The view of an operator: one trace for each task, counts, and a log without secrets.

use crate::{
    client::{TaskClient, accept, client, text_of},
    common::log::take_log,
};
use antiphon::{
    Error, Form,
    seal::{KeyRing, SecretKey},
    server::{Ctx, Server, State, StepError},
    store::{MemoryStore, StoreClock, calls::Micros},
    tool,
};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const ARGUMENT: &str = "salutations";
const ANSWER: &str = "Bartholomew";
const STEP: &str = "Clementine";

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// True if the step fails for now.
#[derive(Clone, Default)]
struct Fails(Arc<AtomicBool>);

/// Greets somebody, and says which trace it belongs to.
#[tool(task = "required")]
async fn greet(ctx: &Ctx, greeting: String, fails: State<Fails>) -> Result<String, Error> {
    let before = ctx.trace_context().map(|trace| trace.traceparent().to_owned());
    let Name { name } = ctx.elicit(format!("Who gets {greeting}?")).await?;
    let helper: String = ctx
        .step("help", async |_| {
            if fails.0.0.load(Ordering::SeqCst) {
                return Err(StepError::retry(format!("not now, {STEP}")));
            }
            Ok(STEP.to_owned())
        })
        .await?;
    let after = ctx.trace_context();
    let state = after.and_then(|trace| trace.tracestate()).unwrap_or_default().to_owned();
    assert_eq!(before.as_deref(), after.map(|trace| trace.traceparent()));
    Ok(format!("{greeting} {name} {helper} {} {state}", before.unwrap_or_default()))
}

fn traced() -> serde_json::Value {
    let meta = json!({"traceparent": PARENT, "tracestate": "vendor=1"});
    json!({"name": "greet", "arguments": {"greeting": ARGUMENT}, "_meta": meta})
}

#[test]
fn all_legs_of_a_task_are_one_trace_in_every_process() {
    let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    let store = Arc::new(MemoryStore::new().clock(clock));
    let process = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.unwrap();
        let entered = runtime.enter();
        let server = Server::builder("fleet", "1")
            .keys(KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap())
            .store(store.clone())
            .single_instance(true)
            .state(Fails::default())
            .tool(greet)
            .build()
            .unwrap();
        drop(entered);
        (runtime, TaskClient::of(server))
    };
    let ((first, client), (second, other)) = (process(), process());
    take_log();
    let id = first.block_on(async {
        let reply = client.send("tools/call", traced()).await;
        let id = reply["result"]["taskId"].as_str().unwrap().to_owned();
        client.asked(&id, &["name"]).await;
        id
    });
    hand.advance(Duration::from_secs(60));
    let log = take_log();
    let span = format!(" task={id} tool=\"greet\" traceparent=\"{PARENT}\"");
    assert!(log.contains(&span), "{span} in {log}");
    second.block_on(async {
        // The request with the answer belongs to another trace.
        let meta = json!({"traceparent": PARENT.replace("0af7", "ffff")});
        let answers = json!({"name": accept(json!({"name": ANSWER}))});
        other.send("tasks/update", json!({"taskId": id, "inputResponses": answers, "_meta": meta})).await;
        let done = other.status(&id, "completed").await;
        assert_eq!(text_of(&done), format!("{ARGUMENT} {ANSWER} {STEP} {PARENT} vendor=1"));
    });
    let log = take_log();
    assert!(log.contains(&span), "{span} in {log}");
}

/// The log names each event of a task, and holds neither arguments nor questions, answers, results or states.
#[tokio::test(start_paused = true)]
async fn the_log_of_a_task_holds_no_secret() {
    let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    let fails = Fails::default();
    let client = client(|server| {
        server.store(MemoryStore::new().clock(clock)).single_instance(true).state(fails.clone()).tool(greet)
    })
    .user("anna-the-user");
    for (fate, status) in [
        ("answered", "completed"),
        ("declined", "completed"),
        ("wrong", "failed"),
        ("fails", "failed"),
        ("cancelled", "cancelled"),
    ] {
        take_log();
        let id = client.task("greet", json!({"greeting": ARGUMENT})).await;
        client.asked(&id, &["name"]).await;
        fails.0.store(fate == "fails", Ordering::SeqCst);
        let answer = json!({"name": accept(json!({"name": ANSWER}))});
        match fate {
            "declined" => client.update(&id, json!({"name": {"action": "decline"}})).await,
            "cancelled" => client.cancel(&id).await,
            "wrong" => {
                for key in ["name", "name~2", "name~3"] {
                    client.asked(&id, &[key]).await;
                    client.update(&id, json!({key: accept(json!({"name": [ANSWER]}))})).await;
                }
            }
            _ => client.update(&id, answer).await,
        }
        for _ in 0..40 {
            hand.advance(Duration::from_secs(16));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        client.status(&id, status).await;
        let log = take_log();
        assert!(log.contains(&id), "{fate}: {log}");
        // The cause of a failed step is the author's text, and is logged.
        let secrets = [ARGUMENT, ANSWER, "anna-the-user", "Who gets", "requestState", "r1."];
        let step = (fate != "fails").then_some(STEP);
        for secret in secrets.into_iter().chain(step) {
            assert!(!log.contains(secret), "{fate}: {secret} in {log}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_are_counted() {
    let client = client(|server| server.state(Fails::default()).tool(greet));
    let metrics = || client.server.task_metrics();
    assert_eq!(metrics(), antiphon::server::operations::TaskMetrics::default());
    let answered = client.task("greet", json!({"greeting": "a"})).await;
    let cancelled = client.task("greet", json!({"greeting": "b"})).await;
    for id in [&answered, &cancelled] {
        client.asked(id, &["name"]).await;
    }
    let counts = metrics();
    assert_eq!((counts.created, counts.legs, counts.running, counts.messages), (2, 2, 0, 0), "{counts:?}");
    client.update(&answered, json!({"name": accept(json!({"name": 7}))})).await;
    client.asked(&answered, &["name~2"]).await;
    client.update(&answered, json!({"name~2": accept(json!({"name": "Anna"}))})).await;
    client.status(&answered, "completed").await;
    client.cancel(&cancelled).await;
    client.status(&cancelled, "cancelled").await;
    let wrong = client.task("greet", json!({})).await;
    client.status(&wrong, "completed").await;
    let counts = metrics();
    assert_eq!(
        (counts.created, counts.completed, counts.cancelled, counts.failed),
        (3, 2, 1, 0),
        "{counts:?}"
    );
    // Three legs of the first task, two of the second, and one that could not begin.
    assert_eq!(
        (counts.legs, counts.messages, counts.failed_legs, counts.lost_claims),
        (6, 3, 0, 0),
        "{counts:?}"
    );
}
