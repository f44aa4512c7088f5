//! Checks of tasks: rmcp's client creates a task with `call_tool_once`, and polls, answers and cancels it by hand.

use crate::{
    check::{Check, CheckResult, checks, expect_equal},
    fleet::Fleet,
};
use interop_rmcp_report::Outcome;
use rmcp::{
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, GetTaskParams, InputRequests,
        InputResponses, TaskPayload, UpdateTaskParams,
    },
    service::ServiceError,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const CHECKS: &[(&str, Check)] = checks! {
    "task: a tool without tasks answers at once" => at_once,
    "task: polled until its result" => polled,
    "task: the error of its tool completes it" => tool_error,
    "task: the error of its request fails it" => request_error,
    "task: a question is answered" => answered,
    "task: a question is declined" => declined,
    "task: two questions, answered one after the other" => two_questions,
    "task: a round comes before it" => round_first,
    "task: cancelled while it runs" => cancelled,
    "task: an unknown id" => unknown_id,
    "task: a client that did not declare the extension" => undeclared,
};

/// The case that [`followed`] reports.
pub(crate) const FOLLOWED: &str = "task: followed by call_tool";
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A client that declares tasks and forms.
async fn with_tasks(fleet: &Fleet) -> Result<Fleet, String> {
    let extensions = json!({"io.modelcontextprotocol/tasks": {}});
    fleet.with_capabilities(json!({"elicitation": {"form": {}}, "extensions": extensions})).await
}

fn call(tool: &str, arguments: &Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool.to_owned())
        .with_arguments(arguments.as_object().cloned().unwrap_or_default())
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// A task of the server, and the client that created it.
struct Followed {
    fleet: Fleet,
    id: String,
}

impl Followed {
    async fn create(fleet: &Fleet, tool: &str, arguments: &Value) -> Result<Self, String> {
        let fleet = with_tasks(fleet).await?;
        match fleet.client.call_tool_once(call(tool, arguments)).await.map_err(text)? {
            CallToolResponse::Task(created) => Ok(Self { id: created.task.task_id, fleet }),
            other => Err(format!("no task: {other:?}")),
        }
    }

    /// Polls until the task is not working.
    async fn poll(&self) -> Result<TaskPayload, String> {
        loop {
            let reply = self.fleet.client.get_task(GetTaskParams::new(&self.id)).await.map_err(text)?;
            match reply.task.payload {
                TaskPayload::Working => tokio::time::sleep(POLL_INTERVAL).await,
                other => return Ok(other),
            }
        }
    }

    async fn questions(&self) -> Result<InputRequests, String> {
        match self.poll().await? {
            TaskPayload::InputRequired { input_requests } => Ok(input_requests),
            other => Err(format!("asks nothing: {other:?}")),
        }
    }

    async fn answer(&self, key: &str, answer: Value) -> CheckResult {
        let answers: InputResponses = [(key.to_owned(), answer)].into();
        self.fleet.client.update_task(UpdateTaskParams::new(&self.id, answers)).await.map_err(text)
    }

    /// Polls until a question was taken, or the task is over.
    async fn until_taken(&self, key: &str) -> Result<TaskPayload, String> {
        loop {
            match self.poll().await? {
                TaskPayload::InputRequired { input_requests } if input_requests.contains_key(key) => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                other => return Ok(other),
            }
        }
    }
}

/// The text of a completed task.
fn completed(payload: &TaskPayload, failed: bool) -> Result<&str, String> {
    let TaskPayload::Completed { result } = payload else {
        return Err(format!("not completed: {payload:?}"));
    };
    expect_equal(&result.get("isError").and_then(Value::as_bool).unwrap_or(false), &failed)?;
    result["content"][0]["text"].as_str().ok_or_else(|| format!("no text: {result:?}"))
}

fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

async fn at_once(fleet: &Fleet) -> CheckResult {
    let fleet = with_tasks(fleet).await?;
    match fleet.client.call_tool_once(call("greet", &json!({"name": "Ada"}))).await.map_err(text)? {
        CallToolResponse::Complete(_) => Ok(()),
        other => Err(format!("not complete: {other:?}")),
    }
}

async fn polled(fleet: &Fleet) -> CheckResult {
    let task = Followed::create(fleet, "slow_compute", &json!({"seconds": 1, "label": "short"})).await?;
    expect_equal(&completed(&task.poll().await?, false)?, &"short: computed for 1 s")
}

async fn tool_error(fleet: &Fleet) -> CheckResult {
    let task = Followed::create(fleet, "failing_job", &json!({})).await?;
    expect_equal(&completed(&task.poll().await?, true)?, &"the job failed")
}

