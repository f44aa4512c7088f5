//! An answer that names a member twice is refused, or asked again in a session, and never ends its task.

use crate::{
    client::{TaskClient, accept, client, text_of},
    common::lines,
};
use antiphon::{Error, Form, server::Ctx, tool};
use serde_json::{Value, json};

#[derive(Form, serde::Serialize, serde::Deserialize)]
struct Name {
    /// Name
    name: String,
}

/// Greets somebody.
#[tool(task = "required")]
async fn greet(ctx: &Ctx) -> Result<String, Error> {
    let Name { name } = ctx.elicit("Whose?").await?;
    Ok(format!("Hello, {name}"))
}

fn server() -> TaskClient {
    client(|server| server.draft_tasks(true).tool(greet))
}

/// Answers that name a member twice, as text.
const TWICE: [&str; 8] = [
    r#""name":{"action":"decline","action":"decline"}"#,
    r#""name":{"action":"accept","content":{"name":"a"},"content":{"name":"a"}}"#,
    r#""name":{"action":"accept","content":{"name":"a","name":"b"}}"#,
    r#""name":{"action":"accept","content":{"name":"a"},"more":{"deep":[{"x":1,"x":1}]}}"#,
    r#""name":{"action":"accept","content":{"name":"a"},"_meta":{"n":1,"n":1}}"#,
    r#""name":{"action":"decline","\u0061ction":"accept"}"#,
    r#""name":{"action":"accept","content":{"name":"a"}},"name":{"action":"decline"}"#,
    // A key that nobody asks for.
    r#""other":{"action":"decline","action":"decline"}"#,
];

async fn check(client: &TaskClient, method: &str, answers: &str, declares: bool) {
    let id = client.task("greet", json!({})).await;
    let asked = client.asked(&id, &["name"]).await;
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    if declares {
        meta["io.modelcontextprotocol/clientCapabilities"]["extensions"] =
            json!({"io.modelcontextprotocol/tasks": {}});
    }
    let params = format!(r#"{{"_meta":{meta},"taskId":"{id}","inputResponses":{{{answers}}}}}"#);
    let refused = client.send_text(method, &params).await;
    assert_eq!(refused["error"]["code"], -32602, "{answers}: {refused}");
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(text.contains("duplicate member name"), "{answers}: {text}");
    // Nothing has happened: the question is open under its key.
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert_eq!(client.get(&id).await, asked, "{answers}");
    client.update(&id, json!({"name": accept(json!({"name": "Anna"}))})).await;
    assert_eq!(text_of(&client.status(&id, "completed").await), "Hello, Anna", "{answers}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_names_a_member_twice_is_refused() {
    let client = server();
    for answers in TWICE {
        check(&client, "tasks/update", answers, true).await;
        check(&client, "tasks/input_response", answers, false).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrapped_answer_that_names_a_member_twice_is_refused() {
    let client = server();
    for answers in [
        r#""name":{"result":{"action":"decline"},"result":{"action":"decline"}}"#,
        r#""name":{"result":{"action":"decline","action":"decline"}}"#,
        r#""name":{"result":{"action":"accept","content":{"name":"a","name":"b"}}}"#,
    ] {
        check(&client, "tasks/input_response", answers, false).await;
    }
}

/// A response of a session cannot be refused: its question is asked again.
#[tokio::test(start_paused = true)]
async fn a_response_that_names_a_member_twice_is_asked_again() {
    for answer in [
        r#"{"action":"decline","action":"decline"}"#,
        r#"{"action":"accept","content":{"name":"a"},"content":{"name":"a"}}"#,
        r#"{"action":"accept","content":{"name":"a","name":"b"}}"#,
        r#"{"action":"accept","content":{"name":"a"},"_meta":{"n":1,"n":1}}"#,
    ] {
        let mut peer = lines::serve(server().server, 1 << 16);
        let receive = async |peer: &mut lines::Peer| peer.receive().await.expect("a message");
        let request = |id: u32, method: &str, params: Value| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
        };
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "c", "version": "1"},
        });
        peer.send(request(1, "initialize", hello)).await;
        receive(&mut peer).await;
        peer.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()).await;
        peer.send(request(2, "tools/call", json!({"name": "greet", "arguments": {}, "task": {}}))).await;
        let created = receive(&mut peer).await;
        let id =
            created["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
        peer.send(request(3, "tasks/result", json!({"taskId": id}))).await;
        let mut answers = vec![answer.to_owned(), accept(json!({"name": "Anna"})).to_string()].into_iter();
        let done = loop {
            let message = receive(&mut peer).await;
            match message["method"].as_str() {
                Some("elicitation/create") => {
                    let answer = answers.next().expect("one question too many");
                    peer.send(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{answer}}}"#, message["id"]))
                        .await;
                }
                Some(_) => {}
                None => break message,
            }
        };
        assert_eq!(done["result"]["content"][0]["text"], "Hello, Anna", "{answer}: {done}");
    }
}
