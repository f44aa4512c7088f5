//! The reply that creates a task: a process stops after the task was created, and before its reply is stored.

use crate::{
    client::{TaskClient, accept, text_of},
    common::late_store::{LateStore, Moment},
};
use antiphon::{
    Error, Form,
    seal::{KeyRing, SecretKey},
    server::{Ctx, Server},
    store::{CallStore, MemoryStore, StoreClock, calls::Micros},
    tool,
};
use serde_json::json;
use std::{sync::Arc, time::Duration};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// Asks, and becomes a task.
#[tool(task = "optional", write_ahead)]
async fn promoted(ctx: &Ctx) -> Result<String, Error> {
    let Name { name } = ctx.elicit("Whose?").await?;
    ctx.into_task().await?;
    let letters: usize = ctx.step("count", async |_| Ok(name.len())).reconcile(async |_| Ok(None)).await?;
    Ok(format!("{name} {letters}"))
}

/// The store of a process that stops before a reply is stored.
fn stopped(store: Arc<MemoryStore>) -> Arc<dyn CallStore> {
    LateStore::new(store, async |moment| {
        if matches!(moment, Moment::BeforeRenew | Moment::BeforeCommit | Moment::BeforeRelease) {
            std::future::pending().await
        }
    })
}

fn client(store: Arc<dyn CallStore>) -> TaskClient {
    let server = Server::builder("tasks", "1.0")
        .keys(KeyRing::new(vec![SecretKey::from_bytes([7; 32])]).unwrap())
        .store(store)
        .single_instance(true)
        .tool(promoted);
    TaskClient::of(server.build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_task_waits_for_the_reply_that_creates_it() {
    let (clock, hand) = StoreClock::manual(Micros::new(1_800_000_000_000_000));
    let store = Arc::new(MemoryStore::new().clock(clock));
    let (first, second) = (client(stopped(Arc::clone(&store))), client(store));
    let round = second.call("promoted", json!({})).await;
    let state = &round["result"]["requestState"];
    let answers = json!({"name": accept(json!({"name": "Anna"}))});
    let leg = json!({"name": "promoted", "arguments": {}, "requestState": state, "inputResponses": answers});
    let stops = first.send("tools/call", leg.clone());
    assert!(tokio::time::timeout(Duration::from_secs(5), stops).await.is_err());
    drop(first);
    hand.advance(Duration::from_secs(31));
    // The other process finds the task, and that its creation has no reply.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let created = second.send("tools/call", leg).await;
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let id = created["result"]["taskId"].as_str().unwrap();
    for _ in 0..10 {
        hand.advance(Duration::from_secs(2));
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(text_of(&second.status(id, "completed").await), "Anna 4");
}

/// The reply that creates the task is lost, and the task has gone on when the same request comes again.
#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_sent_again_after_the_task_has_gone_on() {
    let client = client(Arc::new(MemoryStore::new()));
    let round = client.call("promoted", json!({})).await;
    let state = &round["result"]["requestState"];
    let leg = |name: &str| {
        let answers = json!({"name": accept(json!({"name": name}))});
        json!({"name": "promoted", "arguments": {}, "requestState": state, "inputResponses": answers})
    };
    let created = client.send("tools/call", leg("Anna")).await;
    let id = created["result"]["taskId"].as_str().unwrap();
    assert_eq!(text_of(&client.status(id, "completed").await), "Anna 4");
    let again = client.send("tools/call", leg("Anna")).await;
    assert_eq!(again["result"]["resultType"], "task", "{again}");
    assert_eq!(again["result"]["taskId"], id, "{again}");
    // Other answers, or a client that cannot take a task.
    for reply in [
        client.send("tools/call", leg("Berta")).await,
        client.without_extension().send("tools/call", leg("Anna")).await,
    ] {
        assert_eq!(reply["error"]["data"]["reason"], "used", "{reply}");
    }
}
