//! `notifications/tasks`: a subscription receives what `tasks/get` would return.

use crate::{
    client::{TaskClient, accept, client},
    common::lines,
};
use antiphon::{Error, Form, server::Ctx, tool};
use serde_json::{Value, json};

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

fn listen(ids: &[&str], declares: bool) -> String {
    let mut capabilities = json!({"elicitation": {}});
    if declares {
        capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let params = json!({"_meta": meta, "notifications": {"taskIds": ids}});
    json!({"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": params}).to_string()
}

async fn received(peer: &mut lines::Peer) -> Value {
    peer.receive().await.expect("a message")
}

#[tokio::test(start_paused = true)]
async fn a_subscription_receives_each_change_and_only_of_its_tasks() {
    let client: TaskClient = client(|server| server.tool(ask));
    let (id, other) = (client.task("ask", json!({})).await, client.task("ask", json!({})).await);
    let foreign = client.user("anna").task("ask", json!({})).await;
    client.asked(&id, &["name"]).await;
    let mut peer = lines::serve(client.server.clone(), 1 << 16);
    peer.send(listen(&[&id, &foreign, &"0".repeat(32), &id], true)).await;
    let acknowledged = received(&mut peer).await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"]["notifications"], json!({"taskIds": [id]}), "{acknowledged}");
    for status in ["input_required", "working", "completed"] {
        let heard = received(&mut peer).await;
        assert_eq!(heard["method"], "notifications/tasks", "{heard}");
        let mut task = heard["params"].clone();
        assert_eq!(task["_meta"], json!({"io.modelcontextprotocol/subscriptionId": 9}));
        assert_eq!((&task["taskId"], &task["status"]), (&json!(id), &json!(status)), "{task}");
        assert!(task.get("resultType").is_none(), "{task}");
        // The same as `tasks/get` says at this moment, but for the metadata of a result.
        let mut got = client.get(&id).await;
        if got["status"] == status {
            for name in ["_meta", "resultType"] {
                task.as_object_mut().unwrap().remove(name);
                got.as_object_mut().unwrap().remove(name);
            }
            assert_eq!(task, got);
        }
        if status == "input_required" {
            client.update(&other, json!({"name": accept(json!({"name": "Bert"}))})).await;
            client.update(&id, json!({"name": accept(json!({"name": "Anna"}))})).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_without_the_extension_may_not_listen() {
    let client = client(|server| server.tool(ask));
    let id = client.task("ask", json!({})).await;
    let mut peer = lines::serve(client.server.clone(), 1 << 16);
    peer.send(listen(&[&id], false)).await;
    let refused = received(&mut peer).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
}
