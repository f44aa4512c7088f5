//! Tasks: calls that outlive their request. The extension `io.modelcontextprotocol/tasks`, and the two earlier forms of tasks as
//! other views of the same tasks (`carrier.rs`).
//!
//! ```text
//!  tools/call ──▶ start: the engine has a snapshot ──▶ the client has the id
//!                     │
//!   program ◀─────────┘ called by the engine
//!    │  next: answers, the end of a question's time, or nothing is missing? ──▶ no: the task waits
//!    ▼  yes
//!   leg: the request of the call, with the state and the answers, sent to the server itself
//!    │    └── meanwhile: questions beside a running step, progress, and the messages of the client
//!    ▼
//!   the snapshot is replaced: open questions, state, or the end
//!
//!  tasks/get ──▶ view: the snapshot, with the messages that wait in the queue
//!  tasks/update, tasks/cancel ──▶ a message in the queue ──▶ program
//! ```
//!
//! A snapshot has three parts (`sealed.rs`): what every request about the task opens, the content of its status, and the record. Polls do
//! not open the record.
//!
//! A leg of a task is the same as a leg of any call: it is admitted, claimed, replayed and sealed by the same code. Only its
//! state stays in the engine. So a task that is promoted, recovered after a crash, or taken over by another process begins its next leg
//! in the same way.

mod earlier;
mod next;
mod program;
mod questions;
mod requests;
mod result;
mod sealed;
mod snapshot;
mod view;
mod watch;

pub(crate) use earlier::{cancel as cancel_earlier, get as get_earlier, input_response, list, notify};
pub(crate) use program::begin;
pub(crate) use requests::{cancel, get, update};
pub(crate) use result::{TaskResult, result};
pub(crate) use watch::TaskWatch;

use crate::{
    at_most_once::{StoredTask, fingerprint},
    call::leg_end::task_key,
    errors::refusal::Refusal,
    options::TaskMode,
    request::{
        LegRequest,
        admit::Admitted,
        carrier::{TaskForm, ttl},
        receive::Request,
    },
    runtime::{Runtime, claims::owner},
};
use antiphon_seal::Principal;
use antiphon_store::{Fingerprint, NewTask, StoreErrorKind, TaskCreated, TaskKey};
use antiphon_wire::{CreateTaskResult, InputRequiredResult, Outcome, escaped};
use requests::load;
use sealed::Shown;
use serde_json::Value;
use snapshot::Snapshot;
use std::sync::Arc;

/// Returns true if the request is to become a task before its handler runs.
///
/// In a session the client decides, within the limits of the tool:
///
/// > If `execution.taskSupport` is not present or `"forbidden"`, [..] Servers **SHOULD** return a `-32601` (Method not found)
/// > error if a client attempts to do so.
///
/// > If `execution.taskSupport` is `"required"`, clients **MUST** invoke the tool as a task. Servers **MUST** return a `-32601`
/// > (Method not found) error if a client does not attempt to do so.
///
/// With the extension the tool decides:
///
/// > If a server is unable to service a request to a client that does not declare this extension capability without returning
/// > `CreateTaskResult`, the server **MUST** return an error with the code `-32021`
pub(crate) fn required(server: &Runtime, admitted: &Admitted<'_>) -> Result<bool, Refusal> {
    if admitted.carrier().is_a_task() {
        return Ok(false);
    }
    let leg = admitted.leg();
    let (request, tool) = (leg.request, || leg.target.to_owned());
    let wished = TaskForm::wished(server, request);
    match (leg.settings.task, wished) {
        (TaskMode::Never, Some(TaskForm::Session)) => Err(Refusal::TaskForbidden { tool: tool() }),
        // A client of the draft cannot know which tools have tasks, so its wish is ignored.
        (TaskMode::Never, _) => Ok(false),
        (TaskMode::Optional, wished) => Ok(wished == Some(TaskForm::Session)),
        (TaskMode::Required, None) if admitted.carrier().client_wishes_tasks() => {
            let has_tasks = TaskForm::of(server, request).is_some();
            Err(Refusal::TaskOnly { tool: tool(), has_tasks })
        }
        (TaskMode::Required, None) if !request.meta.tasks => Err(Refusal::task_extension()),
        // A call that began before every call of the tool was a task goes on as it began.
        (TaskMode::Required, _) => Ok(request.params.request_state.is_none()),
    }
}

/// Creates the task of a request whose handler has not run.
pub(crate) async fn start(
    server: &Arc<Runtime>,
    leg: &LegRequest<'_>,
    principal: Option<&Principal>,
) -> Result<CreateTaskResult, Refusal> {
    let key = sealed::random().map_err(|fault| {
        tracing::error!(cause = %escaped(&fault), "a task cannot be named");
        Refusal::Internal
    })?;
    let task = new_task(server, leg, principal, key, None)?;
    create(server, leg.request, leg.target, task).await
}

/// A call that becomes a task.
pub(crate) struct Promoted {
    pub(crate) key: TaskKey,
    /// The round that would leave in the place of the task. It has the state of the next leg.
    pub(crate) round: InputRequiredResult,
    /// The digest of the answers of the leg, if it was claimed.
    pub(crate) fingerprint: Option<Fingerprint>,
}

