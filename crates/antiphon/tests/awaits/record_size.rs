//! Size of the record of a call.

use crate::common::tool_call::*;
use crate::common::*;
use antiphon::{
    Form, Result,
    server::{Ctx, NoArguments, Server, Tool},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, Form)]
struct Text {
    text: String,
}

#[derive(Deserialize, Serialize)]
struct Database {
    id: String,
    region: String,
    euros: u32,
}

fn server(tool: Tool) -> Server {
    Server::builder("size", "1").tool(tool).keys(ring(7)).build().unwrap()
}

/// Nine rounds, and thirty steps between them.
async fn long(ctx: &Ctx, _: NoArguments) -> Result<String> {
    let mut text = String::new();
    for round in 0..9 {
        let answer: Text = ctx.elicit(format!("What about part {round}?")).nth(round).await?;
        let steps = if round < 3 { 4 } else { 3 };
        for step in 0..steps {
            let made: Database = ctx
                .step(("create", round * 10 + step), async |s| {
                    Ok(Database { id: s.key().to_owned(), region: answer.text.clone(), euros: 40 })
                })
                .await?;
            text.push_str(&made.id[..1]);
        }
    }
    Ok(format!("{} steps", text.len()))
}

#[tokio::test]
async fn nine_rounds_with_thirty_steps_take_less_than_16_kib() {
    let server = server(Tool::new("t", long));
    let mut talk = ToolCall::new(json!({}));
    let (mut given, mut sizes) = (Value::Null, Vec::new());
    let reply = loop {
        let reply = talk.leg(&server, given).await;
        if reply["result"]["resultType"] != "input_required" {
            break reply;
        }
        sizes.push(talk.state.as_ref().unwrap().len());
        let key = talk.rounds.last().unwrap()[0].clone();
        given = json!({ key: accept(json!({"text": "eu-west-1, for the customers of the north"})) });
    };
    assert_eq!(result_text(&reply), "30 steps");
    assert_eq!(talk.rounds.len(), 9);
    assert!(sizes.iter().all(|size| *size < 16 * 1024), "{sizes:?}");
    // It grows with what is recorded, not faster: 30 steps and 9 answers of about 140 bytes each.
    let (first, last) = (sizes[0], sizes[8]);
    assert!(last - first < 2 * 4 / 3 * 39 * 200, "{sizes:?}");
}

#[tokio::test]
async fn an_answer_in_any_script_grows_the_token_by_its_own_size_and_half_of_it_at_most() {
    async fn two(ctx: &Ctx, _: NoArguments) -> Result<String> {
        let first: Text = ctx.elicit("First?").key("first").await?;
        let second: Text = ctx.elicit("Second?").key("second").await?;
        Ok(format!("{}{}", first.text, second.text))
    }
    let server = server(Tool::new("t", two));
    for letter in ["a", "é", "漢", "🎻", "\"", "\u{1}"] {
        let mut sizes = [0, 0];
        for (at, length) in [0, 1000].into_iter().enumerate() {
            let mut talk = ToolCall::new(json!({}));
            talk.leg(&server, Value::Null).await;
            talk.leg(&server, json!({"first": accept(json!({"text": letter.repeat(length)}))})).await;
            assert_eq!(talk.rounds, [["first"], ["second"]]);
            sizes[at] = talk.state.unwrap().len();
        }
        let json = serde_json::to_string(&letter.repeat(1000)).unwrap().len() - 2;
        let grown = sizes[1] - sizes[0];
        assert!(grown * 2 <= json * 3, "{letter:?}: {grown} for {json}");
    }
}
