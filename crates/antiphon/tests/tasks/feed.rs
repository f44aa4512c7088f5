//! The feed of changes: a subscription receives the states of a task that another instance runs.

use crate::{
    client::{TaskClient, accept, client},
    common::lines,
};
use antiphon::{
    Error, Form,
    server::Ctx,
    store::{CallStore as _, MemoryStore, SqliteOptions, SqliteStore, TaskStore, changes::ChangeFeed},
    tool,
};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// Asks for a name.
#[tool(task = "required")]
async fn ask(ctx: &Ctx) -> Result<String, Error> {
    let Name { name } = ctx.elicit("Whose?").await?;
    Ok(name)
}

fn instance(tasks: &Arc<dyn TaskStore>, feed: Option<&Arc<dyn ChangeFeed>>) -> TaskClient {
    client(|server| {
        let server = server.tool(ask).keys(ring()).task_store(Arc::clone(tasks)).single_instance(true);
        match feed {
            Some(feed) => server.change_feed(Arc::clone(feed)),
            None => server,
        }
    })
}

fn ring() -> antiphon::seal::KeyRing {
    antiphon::seal::KeyRing::new(vec![antiphon::seal::SecretKey::from_bytes([7; 32])]).unwrap()
}

/// Subscribes to tasks.
async fn listen(client: &TaskClient, ids: &[&str]) -> lines::Peer {
    let capabilities = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let params = json!({"_meta": meta, "notifications": {"taskIds": ids}});
    let mut peer = lines::serve(client.server.clone(), 1 << 16);
    let message = json!({"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": params});
    peer.send(message.to_string()).await;
    peer
}

async fn received(peer: &mut lines::Peer) -> Value {
    peer.receive().await.expect("a message")
}

/// Over a store of one process the engine never says that other processes may have changed a task: only the feed does.
#[tokio::test(start_paused = true)]
async fn a_subscription_receives_states_from_another_instance() {
    let folder = crate::common::folder::Folder::new("feed-tasks");
    let (memory, open) =
        (MemoryStore::new(), || SqliteStore::open(folder.path("calls.db"), SqliteOptions::default()));
    let (first, second) = (open().await.unwrap(), open().await.unwrap());
    for (name, stores) in [
        ("memory", [(memory.tasks(), memory.change_feed()), (memory.tasks(), memory.change_feed())]),
        ("sqlite", [(first.tasks(), first.change_feed()), (second.tasks(), second.change_feed())]),
    ] {
        let [here, there] = stores.map(|(tasks, feed)| instance(&tasks.unwrap(), feed.as_ref()));
        let id = here.task("ask", json!({})).await;
        let foreign = here.user("anna").task("ask", json!({})).await;
        here.asked(&id, &["name"]).await;
        let mut peer = listen(&there, &[&id, &foreign]).await;
        // Only tasks of the caller are watched: here, as without a feed.
        let acknowledged = received(&mut peer).await;
        assert_eq!(acknowledged["params"]["notifications"], json!({"taskIds": [id]}), "{name}");
        let first = received(&mut peer).await;
        assert_eq!(first["params"]["status"], "input_required", "{name}: {first}");
        here.update(&id, json!({"name": accept(json!({"name": "Anna"}))})).await;
        loop {
            let heard = received(&mut peer).await;
            assert_eq!(
                (&heard["method"], &heard["params"]["taskId"]),
                (&json!("notifications/tasks"), &json!(id))
            );
            if heard["params"]["status"] == "completed" {
                break;
            }
        }
    }
}

/// The name of a task is its secret: the feed has its digest.
#[tokio::test(start_paused = true)]
async fn the_feed_has_no_name_of_a_task() {
    let memory = MemoryStore::new();
    let feed = memory.change_feed().unwrap();
    let here = instance(&memory.tasks().unwrap(), Some(&feed));
    let mut watch = feed.watch(antiphon::store::changes::ChangeChannel::of("tasks")).await.unwrap();
    let id = here.task("ask", json!({})).await;
    here.asked(&id, &["name"]).await;
    here.server.changes_published().await;
    let message = watch.next().await.unwrap();
    assert!(message.contains(" t") && !message.contains(&id), "{message} has {id}");
}

/// A process that is frozen between its requests drains from its beginning: it creates tasks, and an ordinary instance runs them.
#[tokio::test(start_paused = true)]
async fn a_function_leaves_its_tasks_to_an_ordinary_instance() {
    let memory = MemoryStore::new();
    let function = instance(&memory.tasks().unwrap(), None);
    function.server.drain();
    let id = function.task("ask", json!({})).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let waiting = function.get(&id).await;
    assert_eq!((&waiting["status"], waiting.get("inputRequests")), (&json!("working"), None), "{waiting}");
    let _ordinary = instance(&memory.tasks().unwrap(), None);
    function.asked(&id, &["name"]).await;
    function.update(&id, json!({"name": accept(json!({"name": "Anna"}))})).await;
    let done = function.status(&id, "completed").await;
    assert_eq!(crate::client::text_of(&done), "Anna");
}
