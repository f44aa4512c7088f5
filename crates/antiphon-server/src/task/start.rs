//! The creation of tasks.

use super::{id, snapshot::Snapshot, view, wake::wake};
use crate::{
    Request, TaskMode, claims::owner, refusal::Refusal, request::admit::LegRequest, runtime::Runtime,
};
use antiphon_seal::Principal;
use antiphon_store::{NewTask, StoreErrorKind, TaskCreated, TaskKey};
use antiphon_wire::{CreateTaskResult, InputRequiredResult, escaped};
use std::sync::Arc;

/// Returns true if the request is to become a task before its handler runs.
///
/// > If a server is unable to service a request to a client that does not declare this extension capability without returning
/// > `CreateTaskResult`, the server **MUST** return an error with the code `-32021`
pub(crate) fn required(leg: &LegRequest<'_>) -> Result<bool, Refusal> {
    let request = leg.request;
    if leg.settings.task != TaskMode::Required || leg.caller.task.is_some() {
        return Ok(false);
    }
    if request.session.is_some() {
        return Err(Refusal::TaskOnly { tool: leg.target.to_owned() });
    }
    if !request.meta.tasks {
        return Err(Refusal::TaskExtension);
    }
    // A call that began before every call of the tool was a task goes on as it began.
    Ok(request.params.request_state.is_none())
}

/// Creates the task of a request whose handler has not run.
pub(crate) async fn start(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    name: &str,
    principal: Option<&Principal>,
) -> Result<CreateTaskResult, Refusal> {
    let key = id::random().map_err(|fault| {
        tracing::error!(cause = %escaped(&fault), "a task cannot be named");
        Refusal::Internal
    })?;
    create(server, request, name, principal, key, None).await
}

/// Creates the task of a call that has begun. If it cannot be created now, the round leaves in its place, and the client comes
/// back with it.
pub(crate) async fn promote(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    name: &str,
    principal: Option<&Principal>,
    key: TaskKey,
    round: InputRequiredResult,
) -> Result<CreateTaskResult, (Refusal, InputRequiredResult)> {
    create(server, request, name, principal, key, Some(&round)).await.map_err(|refusal| (refusal, round))
}

async fn create(
    server: &Arc<Runtime>,
    request: &Request<'_>,
    name: &str,
    principal: Option<&Principal>,
    key: TaskKey,
    round: Option<&InputRequiredResult>,
) -> Result<CreateTaskResult, Refusal> {
    let tasks = server.tasks.as_ref().ok_or(Refusal::Internal)?;
    let mut snapshot = Snapshot::new(server, request, name, principal, tasks.options.ttl);
    if let Some(round) = round {
        snapshot.state = round.request_state().map(ToOwned::to_owned);
        snapshot.questions.replace(round.input_requests().iter());
    }
    let sealed = snapshot.seal(server, key).ok_or(Refusal::Internal)?;
    let new = NewTask { task: key, owner: owner(principal), snapshot: sealed, ttl: tasks.options.ttl };
    // > A server **MUST NOT** return `CreateTaskResult` until the task is durably created
    let created = tasks.store.create(&new, &tasks.options.limits).await.map_err(|error| {
        tracing::error!(tool = ?escaped(name), error = %escaped(&error), "a task cannot be created");
        if error.kind() == StoreErrorKind::Full { Refusal::Busy } else { Refusal::Store }
    })?;
    if created == TaskCreated::First {
        tasks.counters.created.add_one();
    }
    tracing::debug!(task = %escaped(&key), tool = ?escaped(name), "a call is a task");
    wake(server, key);
    Ok(CreateTaskResult::new(view::task(server, key, &snapshot)))
}
