//! One leg: a request of a call, its result, and the deadline and the cancellation of the whole call.

use crate::{
    cache::Key,
    call::{
        Call, CallKind, CallOptions,
        error_kind::ClientErrorKind,
        outcome::{Final, Leg, round_of_urls},
        pending::Outgoing,
        task_handle::TaskForm,
    },
    lists::tools::ServerTools,
    request::{BodyWriter, Core, RequestSpec, fault::RequestFault},
};
use antiphon_wire::{
    CallToolResult, CreateTaskResult, ErrorCode, InputResponses, LegacyCreateTaskResult, Meta, OutcomeFault,
    RequestId, TaskMetadata, TaskSupport, lock::Lock, write_request,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::time::sleep;

/// The place of a leg in its call.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub(crate) round: u32,
    pub(crate) leg: u32,
}

/// Sends the legs of calls.
pub(crate) struct Legs<'a> {
    pub(crate) tools: &'a ServerTools,
    /// `true` if the program drives the call, and so can receive a task in the place of a result.
    pub(crate) by_hand: bool,
}

impl Legs<'_> {
    /// Sends one leg of a call and reads its outcome.
    pub(crate) async fn leg<T: Final>(
        &self,
        call: &Call,
        with: &Outgoing<'_>,
        at: Position,
    ) -> Result<Leg<T>, RequestFault> {
        let options = call.options();
        let mut spec = RequestSpec {
            method: call.method().into(),
            name: Some(call.name()),
            timeout: options.leg_timeout.unwrap_or(self.tools.lists.connection.core.bounds.leg_timeout),
            headers: Vec::new(),
            round: at.round,
            leg: at.leg,
            on_progress: options.on_progress.as_ref(),
            log_level: options.log_level,
            arguments: call.shared_arguments(),
            origin: None,
            draft: false,
            carries: with.answers.is_some() || with.state.is_some(),
            quiet: false,
            added: None,
        };
        let write = |id: &RequestId, meta| write_leg(call, with, None, id, meta);
        let leg = match call.kind() {
            CallKind::Tool => self.tool_leg(call, with, &mut spec).await,
            CallKind::Prompt => self
                .tools
                .lists
                .connection
                .request(&spec, &write)
                .await
                .and_then(|result| read_leg(call.kind(), &result)),
            CallKind::Resource => self.resource_leg(call, with, &spec, &write).await,
        };
        round_of_urls(&self.tools.lists.connection, leg.and_then(|leg| self.declared_task(call, leg)))
    }

    /// Refuses a task that the client did not declare to support with this request.
    ///
    /// > A client that receives `CreateTaskResult` in response to an unsupported request type **MUST** interpret this as an
    /// > invalid response to the request.
    fn declared_task<T>(&self, call: &Call, leg: Leg<T>) -> Result<Leg<T>, RequestFault> {
        let Leg::Task(created, form) = leg else { return Ok(leg) };
        let connection = &self.tools.lists.connection;
        // The other forms of tasks are read only if the request asked for a task.
        let is_declared =
            form != TaskForm::Extension || connection.core.tasks && connection.current_session().is_none();
        if call.kind() == CallKind::Tool && is_declared {
            return Ok(Leg::Task(created, form));
        }
        Err(task_fault(call.kind(), Some(created.task.task_id)))
    }

    /// Sends a leg of `tools/call`, with the headers that the tool requires. The result must fit its output schema.
    async fn tool_leg<T: Final>(
        &self,
        call: &Call,
        with: &Outgoing<'_>,
        spec: &mut RequestSpec<'_>,
    ) -> Result<Leg<T>, RequestFault> {
        let mut tool = self.tools.known_tool(call.name());
        spec.headers = self.tools.prepare(call.arguments(), tool.as_deref())?;
        let mut sent = self.send(call, with, spec, true).await;
        if sent.is_refused_in_draft() {
            // The tool has no tasks. The server did nothing, so answers and state may be sent again.
            sent = self.send(call, with, spec, false).await;
        }
        // > If the server rejects a request with a `HeaderMismatch` error because required `Mcp-Param-*` headers are
        // > missing or do not match the body, the client **SHOULD** call `tools/list` to check for changes to the
        // > tool's `inputSchema`, then retry the original request with the appropriate headers.
        // The server refused the request before it acted on it, so answers and state may be sent again.
        let is_mismatch = matches!(&sent.reply, Err(RequestFault::Server(error)) if error.code == ErrorCode::HEADER_MISMATCH)
            && self.tools.mirrors_parameters();
        if (is_mismatch || self.may_require_task::<T>(call, &sent))
            && let Some(now) = self.tools.relisted_tool(call.name()).await
            && (is_mismatch || now.task_support() == Some(TaskSupport::Required))
        {
            spec.headers = self.tools.prepare(call.arguments(), Some(&now))?;
            sent = self.send(call, with, spec, true).await;
            tool = Some(now);
        }
        let result = sent.reply?;
        let leg: Leg<T> = match (read_leg(call.kind(), &result), sent.task) {
            (Err(RequestFault::Task { id }), Some(form)) => match LegacyCreateTaskResult::of(&result) {
                Some(created) => Leg::Task(CreateTaskResult::new(created.task.task), form),
                None => return Err(RequestFault::Task { id }),
            },
            // A session knows no `resultType`: the members of the extension beside the task mean nothing there.
            (Ok(leg @ Leg::Task(..)), Some(TaskForm::Session)) => match LegacyCreateTaskResult::of(&result) {
                Some(created) => Leg::Task(CreateTaskResult::new(created.task.task), TaskForm::Session),
                None => leg,
            },
            (leg, _) => leg?,
        };
        if let Leg::Complete(result) = &leg
            && let Some(result) = result.of_tool()
        {
            self.tools.check_output(call.name(), tool.as_deref(), result).await?;
        }
        Ok(leg)
    }

    /// Sends `tools/call`, as a task where the client decides that and `may_ask`.
    async fn send(
        &self,
        call: &Call,
        with: &Outgoing<'_>,
        spec: &RequestSpec<'_>,
        may_ask: bool,
    ) -> SentCall {
        // The era, which decides the form, may be detected by this very request.
        let task = Lock::new(None);
        let write = |id: &RequestId, meta| {
            let form = self.wanted_task(call).filter(|_| may_ask);
            *task.lock() = form;
            let ttl = call.options().task_ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
            write_leg(call, with, form.map(|_| TaskMetadata::new(ttl)), id, meta)
        };
        let reply = self.tools.lists.connection.request(spec, &write).await;
        SentCall { reply, task: task.into_inner() }
    }

    /// The form of the task that the call asks for; `None` if it asks for none. In the extension, the server decides.
    fn wanted_task(&self, call: &Call) -> Option<TaskForm> {
        let connection = &self.tools.lists.connection;
        let support = self.tools.known_tool(call.name()).and_then(|tool| tool.task_support());
        match connection.current_session() {
            // > If `execution.taskSupport` is `"required"`, clients **MUST** invoke the tool as a task.
            // > If `execution.taskSupport` is not present or `"forbidden"`, clients **MUST NOT** attempt to invoke the tool as a
            // > task.
            Some(session) if connection.core.tasks => match support {
                Some(TaskSupport::Required) if session.has_tasks() => Some(TaskForm::Session),
                Some(TaskSupport::Optional) if session.has_tasks() && self.by_hand => Some(TaskForm::Session),
                _ => None,
            },
            Some(_) => None,
            // The draft has no list of its own that says so: a server refuses the call of a tool without tasks, or ignores it.
            None if support == Some(TaskSupport::Forbidden) => None,
            None => connection.core.draft_tasks.then_some(TaskForm::Draft),
        }
    }

    /// Returns `true` if a session's server may have refused the call because the tool requires a task.
    ///
    /// > Servers **MUST** return a `-32601` (Method not found) error if a client does not attempt to do so.
    ///
    /// Some servers make a tool's error of it. If the tool requires a task, such a server did nothing in either case.
    fn may_require_task<T: Final>(&self, call: &Call, sent: &SentCall) -> bool {
        let connection = &self.tools.lists.connection;
        let has_tasks = connection.current_session().is_some_and(|session| session.has_tasks());
        if sent.task.is_some() || !has_tasks || !connection.core.tasks {
            return false;
        }
        match &sent.reply {
            Err(RequestFault::Server(error)) => error.code == ErrorCode::METHOD_NOT_FOUND,
            Err(_) => false,
            Ok(_) if self.tools.has_list() => false,
            Ok(result) => match T::read(call.kind(), result) {
                Ok(Leg::Complete(result)) => result.of_tool().is_some_and(CallToolResult::failed),
                _ => false,
            },
        }
    }

    /// Sends a leg of `resources/read`. Nothing is sent if the cache holds its result.
    async fn resource_leg<T: Final>(
        &self,
        call: &Call,
        with: &Outgoing<'_>,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<Leg<T>, RequestFault> {
        // > requests carrying `inputResponses` or `requestState` **MUST NOT** be cached
        if with.answers.is_some() || with.state.is_some() {
            return read_leg(call.kind(), &self.tools.lists.connection.request(spec, write).await?);
        }
        let cache = self.tools.lists.cache();
        let key = Key::Resource(call.name().to_owned());
        if let Some(kept) = cache.get(&key).filter(|_| !call.options().fresh)
            && let Ok(leg) = read_leg(call.kind(), &kept)
        {
            return Ok(leg);
        }
        let asked = cache.generation(&key);
        let result = self.tools.lists.connection.request(spec, write).await?;
        let leg = read_leg(call.kind(), &result)?;
        // > Interim results with `resultType: "input_required"` [...] are not cacheable
        if let Leg::Complete(_) = &leg {
            cache.put(key, asked, &result);
        }
        Ok(leg)
    }
}

