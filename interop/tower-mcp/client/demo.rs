//! Checks of calls that ask in rounds: tools, a prompt and a resource of `antiphon serve-demo`.

use crate::{
    check::{Check, CheckResult, Unsupported, checks, expect_equal},
    connection::Target,
    tasks::{accept, text_of},
};
use serde_json::{Value, json};

pub(crate) const CHECKS: &[Check] = checks! { "2026-07-28":
    "tools/list" => tools,
    "echo" => echo,
    "provision, accept" => accepted,
    "provision, decline" => declined,
    "provision, cancel" => cancelled,
    "update_work_item, two rounds, accept" => two_rounds,
    "briefing, accept" => prompt,
    "report://q3, accept" => resource,
};

pub(crate) const UNSUPPORTED: &[Unsupported] =
    &[("2026-07-28", "rounds of state only", "its client takes a round without questions as an error")];

const REGION: &str = "Which region should the database live in?";

async fn tools(target: &Target) -> CheckResult {
    let ours = target.client_without_tasks(&[]).await?;
    let listed = ours.client.list_all_tools().await?;
    expect_equal(listed.iter().filter(|tool| tool.name == "provision").count(), 1)
}

async fn echo(target: &Target) -> CheckResult {
    let ours = target.client_without_tasks(&[]).await?;
    text_of(&ours.client, "echo", json!({"text": "Grüße, \"you\"\n😀"}), "Grüße, \"you\"\n😀").await
}

async fn provision(target: &Target, answer: Value) -> Result<String, crate::error::AnyError> {
    let ours = target.client_without_tasks(&[(REGION, answer)]).await?;
    let result = ours.client.call_tool("provision", json!({"name": "orders"})).await?;
    expect_equal(ours.asked(), vec![REGION.to_owned()])?;
    Ok(result.all_text())
}

async fn accepted(target: &Target) -> CheckResult {
    let text = provision(target, accept(json!({"region": "eu-west-1"}))).await?;
    if text.contains("eu-west-1") { Ok(()) } else { Err(text.into()) }
}

async fn declined(target: &Target) -> CheckResult {
    let text = provision(target, json!({"action": "decline"})).await?;
    if text.contains("eu-west-1") { Err(text.into()) } else { Ok(()) }
}

async fn cancelled(target: &Target) -> CheckResult {
    let text = provision(target, json!({"action": "cancel"})).await?;
    if text.contains("eu-west-1") { Err(text.into()) } else { Ok(()) }
}

async fn two_rounds(target: &Target) -> CheckResult {
    let resolution = "Resolving Bug #4522 requires a resolution. How was this bug resolved?";
    let original = "Since this is a duplicate, which work item is the original?";
    let answers = [
        (resolution, accept(json!({"resolution": "Duplicate"}))),
        (original, accept(json!({"duplicateOfId": 4301}))),
    ];
    let ours = target.client_without_tasks(&answers).await?;
    let arguments = json!({"workItemId": 4522, "fields": {"System.State": "Resolved"}});
    let text =
        "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.";
    text_of(&ours.client, "update_work_item", arguments, text).await?;
    expect_equal(ours.asked(), vec![resolution.to_owned(), original.to_owned()])
}

async fn prompt(target: &Target) -> CheckResult {
    let answer = accept(json!({"audience": "the board"}));
    let ours = target.client_without_tasks(&[("Who is the briefing for?", answer)]).await?;
    let arguments = [("topic".to_owned(), "rust".to_owned())].into();
    let result = serde_json::to_value(ours.client.get_prompt("briefing", Some(arguments)).await?)?;
    let text = result["messages"][0]["content"]["text"].as_str();
    expect_equal(text, Some("Write a briefing on rust for the board."))
}

async fn resource(target: &Target) -> CheckResult {
    let answer = accept(json!({"audience": "engineers"}));
    let ours = target.client_without_tasks(&[("Who will read report q3?", answer)]).await?;
    let result = ours.client.read_resource("report://q3").await?;
    expect_equal(result.first_text(), Some("Report q3, for engineers: all is well."))
}
