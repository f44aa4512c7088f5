//! Checks of tasks of 2026-07-28.

use crate::{
    check::{Check, CheckResult, checks, expect_equal},
    connection::Target,
    error::AnyError,
};
use serde_json::{Value, json};
use tower_mcp::{
    Error, InputResponses,
    client::{McpClient, TaskAwareCallToolOutcome},
    protocol::{SubscriptionFilter, TaskStatus},
    tasks::DetailedTask,
};

pub(crate) const CHECKS: &[Check] = checks! { "2026-07-28":
    "task: a tool without tasks answers at once" => at_once,
    "task: followed by call_tool" => followed,
    "task: the error of its tool completes it" => tool_error,
    "task: the error of its request fails it" => request_error,
    "task: a question is asked once, and answered" => answered,
    "task: a question is declined" => declined,
    "task: two questions wait at once" => two_questions,
    "task: a round comes before it" => round_first,
    "task: cancelled while it runs" => cancelled,
    "task: left, and continued by another client" => continued,
    "task: read and answered by hand" => by_hand,
    "task: its changes reach a subscription" => reported,
    "task: an unknown id" => unknown_id,
    "task: a client that did not declare the extension" => undeclared,
};

pub(crate) fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// Checks the code of an error response.
fn refused<T>(reply: Result<T, Error>, code: i32) -> CheckResult {
    match reply {
        Ok(_) => Err("not refused".into()),
        Err(Error::JsonRpc(error)) => expect_equal(error.code, code),
        Err(other) => Err(other.into()),
    }
}

/// The id of the task that a call has become.
async fn begin(client: &McpClient, tool: &str, arguments: Value) -> Result<String, AnyError> {
    match client.call_tool_once_task_aware(tool, arguments, None, None).await? {
        TaskAwareCallToolOutcome::Task(created) => Ok(created.task.metadata.task_id),
        other => Err(format!("no task: {other:?}").into()),
    }
}

/// Makes a whole call, and compares the text of its result.
pub(crate) async fn text_of(client: &McpClient, tool: &str, arguments: Value, text: &str) -> CheckResult {
    let result = client.call_tool(tool, arguments).await?;
    expect_equal((result.first_text(), result.is_error), (Some(text), false))
}

async fn at_once(target: &Target) -> CheckResult {
    let ours = target.client(&[]).await?;
    match ours.client.call_tool_once_task_aware("greet", json!({"name": "Ada"}), None, None).await? {
        TaskAwareCallToolOutcome::Complete(result) => expect_equal(result.first_text(), Some("Hello, Ada!")),
        other => Err(format!("not complete: {other:?}").into()),
    }
}

async fn followed(target: &Target) -> CheckResult {
    let ours = target.client(&[]).await?;
    let arguments = json!({"seconds": 1, "label": "short"});
    text_of(&ours.client, "slow_compute", arguments, "short: computed for 1 s").await
}

async fn tool_error(target: &Target) -> CheckResult {
    let ours = target.client(&[]).await?;
    let result = ours.client.call_tool("failing_job", json!({})).await?;
    expect_equal((result.first_text(), result.is_error), (Some("the job failed"), true))
}

async fn request_error(target: &Target) -> CheckResult {
    let ours = target.client(&[]).await?;
    refused(ours.client.call_tool("protocol_error_job", json!({})).await, -32603)
}

async fn answered(target: &Target) -> CheckResult {
    let ours = target.client(&[("Delete a.txt?", accept(json!({"confirm": true})))]).await?;
    text_of(&ours.client, "confirm_delete", json!({"filename": "a.txt"}), "deleted a.txt").await?;
    expect_equal(ours.asked(), vec!["Delete a.txt?".to_owned()])
}

async fn declined(target: &Target) -> CheckResult {
    let ours = target.client(&[("Delete a.txt?", json!({"action": "decline"}))]).await?;
    let result = ours.client.call_tool("confirm_delete", json!({"filename": "a.txt"})).await?;
    expect_equal((result.is_error, ours.asked()), (true, vec!["Delete a.txt?".to_owned()]))
}

async fn two_questions(target: &Target) -> CheckResult {
    let name = ("What is your name?", accept(json!({"name": "Ada"})));
    let confirm = ("Do you confirm?", accept(json!({"confirm": true})));
    let ours = target.client(&[name, confirm]).await?;
    text_of(&ours.client, "multi_input", json!({}), "Ada: true").await?;
    expect_equal(ours.asked().len(), 2)
}

