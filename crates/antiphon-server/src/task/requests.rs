//! `tasks/get`, `tasks/update` and `tasks/cancel`.

use super::{
    next::{GivenAnswer, Message, has_cancel},
    sealed::{self, Opening, Parts, Shown, beside},
    view::{self, WrittenTask},
};
use crate::{
    errors::refusal::Refusal, identity::Caller, options::Settings, request::receive::Request,
    runtime::Runtime, task_registry::Tasks,
};
use antiphon_seal::Principal;
use antiphon_store::{StoreErrorKind, TaskKey, TaskRow, TaskSent};
use antiphon_wire::{Complete, InputResponses, StringMember, escaped};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// The settings of a tool, by its name.
pub(crate) type SettingsOf<'a> = &'a (dyn Fn(&str) -> Option<&'a Settings> + Sync);

/// A task of the caller.
pub(super) struct Addressed<'s> {
    pub(super) tasks: &'s Tasks,
    pub(super) key: TaskKey,
    pub(super) row: TaskRow,
    /// The operational data, without the messages that wait in the queue.
    pub(super) shown: Shown,
    pub(super) principal: Option<Principal>,
}

impl Addressed<'_> {
    /// Loads the task again.
    pub(super) async fn reload(&mut self, server: &Arc<Runtime>) -> Result<(), Refusal> {
        let loaded = load(server, self.tasks, self.key, self.principal.as_ref()).await?;
        (self.row, self.shown) = loaded.ok_or_else(not_found)?;
        Ok(())
    }

    /// Forgets the content of the task, which may be large, until it is loaded again.
    pub(super) fn forget(&mut self) {
        self.row.snapshot = Default::default();
        self.row.messages = Default::default();
    }

    /// Returns the operational data with the messages that wait in the queue.
    pub(super) fn now(&self, server: &Runtime) -> Shown {
        view::with_messages(server, self.key, &self.row, self.shown.clone())
    }

    /// Waits for the right to open the content of the task, and loads it, with the whole task as it is then.
    pub(super) async fn opening(
        &mut self,
        server: &Runtime,
        caller: &Caller<'_>,
    ) -> Result<Opening, Refusal> {
        let (places, largest) = (&self.tasks.openings, server.limits.largest_opening());
        let open = |bytes| Opening::of(places, &server.request_budget, caller, bytes, largest);
        let bytes = Parts::content_length(&self.row.snapshot);
        let opening = open(bytes).await?;
        let loaded = load_content(server, self.tasks, self.key, &self.row).await?;
        let Some(loaded) = loaded else { return Ok(opening) };
        (self.row, self.shown) = loaded.ok_or_else(not_found)?;
        match Parts::content_length(&self.row.snapshot) {
            now if now <= bytes => Ok(opening),
            // It has grown meanwhile.
            now => {
                drop(opening);
                open(now).await
            }
        }
    }
}

/// The bytes of a snapshot that are read at first: those of the operational data, unless there are many questions.
const HEAD: usize = 4096;

/// The result of `tasks/get`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GotTask {
    result_type: Complete,
    #[serde(flatten)]
    task: WrittenTask,
    /// Held until the reply is written.
    #[serde(skip)]
    _opening: Opening,
}

/// Returns the state of a task.
pub(crate) async fn get(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
) -> Result<GotTask, Refusal> {
    let mut addressed = addressed(server, request, caller, settings).await?;
    let opening = addressed.opening(server, caller).await?;
    let Addressed { key, row, shown, .. } = addressed;
    let (bytes, server) = (Parts::content_length(&row.snapshot), Arc::clone(server));
    // The work has its place also if the request is cancelled meanwhile.
    let opened = beside(bytes, move || (WrittenTask::of(&server, key, &row, &shown), opening));
    let (task, opening) = opened.await;
    Ok(GotTask { result_type: Complete, task: task?, _opening: opening })
}

/// Takes answers to open questions of a task. Others are ignored.
pub(crate) async fn update(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    caller: &Caller<'_>,
    settings: SettingsOf<'_>,
) -> Result<(), Refusal> {
    let responses = responses(request)?;
    let mut addressed = addressed(server, request, caller, settings).await?;
    answer(server, caller, &mut addressed, &responses, settings).await
}

/// Returns the answers in a request. A request that names a member twice is refused, as that of a call is: the leg that receives
/// the answer would be.
pub(super) fn responses(request: &Request<'_>) -> Result<InputResponses, Refusal> {
    request.unique_names()?;
    let text = request.params.input_responses.map_or("", RawValue::get);
    serde_json::from_str(text).map_err(|_| Refusal::params("params.inputResponses must be an object"))
}