/// A `tools/call` that was sent.
struct SentCall {
    reply: Result<Box<RawValue>, RequestFault>,
    /// The form of the task that it asked for.
    task: Option<TaskForm>,
}

impl SentCall {
    /// Returns `true` if a server of the draft may have refused the call because it asked for a task.
    fn is_refused_in_draft(&self) -> bool {
        let error = self.reply.as_ref().err().and_then(RequestFault::server_error);
        self.task == Some(TaskForm::Draft)
            && error.is_some_and(|error| error.code == ErrorCode::METHOD_NOT_FOUND)
    }
}

fn read_leg<T: Final>(called: CallKind, result: &RawValue) -> Result<Leg<T>, RequestFault> {
    T::read(called, result).map_err(|fault| match fault {
        OutcomeFault::Task { id } => task_fault(called, id),
        fault => RequestFault::Result { ask: misplaced_ask(&fault, result), fault },
    })
}

/// The fault of a task that is no result. Only tool calls can become tasks.
fn task_fault(called: CallKind, id: Option<String>) -> RequestFault {
    match called {
        CallKind::Tool => RequestFault::Task { id },
        _ => RequestFault::Result { fault: OutcomeFault::Task { id }, ask: None },
    }
}

/// The params of a leg. All three methods have the same, but for the name of the name.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LegParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_responses: Option<&'a InputResponses>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskMetadata>,
    #[serde(rename = "_meta", skip_serializing_if = "Meta::is_empty")]
    meta: Meta,
}