async fn round_first(target: &Target) -> CheckResult {
    let ours = target.client(&[("What is your name?", accept(json!({"name": "Ada"})))]).await?;
    text_of(&ours.client, "test_tool_with_task", json!({}), "Hello, Ada!").await?;
    expect_equal(ours.asked(), vec!["What is your name?".to_owned()])
}

async fn cancelled(target: &Target) -> CheckResult {
    let ours = target.client(&[]).await?;
    let id = begin(&ours.client, "slow_compute", json!({"seconds": 3600, "label": "long"})).await?;
    ours.client.task_cancel(&id, None).await?;
    expect_equal(ours.client.task_wait(&id).await?.status, TaskStatus::Cancelled)
}

async fn continued(target: &Target) -> CheckResult {
    if let Target::Stdio(_) = target {
        return one_process(target).await;
    }
    let id = begin(&target.client(&[]).await?.client, "confirm_delete", json!({"filename": "b.txt"})).await?;
    let ours = target.client(&[("Delete b.txt?", accept(json!({"confirm": false})))]).await?;
    finish(&ours.client, &id, "kept b.txt").await
}

/// One client has all tasks of a process on stdio: its call has returned when it continues the task.
async fn one_process(target: &Target) -> CheckResult {
    let ours = target.client(&[("Delete b.txt?", accept(json!({"confirm": false})))]).await?;
    let id = begin(&ours.client, "confirm_delete", json!({"filename": "b.txt"})).await?;
    finish(&ours.client, &id, "kept b.txt").await
}

/// Follows a task to its result.
async fn finish(client: &McpClient, id: &str, text: &str) -> CheckResult {
    let task = client.task_wait(id).await?;
    expect_equal(task.status, TaskStatus::Completed)?;
    expect_equal(task.result.as_ref().and_then(|result| result.first_text()), Some(text))
}

async fn by_hand(target: &Target) -> CheckResult {
    let ours = target.client(&[]).await?;
    let id = begin(&ours.client, "confirm_delete", json!({"filename": "c.txt"})).await?;
    let questions = loop {
        match ours.client.task_get_detailed(&id).await?.task {
            DetailedTask::InputRequired { input_requests, .. } => break input_requests,
            DetailedTask::Working { .. } => tokio::task::yield_now().await,
            other => return Err(format!("asks nothing: {other:?}").into()),
        }
    };
    let answer = serde_json::from_value(accept(json!({"confirm": true})))?;
    let key = questions.into_keys().next().ok_or("no question")?;
    ours.client.task_update(&id, InputResponses::from([(key, answer)])).await?;
    finish(&ours.client, &id, "deleted c.txt").await?;
    expect_equal(ours.asked(), Vec::new())
}

async fn reported(target: &Target) -> CheckResult {
    let mut ours = target.client(&[]).await?;
    let id = begin(&ours.client, "confirm_delete", json!({"filename": "d.txt"})).await?;
    let filter = SubscriptionFilter { task_ids: Some(vec![id.clone()]), ..SubscriptionFilter::default() };
    let mut subscription = ours.client.listen_subscriptions(filter).await?;
    expect_equal(subscription.acknowledged().await?.task_ids, Some(vec![id.clone()]))?;
    let mut answered = false;
    loop {
        match ours.changes.recv().await.ok_or("no change")? {
            DetailedTask::InputRequired { input_requests, metadata } if !answered => {
                expect_equal(metadata.task_id, id.clone())?;
                let answer = serde_json::from_value(accept(json!({"confirm": true})))?;
                let key = input_requests.into_keys().next().ok_or("no question")?;
                ours.client.task_update(&id, InputResponses::from([(key, answer)])).await?;
                answered = true;
            }
            DetailedTask::Completed { result, .. } => {
                expect_equal(result["content"][0]["text"].as_str(), Some("deleted d.txt"))?;
                return Ok(subscription.cancel().await?);
            }
            DetailedTask::Working { .. } | DetailedTask::InputRequired { .. } => {}
            other => return Err(format!("no result: {other:?}").into()),
        }
    }
}

async fn unknown_id(target: &Target) -> CheckResult {
    let ours = target.client(&[]).await?;
    refused(ours.client.task_get("0123456789abcdef0123456789abcdef").await, -32602)
}

async fn undeclared(target: &Target) -> CheckResult {
    let ours = target.client_without_tasks(&[]).await?;
    refused(ours.client.call_tool("failing_job", json!({})).await, -32021)
}