async fn request_error(fleet: &Fleet) -> CheckResult {
    let task = Followed::create(fleet, "protocol_error_job", &json!({})).await?;
    match task.poll().await? {
        TaskPayload::Failed { error } => expect_equal(&error["code"], &json!(-32603)),
        other => Err(format!("not failed: {other:?}")),
    }
}

async fn only_question(task: &Followed) -> Result<String, String> {
    let questions = task.questions().await?;
    expect_equal(&questions.len(), &1)?;
    questions.into_keys().next().ok_or_else(|| "no question".into())
}

async fn answered(fleet: &Fleet) -> CheckResult {
    let task = Followed::create(fleet, "confirm_delete", &json!({"filename": "a.txt"})).await?;
    let key = only_question(&task).await?;
    task.answer(&key, accept(json!({"confirm": true}))).await?;
    expect_equal(&completed(&task.until_taken(&key).await?, false)?, &"deleted a.txt")
}

async fn declined(fleet: &Fleet) -> CheckResult {
    let task = Followed::create(fleet, "confirm_delete", &json!({"filename": "a.txt"})).await?;
    let key = only_question(&task).await?;
    task.answer(&key, json!({"action": "decline"})).await?;
    completed(&task.until_taken(&key).await?, true).map(drop)
}

async fn two_questions(fleet: &Fleet) -> CheckResult {
    let task = Followed::create(fleet, "multi_input", &json!({})).await?;
    let questions = task.questions().await?;
    expect_equal(&questions.len(), &2)?;
    let asks_name = |question: &Value| question["params"]["message"] == "What is your name?";
    let mut end = None;
    for (key, question) in &questions {
        let question = serde_json::to_value(question).map_err(text)?;
        let content = if asks_name(&question) { json!({"name": "Ada"}) } else { json!({"confirm": true}) };
        task.answer(key, accept(content)).await?;
        end = Some(task.until_taken(key).await?);
    }
    expect_equal(&completed(&end.ok_or("no question")?, false)?, &"Ada: true")
}

async fn round_first(fleet: &Fleet) -> CheckResult {
    let fleet = with_tasks(fleet).await?;
    let mut tool = call("test_tool_with_task", &json!({}));
    let CallToolResponse::InputRequired(round) =
        fleet.client.call_tool_once(tool.clone()).await.map_err(text)?
    else {
        return Err("no round".into());
    };
    expect_equal(
        &round.input_requests.unwrap_or_default().into_keys().collect::<Vec<_>>(),
        &vec!["user_name".to_owned()],
    )?;
    tool.request_state = round.request_state;
    tool.input_responses = Some([("user_name".to_owned(), accept(json!({"name": "Ada"})))].into());
    let CallToolResponse::Task(created) = fleet.client.call_tool_once(tool).await.map_err(text)? else {
        return Err("no task".into());
    };
    let task = Followed { id: created.task.task_id, fleet };
    expect_equal(&completed(&task.poll().await?, false)?, &"Hello, Ada!")
}

async fn cancelled(fleet: &Fleet) -> CheckResult {
    let task = Followed::create(fleet, "slow_compute", &json!({"seconds": 3600, "label": "long"})).await?;
    task.fleet.client.cancel_task(CancelTaskParams::new(&task.id)).await.map_err(text)?;
    expect_equal(&task.poll().await?, &TaskPayload::Cancelled)
}

fn refused<T>(reply: Result<T, ServiceError>, code: i32) -> CheckResult {
    match reply {
        Err(ServiceError::McpError(error)) => expect_equal(&error.code.0, &code),
        Err(other) => Err(other.to_string()),
        Ok(_) => Err("not refused".into()),
    }
}

async fn unknown_id(fleet: &Fleet) -> CheckResult {
    let fleet = with_tasks(fleet).await?;
    let id = "0123456789abcdef0123456789abcdef";
    refused(fleet.client.get_task(GetTaskParams::new(id)).await, -32602)
}

async fn undeclared(fleet: &Fleet) -> CheckResult {
    refused(fleet.client.call_tool_once(call("failing_job", &json!({}))).await, -32021)
}

/// A call that becomes a task, by the method that repeats a call after its rounds.
pub(crate) async fn followed(fleet: &Fleet) -> Outcome {
    let fleet = match with_tasks(fleet).await {
        Ok(fleet) => fleet,
        Err(fault) => return Outcome::Fail(fault),
    };
    match fleet.client.call_tool(call("failing_job", &json!({}))).await {
        Ok(_) => Outcome::Pass,
        Err(ServiceError::UnexpectedResponse) => Outcome::Unsupported(
            "call_tool refuses a task as an unexpected response; its caller polls".into(),
        ),
        Err(other) => Outcome::Fail(other.to_string()),
    }
}
