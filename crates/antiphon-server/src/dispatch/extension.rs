//! The methods of extensions: the gate, the scopes, the params, and the result or the error of the handler. Those of tasks have
//! handlers of this crate, by the form of tasks in the request.

use crate::{
    call::{emit::Emitter, leg::ConcurrencyPermit},
    dispatch::reply::{encode, write_of_task},
    errors::{Error, refusal::Refusal},
    extension::{Declared, ExtensionCtx, ExtensionMessage, Handler, Method},
    identity::Caller,
    offer::offers::Offers,
    reply::WithServerInfo,
    request::{
        RequestData,
        carrier::{HandlerPlace, TaskForm},
        receive::Request,
    },
    runtime::{CAUSE, Runtime},
    session::InSession,
    task::{self, TaskResult},
    trace::TraceContext,
};
use antiphon_wire::{
    CallToolResult, ErrorObject, InputRequests, Meta, TaskAcknowledged, escaped, method, with_related_task,
};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use std::{borrow::Cow, sync::Arc};

/// Answers a request of an extension, or runs the handler of a notification; then the body is empty.
pub(super) async fn extension(
    server: &Arc<Runtime>,
    offers: &Offers,
    method: &Method,
    request: &Request<'_>,
    caller: &Caller<'_>,
) -> Result<Vec<u8>, Refusal> {
    match (&method.handler, request.is_notification) {
        (Handler::Tasks, false) => tasks(server, offers, request, caller).await,
        (Handler::Request(run), false) => {
            let run = |ctx| run(ctx, request.text);
            let result = call(server, &method.extension, request, caller, run).await?;
            let result = result.map_err(|error| failed(server, request, error))?;
            match &request.session {
                Some(_) => encode(request, &result),
                None => encode(request, &complete(server, result)),
            }
        }
        (Handler::Notification(run), true) => {
            let run = |ctx| run(ctx, request.text);
            if let Err(error) = call(server, &method.extension, request, caller, run).await? {
                log_failure(request, &error);
            }
            Ok(Vec::new())
        }
        _ => Err(Refusal::Method(request.method.to_string())),
    }
}

/// Checks a message, and runs its handler. The inner error is that of the handler.
async fn call<T>(
    server: &Arc<Runtime>,
    extension: &Declared,
    request: &Request<'_>,
    caller: &Caller<'_>,
    run: impl FnOnce(ExtensionCtx) -> Result<BoxFuture<'static, Result<T, Error>>, String>,
) -> Result<Result<T, Error>, Refusal> {
    // Two readers of the params cannot read two different values.
    request.unique_names()?;
    server.require_scopes(&extension.scopes, caller)?;
    // A handler would take the caller for an anonymous one.
    let principal = server.identified(&request.method, caller)?;
    let data = RequestData::new(Cow::Owned(request.method.to_string()), request, caller);
    // > A server **MUST NOT** rely on capabilities the client has not declared.
    if extension.requires_client && data.extension(extension.id.as_str()).is_none() {
        return Err(Refusal::Extension { id: Cow::Owned(extension.id.to_string()) });
    }
    let permit = ConcurrencyPermit::take(server, HandlerPlace::of(request), caller, principal.as_ref());
    let Some(_permit) = permit else { return Err(Refusal::Busy) };
    let ctx = ExtensionCtx(Arc::new(ExtensionMessage {
        extension: extension.id.clone(),
        server: Arc::clone(server),
        principal,
        bearer: caller.bearer().cloned(),
        client_info: request.meta.client_info.map(ToOwned::to_owned),
        version: request.protocol_version(),
        request: data,
        trace: TraceContext::of(request.params.meta),
        emitter: Emitter::of(request, caller.outbox, false),
        outbox: caller.outbox.cloned(),
    }));
    let answered = run(ctx).map_err(Refusal::params)?;
    tokio::time::timeout(server.limits.handler_timeout, answered).await.map_err(|_elapsed| {
        tracing::error!(method = ?escaped(&request.method), limit = ?server.limits.handler_timeout, "the handler of an extension took too long and was dropped");
        Refusal::Internal
    })
}

/// Returns the refusal for the error of a handler.
fn failed(server: &Runtime, request: &Request<'_>, error: Error) -> Refusal {
    let error = match error.downcast::<ErrorObject>() {
        Ok(error) => return Refusal::Again(Box::new(error)),
        Err(error) => error,
    };
    match error.user_facing_text() {
        Some(text) => Refusal::UserFacing(text.to_owned()),
        None => {
            log_failure(request, &error);
            server.hidden(&error.to_string())
        }
    }
}

fn log_failure(request: &Request<'_>, error: &Error) {
    tracing::error!(method = ?escaped(&request.method), cause = %escaped(error).limit(CAUSE), "the handler of an extension failed");
}

/// Adds the members that every result of 2026-07-28 has.
fn complete(server: &Runtime, mut result: Map<String, Value>) -> Map<String, Value> {
    // > Extensions **MAY** add additional `ResultType` values.
    result.entry("resultType").or_insert_with(|| "complete".into());
    let meta = result.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(members) = meta {
        let mut meta = Meta(std::mem::take(members));
        server.server_info.join(&mut meta);
        *members = meta.0;
    }
    result
}

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
            write_of_task(server, request, &task)
        }
        (TaskForm::Session | TaskForm::Draft, method::TASKS_CANCEL) => {
            let task = task::cancel_earlier(server, request, caller, settings).await?;
            write_of_task(server, request, &task)
        }
        (TaskForm::Session | TaskForm::Draft, method::TASKS_LIST) => {
            let page = task::list(server, request, caller, settings, offers.profile.page_size).await?;
            write_of_task(server, request, &page)
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
