//! The methods of tasks, by the form of tasks in the request.

use crate::{
    dispatch::encode::encode,
    errors::refusal::Refusal,
    identity::Caller,
    offer::offers::Offers,
    reply::WithServerInfo,
    request::{carrier::TaskForm, receive::Request},
    runtime::Runtime,
    session::InSession,
    task::{self, TaskResult},
};
use antiphon_wire::{
    CallToolResult, Complete, CreateTaskResult, InputRequests, LegacyCreateTaskResult, Meta,
    TaskAcknowledged, method, with_related_task,
};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Answers a request about tasks.
pub(super) async fn tasks(
    server: &Arc<Runtime>,
    offers: &Offers,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<Vec<u8>, Refusal> {
    let settings = |name: &str| offers.lists.tools.get(name).map(|tool| &tool.tool.settings);
    let settings = &settings;
    let server_info = &*server.server_info.raw;
    let Some(form) = TaskForm::of(server, request) else { return Err(without_form(request)) };
    match (form, &*request.method) {
        (TaskForm::Extension, method::TASKS_GET) => {
            let result = &task::get(server, request, caller, settings).await?;
            encode(request, &WithServerInfo { result, server_info })
        }
        (TaskForm::Extension, method::TASKS_UPDATE) => {
            task::update(server, request, caller, settings).await?;
            encode(request, &WithServerInfo { result: &TaskAcknowledged::default(), server_info })
        }
        (TaskForm::Extension, method::TASKS_CANCEL) => {
            task::cancel(server, request, caller, settings).await?;
            encode(request, &WithServerInfo { result: &TaskAcknowledged::default(), server_info })
        }
        (TaskForm::Session | TaskForm::Draft, method::TASKS_GET) => {
            let task = task::get_earlier(server, request, caller, settings).await?;
            write(server, request, &task)
        }
        (TaskForm::Session | TaskForm::Draft, method::TASKS_CANCEL) => {
            let task = task::cancel_earlier(server, request, caller, settings).await?;
            write(server, request, &task)
        }
        (TaskForm::Session | TaskForm::Draft, method::TASKS_LIST) => {
            let page = task::list(server, request, caller, settings, offers.profile.page_size).await?;
            write(server, request, &page)
        }
        (form @ (TaskForm::Session | TaskForm::Draft), method::TASKS_RESULT) => {
            let (id, result) = task::result(server, request, caller, settings, form).await?;
            write_result(server, request, &id, result)
        }
        (TaskForm::Draft, method::TASKS_INPUT_RESPONSE) => {
            let id = task::input_response(server, request, caller, settings).await?;
            let mut acknowledged = TaskAcknowledged::default();
            acknowledged.meta = Some(related(server, &id));
            encode(request, &acknowledged)
        }
        (TaskForm::Draft, method::TASKS_UPDATE) => Err(Refusal::task_extension()),
        (_, other) => Err(Refusal::Method(other.to_owned())),
    }
}

/// > Servers **MUST** return this error for non-declaring clients issuing `tasks/get`, `tasks/update`, and `tasks/cancel`
/// > requests.
///
/// In a session without tasks, and for the methods of earlier forms, there is no such method.
fn without_form(request: &Request<'_>) -> Refusal {
    match (&*request.method, &request.session) {
        (method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL, None) => Refusal::task_extension(),
        (other, _) => Refusal::Method(other.to_owned()),
    }
}

/// Writes the result of a call that has become a task.
pub(super) fn write_created(
    server: &Runtime,
    request: &Request<'_>,
    created: CreateTaskResult,
) -> Result<Vec<u8>, Refusal> {
    match TaskForm::of(server, request) {
        // > Receivers that accept a task-augmented request **MUST** return a `CreateTaskResult` as the response.
        Some(TaskForm::Session | TaskForm::Draft) => {
            write(server, request, &LegacyCreateTaskResult::new(created.task))
        }
        Some(TaskForm::Extension) | None => {
            encode(request, &WithServerInfo { result: &created, server_info: &server.server_info.raw })
        }
    }
}

/// A result of the draft: as that of an earlier revision, with the members that every result of 2026-07-28 has.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DraftResult<'a, T> {
    result_type: Complete,
    #[serde(flatten)]
    result: &'a T,
}

fn write(server: &Runtime, request: &Request<'_>, result: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    match &request.session {
        Some(_) => encode(request, result),
        None => {
            let result = &DraftResult { result_type: Complete, result };
            encode(request, &WithServerInfo { result, server_info: &server.server_info.raw })
        }
    }
}

/// > The `tasks/result` operation **MUST** include this metadata in its response, as the result structure itself does not contain
/// > the task ID.
fn write_result(
    server: &Runtime,
    request: &Request<'_>,
    id: &str,
    result: TaskResult,
) -> Result<Vec<u8>, Refusal> {
    match (result, &request.session) {
        (TaskResult::Final(result, _opening), Some(session)) => {
            let mut result = read(&result)?;
            result.meta = Some(result.meta.unwrap_or_default().with_related_task(id));
            encode(request, &InSession { version: session.version(), result: &result })
        }
        (TaskResult::Final(result, _opening), None) => {
            encode(request, &with_related_task(&result, id).map_err(|_fault| Refusal::Internal)?)
        }
        (TaskResult::Questions(input_requests, _opening), _) => {
            let meta = related(server, id);
            encode(request, &OpenQuestions { result_type: "input_required", input_requests, meta })
        }
    }
}

/// The open questions of a task as the result of `tasks/result`: a round without a state. The leg that asked had the permit.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OpenQuestions {
    result_type: &'static str,
    input_requests: InputRequests,
    #[serde(rename = "_meta")]
    meta: Meta,
}

/// Reads the result of a call. It was written by this server.
fn read(result: &RawValue) -> Result<CallToolResult, Refusal> {
    serde_json::from_str(result.get()).map_err(|_fault| Refusal::Internal)
}

fn related(server: &Runtime, id: &str) -> Meta {
    let mut meta = Meta::for_related_task(id);
    server.server_info.join(&mut meta);
    meta
}
