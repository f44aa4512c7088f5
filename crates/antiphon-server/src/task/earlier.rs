//! `tasks/get`, `tasks/cancel` and `tasks/input_response` in the forms of sessions and of the draft.

use super::{
    id,
    requests::{
        Addressed, SettingsOf, addressed, answer, has_cancel, load, not_found, of_id, responses, send,
    },
    snapshot::{Cancellation, End, Message, Snapshot},
    view,
};
use crate::{Caller, Request, refusal::Refusal, runtime::Runtime};
use antiphon_store::{TaskKey, TaskRow};
use antiphon_wire::{CallToolResult, LegacyTask, StringMember, TaskStatus, related_task_of};
use serde_json::value::RawValue;
use std::sync::Arc;

/// Returns the state of a task, without its questions and its result.
pub(crate) async fn get(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
) -> Result<LegacyTask, Refusal> {
    let Addressed { key, row, snapshot, .. } = addressed(server, request, caller, settings).await?;
    Ok(task(server, key, &row, &snapshot))
}

/// Cancels a task, and returns its state: cancelled. The handler may still undo what it did.
///
/// > Upon receiving a valid cancellation request, receivers **SHOULD** attempt to stop the task execution and **MUST** transition
/// > the task to `cancelled` status before sending the response.
pub(crate) async fn cancel(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
) -> Result<LegacyTask, Refusal> {
    let addressed = addressed(server, request, caller, settings).await?;
    let Addressed { tasks, key, row, snapshot, principal } = &addressed;
    refuse_final(task(server, *key, row, snapshot).task.status)?;
    send(server, &addressed, &Message::Cancel).await?;
    let loaded = load(server, tasks, *key, principal.as_ref()).await?;
    let (row, snapshot) = loaded.ok_or_else(not_found)?;
    let cancelled = task(server, *key, &row, &snapshot);
    // The task ended before the cancellation came.
    match cancelled.task.status {
        TaskStatus::Cancelled => Ok(cancelled),
        status => refuse_final(status).map(|()| cancelled),
    }
}

/// > Receivers **MUST** reject cancellation requests for tasks already in a terminal status (`completed`, `failed`, or
/// > `cancelled`) with error code `-32602` (Invalid params).
fn refuse_final(status: TaskStatus) -> Result<(), Refusal> {
    if !status.is_final() {
        return Ok(());
    }
    Err(Refusal::params(format!("Cannot cancel task: already in terminal status '{status}'")))
}

/// Takes answers to open questions of a task, in the draft. Others are ignored. Returns the id of the task.
pub(crate) async fn input_response(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
) -> Result<String, Refusal> {
    // The draft's prose has `params.taskId`; its schema and its examples have the id in `_meta`.
    let related = related_task_of(request.text);
    let named = request.params.task_id.as_ref().and_then(StringMember::text).or(related.as_deref());
    let named = named.ok_or_else(|| {
        Refusal::params("params._meta[\"io.modelcontextprotocol/related-task\"].taskId is missing")
    })?;
    let addressed = of_id(server, request, named, caller, settings).await?;
    if task(server, addressed.key, &addressed.row, &addressed.snapshot).task.status.is_final() {
        return Err(Refusal::params("The task is over: it takes no answers"));
    }
    // The draft's examples wrap each answer; its schema does not.
    let responses = responses(request)?.unwrapped().map_err(|_fault| Refusal::Internal)?;
    answer(server, &addressed, &responses, settings).await?;
    Ok(id::text(addressed.key))
}

/// Returns a task for its client.
///
/// Two statuses differ from those of the extension:
///
/// > Once a task is cancelled, it **MUST** remain in `cancelled` status even if execution continues to completion or fails.
///
/// > `failed`: The associated request did not complete successfully. For tool calls specifically, this includes cases where the
/// > tool call result has `isError` set to true.
pub(super) fn task(server: &Runtime, key: TaskKey, row: &TaskRow, snapshot: &Snapshot) -> LegacyTask {
    let mut task = view::detailed(server, key, row, snapshot.clone()).task;
    if is_cancelled(server, key, row, snapshot) {
        (task.status, task.status_message) =
            (TaskStatus::Cancelled, Some("The task was cancelled".to_owned()));
    } else if let Some(End::Completed(result)) = &snapshot.end
        && let Some(text) = failure_in(result)
    {
        // > The `tasks/get` response **SHOULD** include a `statusMessage` field with diagnostic information about the failure.
        (task.status, task.status_message) = (TaskStatus::Failed, Some(text));
    }
    LegacyTask::new(task)
}

/// Returns true if the client has cancelled the task, whatever its handler did then.
pub(super) fn is_cancelled(server: &Runtime, key: TaskKey, row: &TaskRow, snapshot: &Snapshot) -> bool {
    matches!(snapshot.end, Some(End::Cancelled))
        || snapshot.cancellation != Cancellation::None
        || has_cancel(server, key, row)
}

/// Returns the text of a tool's error.
fn failure_in(result: &RawValue) -> Option<String> {
    let result: CallToolResult = serde_json::from_str(result.get()).ok()?;
    result.failed().then(|| result.first_text().unwrap_or("The tool failed").to_owned())
}
