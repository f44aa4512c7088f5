//! Cases of tasks, for a server with the tools `work`, `ask` (a form with the text `name`) and `endless`, none of which has
//! arguments.

use crate::{
    case::{Case, EVENT_TIMEOUT, POLL_INTERVAL, expect_equal},
    error::AnyError,
    peer::{Peer, builder},
};
use antiphon::{
    client::{
        Call, CallProgress, Client, ClientError, Subscription,
        events::SubscriptionEvent,
        tasks::{ClientTask, TaskHandle},
    },
    wire::{
        CallToolResult, SubscriptionFilter, TaskStatus,
        tasks::{DetailedTask, TaskDetail},
    },
};
use serde_json::json;
use tokio::time::{sleep, timeout};

pub(crate) const CASES: &[Case] = &[
    ("task: begun, and waited for", |peer| Box::pin(waited_for(peer))),
    ("task: read and answered by hand", |peer| Box::pin(by_hand(peer))),
    ("task: its handle continues in another client", |peer| Box::pin(continued(peer))),
    ("task: cancelled while it runs", |peer| Box::pin(cancelled(peer))),
    ("task: an unknown id", |peer| Box::pin(unknown_id(peer))),
    ("task: a client that did not declare the extension", |peer| Box::pin(undeclared(peer))),
];

/// The cases of a server that reports the changes of its tasks.
pub(crate) const REPORTED: &[Case] =
    &[("task: its changes reach a subscription", |peer| Box::pin(reported(peer)))];

async fn begin(client: &Client, tool: &str) -> Result<TaskHandle, AnyError> {
    match client.begin(Call::tool(tool, json!({}))?).await? {
        CallProgress::Task(handle) => Ok(handle),
        other => Err(format!("no task: {other:?}").into()),
    }
}

fn expect_text(result: &CallToolResult, text: &str) -> Result<(), AnyError> {
    expect_equal((result.first_text(), result.failed()), (Some(text), false))
}

/// Polls until the task has this status.
async fn until(task: &mut ClientTask, status: TaskStatus) -> Result<(), AnyError> {
    loop {
        let found = task.get().await?.task.status;
        if found == status {
            return Ok(());
        }
        if found != TaskStatus::Working {
            return Err(format!("found {found:?}, wanted {status:?}").into());
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Answers the only question.
async fn answer(task: &mut ClientTask, name: &str) -> Result<(), AnyError> {
    let keys: Vec<String> = task.questions().map(|(key, _)| key.to_owned()).collect();
    let [key] = keys.as_slice() else { return Err(format!("asks {keys:?}").into()) };
    Ok(task.answer(key, &json!({"action": "accept", "content": {"name": name}})).await?)
}

async fn waited_for(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let handle = begin(&client, "work").await?;
    expect_equal(handle.tool(), Some("work"))?;
    expect_text(&client.task(handle).wait().await?, "worked")
}

async fn by_hand(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut task = client.task(begin(&client, "ask").await?);
    until(&mut task, TaskStatus::InputRequired).await?;
    answer(&mut task, "Ada").await?;
    expect_text(&task.wait().await?, "Hello, Ada!")
}

async fn continued(peer: &Peer) -> Result<(), AnyError> {
    let stored = serde_json::to_string(&begin(&peer.client(), "ask").await?)?;
    let handle: TaskHandle = serde_json::from_str(&stored)?;
    let mut task = peer.client().task(handle);
    until(&mut task, TaskStatus::InputRequired).await?;
    answer(&mut task, "Grace").await?;
    expect_text(&task.wait().await?, "Hello, Grace!")
}

async fn cancelled(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut task = client.task(begin(&client, "endless").await?);
    task.cancel().await?;
    until(&mut task, TaskStatus::Cancelled).await
}

fn expect_code<T>(reply: Result<T, ClientError>, code: i64) -> Result<(), AnyError> {
    match reply {
        Ok(_) => Err("not refused".into()),
        Err(error) => match error.server_error() {
            Some(found) => expect_equal(found.code.0, code),
            None => Err(error.into()),
        },
    }
}

async fn unknown_id(peer: &Peer) -> Result<(), AnyError> {
    expect_code(peer.client().attach("0123456789abcdef0123456789abcdef").get().await, -32602)
}

async fn undeclared(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client_from(builder().tasks(false));
    expect_code(client.call_tool("work", json!({})).await, -32021)
}

/// The next state that the server reports.
async fn next_state(changes: &mut Subscription) -> Result<DetailedTask, AnyError> {
    loop {
        match timeout(EVENT_TIMEOUT, changes.next()).await.map_err(|_| "no change in time")?.transpose()? {
            Some(SubscriptionEvent::Task(task)) => return Ok(*task),
            Some(SubscriptionEvent::Acknowledged(_)) => {}
            other => return Err(format!("no change of a task: {other:?}").into()),
        }
    }
}

async fn reported(peer: &Peer) -> Result<(), AnyError> {
    let client = peer.client();
    let mut task = client.task(begin(&client, "ask").await?);
    until(&mut task, TaskStatus::InputRequired).await?;
    let filter = SubscriptionFilter::new().task(task.handle().task_id());
    let mut changes = client.listen(filter.clone());
    let acknowledged =
        timeout(EVENT_TIMEOUT, changes.next()).await.map_err(|_| "no acknowledgement in time")?;
    expect_equal(acknowledged.transpose()?, Some(SubscriptionEvent::Acknowledged(filter)))?;
    answer(&mut task, "Ada").await?;
    loop {
        match next_state(&mut changes).await?.detail {
            TaskDetail::Result(result) => {
                return expect_text(&serde_json::from_str(result.get())?, "Hello, Ada!");
            }
            TaskDetail::None | TaskDetail::InputRequests(_) => {}
            TaskDetail::Error(error) => return Err(format!("failed: {error:?}").into()),
        }
    }
}
