//! Calls that the server makes tasks of.

use crate::{calls, error::AnyError};
use antiphon::{
    client::{Call, CallProgress, Client},
    wire::TaskStatus,
};
use serde_json::json;

/// The error of the task that fails.
const INTERNAL_ERROR: i64 = -32603;

/// Follows a task to its result, makes a call that is none, follows one to its error, and cancels one.
pub(crate) async fn lifecycle(client: &Client) -> Result<(), AnyError> {
    client.list_tools().await?;
    for tool in ["quick_task", "sync_echo"] {
        if client.call_tool(tool, json!({})).await?.failed() {
            return Err(format!("{tool} failed").into());
        }
    }
    match client.call_tool("failing_task", json!({})).await {
        Err(error) if error.server_error().is_some_and(|found| found.code.0 == INTERNAL_ERROR) => {}
        other => return Err(format!("the task that fails: {other:?}").into()),
    }
    let CallProgress::Task(handle) = client.begin(Call::tool("cancel_task", json!({}))?).await? else {
        return Err("cancel_task is no task".into());
    };
    let mut task = client.task(handle);
    task.cancel().await?;
    match task.get().await?.task.status {
        TaskStatus::Cancelled => calls::handshake(client).await,
        other => Err(format!("cancelled, and {other:?}").into()),
    }
}
