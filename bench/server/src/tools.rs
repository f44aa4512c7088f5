//! The tools. Those of `rmcp-server` have the same names, arguments and answers.

use antiphon::{
    Form, Result,
    server::{Answer, Ask, Ctx, NoArguments, Reply, Tool},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The number of progress notifications in one call.
const NOTIFICATIONS: u32 = 100;
const QUESTION: &str = "Which region should the database live in?";

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Database {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Records {
    records: Vec<Record>,
}

#[derive(Deserialize, JsonSchema)]
struct Record {
    id: u64,
    name: String,
    tags: Vec<String>,
}

/// The form that the person fills in.
#[derive(Deserialize, Form)]
struct Region {
    region: String,
}

/// The measured tools, and `more` that differ in their names only.
pub(crate) fn all(more: usize) -> impl Iterator<Item = Tool> {
    let measured = [
        Tool::new("echo", echo).description("Say it back."),
        Tool::new("provision", provision).description("Order a database."),
        Tool::new("provision_by_hand", provision_by_hand).description("Order a database."),
        Tool::new("progress", progress).description("Report progress."),
        Tool::new("text", text).description("Count the bytes of a text."),
        Tool::new("records", records).description("Add up records."),
    ];
    measured.into_iter().chain((0..more).map(one_more))
}

fn one_more(number: usize) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { "text": { "type": "string" } },
        "required": ["text"]
    });
    let run = async |_: &Ctx, arguments: Map<String, Value>| {
        arguments.get("text").and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    Tool::with_schema(format!("tool_{number}"), schema, run).description("Say it back.")
}

async fn echo(_: &Ctx, arguments: Text) -> String {
    arguments.text
}

/// One question, awaited.
async fn provision(ctx: &Ctx, arguments: Database) -> Result<String> {
    let answer = ctx.elicit::<Region>(QUESTION).outcome().await?;
    Ok(provisioned(&arguments.name, answer))
}

/// The same question, returned as `InputRequired`.
async fn provision_by_hand(ctx: &Ctx, arguments: Database) -> Result<Reply<String>> {
    let ask = Ask::of::<Region>("region", QUESTION);
    Ok(match ctx.by_hand().form::<Region>(&ask)? {
        None => ask.into(),
        Some(answer) => Reply::Complete(provisioned(&arguments.name, answer)),
    })
}

fn provisioned(name: &str, answer: Answer<Region>) -> String {
    match answer {
        Answer::Accept(Region { region }) => format!("Provisioned {name:?} in {region}."),
        Answer::Decline | Answer::Cancel => "Nothing was provisioned.".into(),
    }
}

/// Lets the connection send between two notifications, as a tool that works in between would.
async fn progress(ctx: &Ctx, _: NoArguments) -> &'static str {
    for step in 1..=NOTIFICATIONS {
        ctx.report_progress(f64::from(step), Some(f64::from(NOTIFICATIONS)), Some("working"));
        tokio::task::yield_now().await;
    }
    "done"
}

async fn text(_: &Ctx, arguments: Text) -> String {
    arguments.text.len().to_string()
}

async fn records(_: &Ctx, arguments: Records) -> String {
    let sum: u64 = arguments.records.iter().map(|record| record.id).sum();
    let named = arguments.records.iter().filter(|record| !record.name.is_empty()).count();
    let tags: usize = arguments.records.iter().map(|record| record.tags.len()).sum();
    format!("{named} records, {tags} tags, sum {sum}")
}