/// > If an `InputRequiredResult` contains the `requestState` field, the client **MUST** echo back the exact value of
/// > that field when retrying the original request.
fn write_leg(
    call: &Call,
    with: &Outgoing<'_>,
    task: Option<TaskMetadata>,
    id: &RequestId,
    meta: Meta,
) -> Result<Vec<u8>, serde_json::Error> {
    let is_resource = call.kind() == CallKind::Resource;
    let params = LegParams {
        name: (!is_resource).then(|| call.name()),
        uri: is_resource.then(|| call.name()),
        arguments: call.arguments(),
        input_responses: with.answers.as_ref(),
        request_state: with.state,
        task,
        meta,
    };
    write_request(id, call.method(), &params)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WithAsks {
    input_requests: serde_json::Map<String, serde_json::Value>,
}

/// Key and method of the first ask of a result that should not have any.
fn misplaced_ask(fault: &OutcomeFault, result: &RawValue) -> Option<(String, String)> {
    if !matches!(fault, OutcomeFault::AsksWithoutResultType) {
        return None;
    }
    let asks = serde_json::from_str::<WithAsks>(result.get()).ok()?.input_requests;
    let (key, ask) = asks.into_iter().next()?;
    let method = ask.get("method").and_then(|method| method.as_str()).unwrap_or("no method").to_owned();
    Some((key, method))
}

/// Ends the work when the call is cancelled or takes too long. The work is dropped then, with its open callbacks.
pub(crate) async fn within<T>(
    core: &Core,
    options: &CallOptions,
    work: impl Future<Output = Result<T, ClientErrorKind>>,
) -> Result<T, ClientErrorKind> {
    let limit = options.call_timeout.or(core.bounds.call_timeout);
    let cancelled = async {
        match &options.cancel {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancelled => Err(ClientErrorKind::Cancelled),
        outcome = work => outcome,
        () = sleep(limit.unwrap_or_default()), if limit.is_some() => {
            Err(ClientErrorKind::Deadline(limit.unwrap_or(Duration::MAX)))
        }
    }
}
