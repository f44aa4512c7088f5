//! Checks of tasks on sessions of 2025-11-25: tower-mcp has the nested form, but its results are part of `tasks/get`.

use crate::{
    check::{Check, CheckResult, Unsupported, checks, expect_equal},
    connection::Target,
};
use serde_json::json;
use tower_mcp::protocol::TaskStatus;

pub(crate) const CHECKS: &[Check] = checks! { "2025-11-25":
    "task: created on a session, and read" => created,
    "task: cancelled on a session" => cancelled,
};

pub(crate) const UNSUPPORTED: &[Unsupported] = &[
    (
        "2025-11-25",
        "task: its result on a session",
        "its client looks for the result in tasks/get, and has no tasks/result",
    ),
    ("2025-11-25", "task: listed on a session", "its client has no tasks/list"),
];

const TTL_MS: u64 = 60_000;

async fn created(target: &Target) -> CheckResult {
    let ours = target.session(&[]).await?;
    let arguments = json!({"seconds": 3600, "label": "long"});
    let task = ours.client.call_tool_as_task("slow_compute", arguments, Some(TTL_MS)).await?.task;
    expect_equal((task.status, task.ttl), (TaskStatus::Working, Some(TTL_MS)))?;
    let read = ours.client.task_get(&task.task_id).await?;
    expect_equal((read.task_id, read.status), (task.task_id, TaskStatus::Working))
}

async fn cancelled(target: &Target) -> CheckResult {
    let ours = target.session(&[]).await?;
    let arguments = json!({"seconds": 3600, "label": "long"});
    let task = ours.client.call_tool_as_task("slow_compute", arguments, Some(TTL_MS)).await?.task;
    ours.client.task_cancel(&task.task_id, None).await?;
    expect_equal(ours.client.task_wait(&task.task_id).await?.status, TaskStatus::Cancelled)
}