/// A task that is ready to be created.
pub(crate) struct NewTaskOf {
    new: NewTask,
    /// The result for the client.
    pub(crate) created: CreateTaskResult,
}

/// Returns the task that a call becomes which has begun.
pub(crate) fn promoted(
    server: &Runtime,
    leg: &LegRequest<'_>,
    principal: Option<&Principal>,
    promoted: &Promoted,
) -> Result<NewTaskOf, Refusal> {
    new_task(server, leg, principal, promoted.key, Some(promoted))
}

/// Creates the task of a reply that was committed, if the process died before it created the task.
pub(crate) async fn create_again(
    server: &Arc<Runtime>,
    admitted: &Admitted<'_>,
    stored: &StoredTask,
) -> Result<(), Refusal> {
    let (Some(tasks), Some(call), Some(record)) = (&server.tasks, admitted.call(), admitted.record()) else {
        return Err(Refusal::Internal);
    };
    let (leg, key) = (admitted.leg(), task_key(call));
    if load(server, tasks, key, admitted.principal()).await?.is_some() {
        return Ok(());
    }
    let Ok(Outcome::InputRequired(round)) = Outcome::<Value>::read(&stored.round) else {
        return Err(Refusal::Internal);
    };
    let fingerprint = fingerprint(call.secret(), record, admitted.answers());
    let promoted = Promoted { key, round, fingerprint: Some(fingerprint) };
    let task = new_task(server, leg, admitted.principal(), key, Some(&promoted))?;
    create(server, leg.request, leg.target, task).await.map(drop)
}

/// Returns the task that this leg has become, if it was sent before with the same answers: the reply was lost, and the task has gone on
/// meanwhile, so the store of calls does not have the reply any more.
pub(crate) async fn created_before(
    server: &Arc<Runtime>,
    admitted: &Admitted<'_>,
) -> Result<Option<CreateTaskResult>, Refusal> {
    let (Some(tasks), Some(call), Some(record)) = (&server.tasks, admitted.call(), admitted.record()) else {
        return Ok(None);
    };
    let leg = admitted.leg();
    if leg.settings.task == TaskMode::Never || admitted.carrier().is_a_task() || !leg.request.meta.tasks {
        return Ok(None);
    }
    let key = task_key(call);
    let Some((_, shown)) = load(server, tasks, key, admitted.principal()).await? else { return Ok(None) };
    let sent = fingerprint(call.secret(), record, admitted.answers());
    let is_same = shown.created_by == Some(sent.to_string());
    Ok(is_same.then(|| CreateTaskResult::new(view::task(server, key, &shown))))
}

fn new_task(
    server: &Runtime,
    leg: &LegRequest<'_>,
    principal: Option<&Principal>,
    key: TaskKey,
    promoted: Option<&Promoted>,
) -> Result<NewTaskOf, Refusal> {
    let (request, name) = (leg.request, leg.target);
    let ttl = ttl(server, request)?;
    let mut snapshot = Snapshot::new(server, request, name, principal, ttl);
    snapshot.request.kept = server.kept.write(leg.caller)?;
    let form = TaskForm::of(server, request);
    snapshot.keeps_cancellation = form != Some(TaskForm::Extension);
    if let Some(Promoted { round, fingerprint, .. }) = promoted {
        snapshot.created_by = fingerprint.map(|fingerprint| fingerprint.to_string());
        snapshot.state = round.request_state().map(ToOwned::to_owned);
        snapshot.questions.add(round.input_requests().iter(), &[], server.limits.engine.asks);
    }
    let sealed = snapshot.seal(server, key).ok_or(Refusal::Internal)?;
    let new = NewTask::new(key, owner(principal), sealed).with_ttl(ttl);
    let shown: Shown = snapshot.to_shown(String::new());
    let mut created = CreateTaskResult::new(view::task(server, key, &shown));
    if form == Some(TaskForm::Draft) {
        let text = format!("Task has been created for {name} tool invocation.");
        created.task.status_message = Some(text);
    }
    Ok(NewTaskOf { new, created })
}

/// Creates a task, and returns the result for the client.
pub(crate) async fn create(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    name: &str,
    NewTaskOf { new, created }: NewTaskOf,
) -> Result<CreateTaskResult, Refusal> {
    let (tasks, key) = (server.tasks.as_ref().ok_or(Refusal::Internal)?, new.task);
    if let Some(session) = &request.session {
        // Before the first change of the task, so that the session is notified of it.
        session.note_task(key);
    }
    // > A server **MUST NOT** return `CreateTaskResult` until the task is durably created
    let started = tasks.engine.start(&new, &tasks.options.limits).await.map_err(|error| {
        tracing::error!(tool = ?escaped(name), error = %escaped(&error), "a task cannot be created");
        if error.kind() == StoreErrorKind::Full { Refusal::Busy } else { Refusal::Store }
    })?;
    if started == TaskCreated::First {
        tasks.counters.created.add_one();
    }
    tracing::debug!(task = %escaped(&key), tool = ?escaped(name), "a call is a task");
    Ok(created)
}
