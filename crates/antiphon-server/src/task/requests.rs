//! `tasks/get`, `tasks/update` and `tasks/cancel`.

use super::{
    id,
    snapshot::{Message, Snapshot},
    view,
};
use crate::{Caller, Request, refusal::Refusal, runtime::Runtime, settings::Settings, task_registry::Tasks};
use antiphon_seal::Principal;
use antiphon_store::{StoreErrorKind, TaskKey, TaskRow, TaskSent, mutant::is_mutant};
use antiphon_wire::{DetailedTask, InputResponses, StringMember, escaped};
use serde_json::value::RawValue;
use std::sync::Arc;

/// The settings of a tool, by its name.
pub(crate) type SettingsOf<'a> = &'a (dyn Fn(&str) -> Option<&'a Settings> + Sync);

/// A task of the caller.
pub(super) struct Addressed<'s> {
    pub(super) tasks: &'s Tasks,
    pub(super) key: TaskKey,
    pub(super) row: TaskRow,
    pub(super) snapshot: Snapshot,
    pub(super) principal: Option<Principal>,
}

impl Addressed<'_> {
    /// Loads the task again.
    pub(super) async fn reload(&mut self, server: &Arc<Runtime>) -> Result<(), Refusal> {
        let loaded = load(server, self.tasks, self.key, self.principal.as_ref()).await?;
        (self.row, self.snapshot) = loaded.ok_or_else(not_found)?;
        Ok(())
    }
}

/// Returns the state of a task.
pub(crate) async fn get(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
) -> Result<DetailedTask, Refusal> {
    let Addressed { key, row, snapshot, .. } = addressed(server, request, caller, settings).await?;
    Ok(view::detailed(server, key, &row, snapshot))
}

/// Takes answers to open questions of a task. Others are ignored.
pub(crate) async fn update(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
) -> Result<(), Refusal> {
    let addressed = addressed(server, request, caller, settings).await?;
    answer(server, &addressed, &responses(request)?, settings).await
}

/// Returns the answers in a request.
pub(super) fn responses(request: &Request<'_>) -> Result<InputResponses, Refusal> {
    let text = request.params.input_responses.map_or("", RawValue::get);
    serde_json::from_str(text).map_err(|_| Refusal::params("params.inputResponses must be an object"))
}

/// Sends those of the answers to a task that belong to open questions.
pub(super) async fn answer(
    server: &Arc<Runtime>,
    addressed: &Addressed<'_>,
    responses: &InputResponses,
    settings: SettingsOf<'_>,
) -> Result<(), Refusal> {
    let view = view::detailed(server, addressed.key, &addressed.row, addressed.snapshot.clone());
    let open = view.input_requests().cloned().unwrap_or_default();
    let answers: Vec<(String, Box<RawValue>)> = responses
        .iter()
        .filter(|(key, _)| open.get(key).is_some())
        .map(|(key, answer)| (key.to_owned(), answer.to_owned()))
        .collect();
    if answers.is_empty() {
        return Ok(());
    }
    let tool = settings(&addressed.snapshot.request.name);
    if tool.is_some_and(|tool| !tool.approved_by.permits(addressed.principal.as_ref())) {
        return Err(Refusal::NotApprover);
    }
    send(server, addressed, &Message::Answers(answers)).await
}

/// Asks to cancel a task. A task that is over stays as it is.
pub(crate) async fn cancel(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
) -> Result<(), Refusal> {
    let addressed = addressed(server, request, caller, settings).await?;
    let is_over = addressed.row.is_final && !is_mutant("task_final_changed");
    if is_over || has_cancel(server, addressed.key, &addressed.row) {
        return Ok(());
    }
    send(server, &addressed, &Message::Cancel).await
}

/// Returns true if a cancellation waits in the queue.
pub(super) fn has_cancel(server: &Runtime, key: TaskKey, row: &TaskRow) -> bool {
    row.messages
        .iter()
        .any(|message| matches!(Message::open(server, key, &message.body), Some(Message::Cancel)))
}

pub(super) async fn send(
    server: &Arc<Runtime>,
    addressed: &Addressed<'_>,
    message: &Message,
) -> Result<(), Refusal> {
    send_to(server, addressed.tasks, addressed.key, message).await
}

