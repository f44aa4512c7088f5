//! The store of tasks sees sealed values only.

use crate::client::{accept, client, text_of};
use antiphon::{
    Error, Form,
    server::Ctx,
    store::{MemoryTasks, TaskStore, tasks::TaskKey},
    tool,
};
use serde_json::json;
use std::sync::Arc;

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// Greets somebody.
#[tool(task = "required")]
async fn greet(ctx: &Ctx, greeting: String) -> Result<String, Error> {
    let Name { name } = ctx.elicit("Whose?").await?;
    ctx.elicit::<Name>("And whose?").key("other").await?;
    Ok(format!("{greeting}, {name}"))
}

#[tokio::test(start_paused = true)]
async fn a_row_holds_no_plain_text() {
    let store = Arc::new(MemoryTasks::new());
    let client = client(|server| server.task_store(store.clone()).tool(greet)).user("anna-the-user");
    let id = client.task("greet", json!({"greeting": "salutations"})).await;
    let mut key = [0; 16];
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap();
    }
    let key = TaskKey::from_bytes(key);
    client.asked(&id, &["name"]).await;
    client.update(&id, json!({"name": accept(json!({"name": "Bartholomew"}))})).await;
    let mut rows = vec![store.load(key).await.unwrap().unwrap()];
    client.asked(&id, &["other"]).await;
    client.update(&id, json!({"other": accept(json!({"name": "Clementine"}))})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "salutations, Bartholomew");
    rows.push(store.load(key).await.unwrap().unwrap());
    assert!(!rows[0].messages.is_empty() && rows[1].is_final);
    for bytes in rows.iter().flat_map(|row| {
        row.messages.iter().map(|message| &*message.body).chain([&*row.snapshot]).collect::<Vec<_>>()
    }) {
        let text = String::from_utf8_lossy(bytes);
        for secret in ["salutations", "Bartholomew", "anna-the-user", "Whose", "greet", "content"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}
