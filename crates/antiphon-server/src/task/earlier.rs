//! `tasks/get`, `tasks/cancel` and `tasks/input_response` in the forms of sessions and of the draft.

use super::{
    id,
    message::{Message, has_cancel},
    requests::{Addressed, SettingsOf, addressed, answer, of_id, responses, send},
    shown::{Cancellation, Shown, ShownEnd},
    view,
    watch::Changes,
};
use crate::{
    errors::refusal::Refusal,
    identity::caller::Caller,
    request::{receive::Request, task_form::TaskForm},
    runtime::Runtime,
};
use antiphon_store::{TaskKey, TaskRow};
use antiphon_wire::{LegacyTask, StringMember, TaskStatus, related_task_of};
use std::sync::Arc;

/// Returns the state of a task, without its questions and its result.
pub(crate) async fn get(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
) -> Result<LegacyTask, Refusal> {
    Ok(addressed(server, request, caller, settings).await?.task(server, request))
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
    let mut addressed = addressed(server, request, caller, settings).await?;
    refuse_final(addressed.task(server, request).task.status)?;
    let mut changes = Changes::of(addressed.tasks);
    send(server, &addressed, &Message::Cancel).await?;
    loop {
        addressed.reload(server).await?;
        let shown = addressed.task(server, request);
        if shown.task.status == TaskStatus::Cancelled {
            return Ok(shown);
        }
        // The task ended before the cancellation came.
        refuse_final(shown.task.status)?;
        // The task ends at this moment: either with the cancellation, or before it.
        changes.of_task(addressed.key).await;
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
    let responses = responses(request);
    let mut addressed = of_id(server, request, named, caller, settings).await?;
    if addressed.task(server, request).task.status.is_final() {
        return Err(Refusal::params("The task is over: it takes no answers"));
    }
    // The draft's examples wrap each answer; its schema does not.
    let responses = responses?.unwrapped().map_err(|_fault| Refusal::Internal)?;
    answer(server, caller, &mut addressed, &responses, settings).await?;
    Ok(id::text(addressed.key))
}

impl Addressed<'_> {
    /// Returns the task for its client.
    fn task(&self, server: &Runtime, request: &Request<'_>) -> LegacyTask {
        let task = task(server, self.key, &self.row, &self.shown);
        if TaskForm::of(server, request) == Some(TaskForm::Draft) { with_text(task) } else { task }
    }
}

/// Returns a task with the text that the draft has for its status, if it has no other.
pub(super) fn with_text(mut task: LegacyTask) -> LegacyTask {
    let text = match task.task.status {
        TaskStatus::InputRequired => "Input Required to Proceed call tasks/result",
        TaskStatus::Completed => "Task has been completed successfully, call tasks/result",
        TaskStatus::Working | TaskStatus::Failed | TaskStatus::Cancelled => return task,
    };
    task.task.status_message.get_or_insert_with(|| text.to_owned());
    task
}

/// Returns a task for its client.
///
/// Two statuses differ from those of the extension:
///
/// > Once a task is cancelled, it **MUST** remain in `cancelled` status even if execution continues to completion or fails.
///
/// > `failed`: The associated request did not complete successfully. For tool calls specifically, this includes cases where the
/// > tool call result has `isError` set to true.
pub(super) fn task(server: &Runtime, key: TaskKey, row: &TaskRow, shown: &Shown) -> LegacyTask {
    let mut task = view::task(server, key, &view::with_messages(server, key, row, shown.clone()));
    if is_cancelled(server, key, row, shown) {
        (task.status, task.status_message) =
            (TaskStatus::Cancelled, Some("The task was cancelled".to_owned()));
    } else if let Some(ShownEnd::Completed { failure: Some(text) }) = &shown.end {
        // > The `tasks/get` response **SHOULD** include a `statusMessage` field with diagnostic information about the failure.
        (task.status, task.status_message) = (TaskStatus::Failed, Some(text.clone()));
    }
    // > Receivers **MUST** include the actual `ttl` duration (or `null` for unlimited) in `tasks/get` responses.
    //
    // That of the creating reply. A task that is over may be kept for longer.
    task.ttl_ms = shown.ttl.or(shown.kept);
    LegacyTask::new(task)
}

/// Returns true if the client has cancelled the task, whatever its handler did then.
pub(super) fn is_cancelled(server: &Runtime, key: TaskKey, row: &TaskRow, shown: &Shown) -> bool {
    matches!(shown.end, Some(ShownEnd::Cancelled))
        || shown.cancellation != Cancellation::None
        || (!shown.is_ending && has_cancel(server, key, row))
}