/// Sends a message to a task of the caller.
pub(super) async fn send_to(
    server: &Arc<Runtime>,
    tasks: &Tasks,
    key: TaskKey,
    message: &Message,
) -> Result<(), Refusal> {
    let sealed = message.seal(server, key).ok_or(Refusal::Internal)?;
    let mut limits = tasks.options.limits;
    if matches!(message, Message::Cancel) {
        // A queue that is full of answers has room for one cancellation.
        limits = limits
            .messages(limits.max_messages().saturating_add(1))
            .message_bytes(limits.max_message_bytes().saturating_add(sealed.len()));
    }
    match tasks.engine.send(key, &sealed, &limits).await {
        Ok(TaskSent::Queued) => {
            tasks.counters.messages.add_one();
            Ok(())
        }
        Ok(TaskSent::Final) => Ok(()),
        Ok(TaskSent::NotFound) => Err(not_found()),
        Ok(other) => {
            tracing::error!(task = %escaped(&key), ?other, "a message to a task has a result that this version does not know");
            Err(Refusal::Store)
        }
        Err(error) => {
            tracing::error!(task = %escaped(&key), error = %escaped(&error), "a message to a task was not stored");
            Err(if error.kind() == StoreErrorKind::Full { Refusal::Busy } else { Refusal::Store })
        }
    }
}

/// Returns the task that the request names, if it is one of the caller.
///
/// > Servers **MUST** perform authentication and authorization checks on each task-related request
pub(super) async fn addressed<'s>(
    server: &'s Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
) -> Result<Addressed<'s>, Refusal> {
    // > the `taskId` parameter in the request **MUST** be used as the source of truth for identifying the target task.
    let id = request.params.task_id.as_ref();
    let id = id.ok_or_else(|| Refusal::params("params.taskId is missing"))?;
    let id = StringMember::text(id).ok_or_else(|| Refusal::params("params.taskId must be a string"))?;
    of_id(server, request, id, caller, settings).await
}

/// Returns the task with this id, if it is one of the caller.
pub(super) async fn of_id<'s>(
    server: &'s Arc<Runtime>,
    request: &Request<'_>,
    id: &str,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
) -> Result<Addressed<'s>, Refusal> {
    // The dispatcher knows the method only if there are tasks.
    let tasks = server.tasks.as_ref().ok_or_else(|| Refusal::Method(request.method.to_string()))?;
    let principal = server.identified(&request.method, caller)?;
    let key = id::parse(id).ok_or_else(not_found)?;
    let (row, snapshot) = load(server, tasks, key, principal.as_ref()).await?.ok_or_else(not_found)?;
    if let Some(settings) = settings(&snapshot.request.name) {
        server.require_scopes(&settings.scopes, caller)?;
    }
    Ok(Addressed { tasks, key, row, snapshot, principal })
}

/// Returns a task, or nothing if this caller has no such task.
pub(super) async fn load(
    server: &Arc<Runtime>,
    tasks: &Tasks,
    key: TaskKey,
    principal: Option<&Principal>,
) -> Result<Option<(TaskRow, Snapshot)>, Refusal> {
    let loaded = load_any(server, tasks, key).await?;
    Ok(loaded.filter(|(_, snapshot)| {
        let is_of_caller = snapshot.is_of(principal) || is_mutant("task_of_anybody");
        if !is_of_caller {
            tracing::warn!(task = %escaped(&key), "a request for a task of another caller: refused as unknown");
        }
        is_of_caller
    }))
}

/// Returns a task of any caller.
pub(super) async fn load_any(
    server: &Runtime,
    tasks: &Tasks,
    key: TaskKey,
) -> Result<Option<(TaskRow, Snapshot)>, Refusal> {
    let row = tasks.engine.get(key).await.map_err(|error| {
        tracing::error!(task = %escaped(&key), error = %escaped(&error), "a task cannot be loaded");
        Refusal::Store
    })?;
    let Some(row) = row else { return Ok(None) };
    let snapshot = Snapshot::open(server, key, &row.snapshot);
    Ok(snapshot.map(|snapshot| (row, snapshot)))
}

/// The same for a task of another caller, so that nobody learns which tasks there are.
pub(super) fn not_found() -> Refusal {
    Refusal::params("Task not found")
}