/// Sends those of the answers to a task that belong to open questions.
pub(super) async fn answer(
    server: &Arc<Runtime>,
    caller: &Caller<'_>,
    addressed: &mut Addressed<'_>,
    responses: &InputResponses,
    settings: SettingsOf<'_>,
) -> Result<(), Refusal> {
    let is_answered = |now: &Shown, key: &str| now.is_awaited(key) && responses.get(key).is_some();
    let now = addressed.now(server);
    if !now.questions.iter().any(|question| is_answered(&now, &question.key)) {
        return Ok(());
    }
    let opening = addressed.opening(server, caller).await?;
    let now = addressed.now(server);
    let is_answered = |key: &str| is_answered(&now, key);
    let Addressed { key, row, shown, .. } = addressed;
    let questions = view::questions(server, *key, row, shown, is_answered)?;
    let given = responses.iter().filter_map(|(key, answer)| {
        let question = questions.get(key)?;
        Some(GivenAnswer::new(server, key, question, answer))
    });
    let answers: Vec<GivenAnswer> = given.collect();
    drop(opening);
    let tool = settings(&shown.tool);
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
    if addressed.row.is_final || has_cancel(server, addressed.key, &addressed.row) {
        return Ok(());
    }
    send(server, &addressed, &Message::Cancel).await
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
    let key = sealed::parse(id).ok_or_else(not_found)?;
    let (row, shown) = load(server, tasks, key, principal.as_ref()).await?.ok_or_else(not_found)?;
    if let Some(settings) = settings(&shown.tool) {
        server.require_scopes(&settings.scopes, caller)?;
    }
    Ok(Addressed { tasks, key, row, shown, principal })
}

/// Returns a task, or nothing if this caller has no such task.
pub(super) async fn load(
    server: &Arc<Runtime>,
    tasks: &Tasks,
    key: TaskKey,
    principal: Option<&Principal>,
) -> Result<Option<(TaskRow, Shown)>, Refusal> {
    let loaded = load_any(server, tasks, key).await?;
    Ok(loaded.filter(|(_, shown)| {
        let is_of_caller = shown.is_of(principal);
        if !is_of_caller {
            tracing::warn!(task = %escaped(&key), "a request for a task of another caller: refused as unknown");
        }
        is_of_caller
    }))
}

/// Returns a task of any caller. The content of a long snapshot is missing: see [`load_content`].
pub(super) async fn load_any(
    server: &Runtime,
    tasks: &Tasks,
    key: TaskKey,
) -> Result<Option<(TaskRow, Shown)>, Refusal> {
    load_to(server, tasks, key, HEAD, |(shown, _)| shown).await
}

/// Loads a task again if its row lacks the content. Returns `None` if it does not, and `Some(None)` if the task is gone.
pub(super) async fn load_content(
    server: &Runtime,
    tasks: &Tasks,
    key: TaskKey,
    row: &TaskRow,
) -> Result<Option<Option<(TaskRow, Shown)>>, Refusal> {
    match Parts::ends(&row.snapshot) {
        Some((_, end)) if row.snapshot.len() < end => {
            load_to(server, tasks, key, end, |(_, content)| content).await.map(Some)
        }
        _ => Ok(None),
    }
}

/// Returns a task whose snapshot is there up to this one of its [ends](Parts::ends). `bytes` is what is read at first.
async fn load_to(
    server: &Runtime,
    tasks: &Tasks,
    key: TaskKey,
    mut bytes: usize,
    wanted: fn((usize, usize)) -> usize,
) -> Result<Option<(TaskRow, Shown)>, Refusal> {
    loop {
        let row = tasks.engine.get_head(key, bytes).await.map_err(|error| {
            tracing::error!(task = %escaped(&key), error = %escaped(&error), "a task cannot be loaded");
            Refusal::Store
        })?;
        let Some(row) = row else { return Ok(None) };
        match Parts::ends(&row.snapshot).map(wanted) {
            // It is another snapshot than before.
            Some(end) if row.snapshot.len() < end && end > bytes => bytes = end,
            _ => {
                let shown = Shown::open(server, key, &row.snapshot);
                return Ok(shown.map(|shown| (row, shown)));
            }
        }
    }
}

/// The same for a task of another caller, so that nobody learns which tasks there are.
pub(super) fn not_found() -> Refusal {
    Refusal::params("Task not found")
}
