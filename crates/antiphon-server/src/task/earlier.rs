//! Tasks in the forms of sessions and of the draft: `tasks/get`, `tasks/cancel`, `tasks/input_response`, `tasks/list`, and notifications.

use crate::{
    errors::refusal::Refusal,
    identity::Caller,
    outbox::{MessageKind, Outbox},
    request::{carrier::TaskForm, receive::Request},
    runtime::{Runtime, claims::owner},
    session::Session,
    task::{
        next::{Message, has_cancel},
        requests::{Addressed, SettingsOf, addressed, answer, load, load_any, of_id, responses, send},
        sealed::{self, Cancellation, Shown, ShownEnd},
        view,
        watch::{self, Changes},
    },
};
use antiphon_store::{TaskKey, TaskRow};
use antiphon_wire::{
    LegacyTask, ListTasksResult, StringMember, TaskStatus, escaped, method, related_task_of,
    write_notification,
};
use serde::Deserialize;
use std::{borrow::Cow, collections::HashMap, hash::RandomState, sync::Arc};

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
    Ok(sealed::text(addressed.key))
}

impl Addressed<'_> {
    /// Returns the task for its client.
    fn task(&self, server: &Runtime, request: &Request<'_>) -> LegacyTask {
        let task = task(server, self.key, &self.row, &self.shown);
        if TaskForm::of(server, request) == Some(TaskForm::Draft) { with_text(task) } else { task }
    }
}

/// Returns a task with the text that the draft has for its status, if it has no other.
fn with_text(mut task: LegacyTask) -> LegacyTask {
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

/// The number of tasks on a page, if the server sets none.
const PAGE: usize = 50;

/// Returns a page of the caller's tasks.
///
/// All anonymous callers are one owner. So an anonymous caller gets the tasks that its session has created, and without a session
/// none.
///
/// > receivers **MUST** ensure the returned task list includes only tasks associated with the requestor's authorization context.
pub(crate) async fn list(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
    page_size: Option<usize>,
) -> Result<ListTasksResult, Refusal> {
    let tasks = server.tasks.as_ref().ok_or_else(|| Refusal::Method(request.method.to_string()))?;
    let after = cursor(request)?;
    let principal = server.identified(&request.method, caller)?;
    let size = page_size.unwrap_or(PAGE);
    // One more than the page has, to see whether there is another page.
    let mut keys = match (&principal, &request.session) {
        (None, Some(session)) => session.tasks_after(after, size + 1),
        (None, None) => Vec::new(),
        (Some(_), _) => {
            let own = tasks.engine.list_of_owner(owner(principal.as_ref()), after, size + 1).await;
            own.map_err(|error| {
                tracing::error!(error = %escaped(&error), "the tasks of a caller cannot be listed");
                Refusal::Store
            })?
        }
    };
    // > Receivers **MUST** include a `nextCursor` in the response if more tasks are available.
    let has_more = keys.len() > size;
    keys.truncate(size);
    let next = keys.last().filter(|_| has_more).map(|key| sealed::text(*key));
    let mut page = Vec::with_capacity(keys.len());
    for key in keys {
        let Some((row, shown)) = load(server, tasks, key, principal.as_ref()).await? else { continue };
        // The caller could not get such a task.
        let scopes = settings(&shown.tool).map(|settings| &settings.scopes);
        if scopes.is_none_or(|scopes| caller.has_scopes(scopes)) {
            page.push(task(server, key, &row, &shown).task);
        }
    }
    Ok(ListTasksResult::new(page, next))
}

/// > Invalid or nonexistent cursor in `tasks/list`: `-32602` (Invalid params)
fn cursor(request: &Request<'_>) -> Result<Option<TaskKey>, Refusal> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let Some(cursor) = request.params.cursor else { return Ok(None) };
    let text = serde_json::from_str(cursor.get()).ok().and_then(|Text(text)| sealed::parse(&text));
    text.map(Some).ok_or_else(|| Refusal::params("Invalid cursor"))
}

/// The number of tasks at which those that the session does not remember are forgotten.
const SHOWN: usize = 1024;

/// Sends each change of the status of the tasks that the session has created. The future does not end.
///
/// > When a task status changes, receivers **MAY** send_status a `notifications/tasks/status` notification to inform the requestor of
/// > the change.
pub(crate) async fn notify(server: &Arc<Runtime>, session: &Session, outbox: &Outbox) {
    let Some(tasks) = server.tasks.as_ref().filter(|_| session.has_tasks()) else {
        return std::future::pending().await;
    };
    let mut changes = Changes::of(tasks);
    let digests = RandomState::new();
    let begins = watch::digest(&digests, &(TaskStatus::Working, None::<String>));
    // The digests of each status and its text.
    let mut shown: HashMap<TaskKey, u64> = HashMap::new();
    loop {
        // Without a name, changes may have been missed: the client polls.
        let Some(key) = session.created_task(changes.next().await) else { continue };
        // The session has created the task, so it belongs to the caller of the session.
        let Ok(Some((row, loaded))) = load_any(server, tasks, key).await else { continue };
        let task = task(server, key, &row, &loaded);
        let now = watch::digest(&digests, &(task.task.status, &task.task.status_message));
        if shown.len() >= SHOWN {
            shown.retain(|key, _| session.has_created(*key));
        }
        // > Tasks **MUST** begin in the `working` status when created.
        let is_new = shown.insert(key, now).unwrap_or(begins) != now;
        let id = &*task.task.task_id;
        if is_new && session.0.filter.permits(method::TASKS_STATUS, Some(id)).await {
            send_status(outbox, &task);
        }
    }
}

fn send_status(outbox: &Outbox, task: &LegacyTask) {
    match write_notification(method::TASKS_STATUS, task) {
        // > Requestors **MUST NOT** rely on receiving this notifications, as it is optional.
        //
        // A client that reads slowly loses some, as it loses log messages.
        Ok(bytes) => outbox.push(MessageKind::Log, bytes),
        Err(fault) => {
            tracing::error!(fault = %escaped(&fault), "the status of a task cannot be written as JSON");
        }
    }
}
