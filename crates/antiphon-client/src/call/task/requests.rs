//! The requests about a task, in the form in which the server speaks about tasks, and the end of a task. A task without its
//! result in `tasks/get` ends by `tasks/result`.

use crate::{
    asks::questions::Origin,
    call::{
        CallKind, CallOptions,
        error_kind::ClientErrorKind,
        outcome::{Final, Leg},
        task::pace::Failures,
        task_handle::{TaskForm, TaskHandle},
    },
    lists::tools::ServerTools,
    request::{BodyWriter, RequestSpec, fault::RequestFault},
    session::{Connection, EraState},
};
use antiphon_wire::{
    DetailedTask, DraftTaskResult, ErrorCode, ErrorObject, GetTaskResult, InputRequests, InputResponses,
    LegacyTask, Meta, OutcomeFault, RequestId, Task, TaskDetail, TaskInputParams, TaskParams, TaskStatus,
    UpdateTaskParams, escaped, method, write_request,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The time limit of a request that waits for the end of a task. The polls beside it show if the server is gone.
const WITHOUT_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Sends requests about tasks. Each has a new id, and the id of the task as its name: HTTP repeats it in `Mcp-Name`.
///
/// > the client **MUST** set the `Mcp-Name` header to the value of `params.taskId`.
#[derive(Clone, Copy)]
pub(crate) struct TaskRequests<'a> {
    pub(crate) connection: &'a Connection,
    /// The time limit of one request.
    pub(crate) timeout: Duration,
    /// The form in which the task was made.
    pub(crate) form: TaskForm,
}

/// The reply to `tasks/get`.
pub(crate) enum GetReply {
    /// The task with its questions, its result or its error.
    Whole(DetailedTask),
    /// The task alone: `tasks/result` has the rest.
    Bare(Task, TaskForm),
}

/// A task with its questions, its result or its error.
pub(crate) struct WholeTask {
    pub(crate) task: DetailedTask,
    /// The state that the answers carry, in the draft.
    pub(crate) state: Option<String>,
    /// The form in which the server speaks now.
    pub(crate) form: TaskForm,
}

/// The reply to `tasks/result`.
pub(crate) enum TaskResult {
    Final(Box<RawValue>),
    Asks(InputRequests, Option<String>),
}

impl TaskRequests<'_> {
    /// Gets the task.
    pub(crate) async fn get(self, task_id: &str) -> Result<GetReply, RequestFault> {
        let form = self.form_now().await?;
        let write = |id: &RequestId, meta: Meta| {
            write_request(id, method::TASKS_GET, &TaskParams::new(task_id, meta))
        };
        let (result, form) = self.send_or_as_extension(method::TASKS_GET, task_id, form, &write).await;
        let result = result?;
        match form {
            TaskForm::Extension => read(&result).map(|GetTaskResult(task)| GetReply::Whole(task)),
            form => read(&result).map(|LegacyTask { task, .. }| GetReply::Bare(task, form)),
        }
    }

    /// Gets the task with its questions, its result or its error. The questions of a task of a session come while
    /// `tasks/result` is under way only, so there are none here.
    pub(crate) async fn get_whole(self, task_id: &str) -> Result<WholeTask, RequestFault> {
        let (mut task, form) = match self.get(task_id).await? {
            GetReply::Whole(task) => return Ok(WholeTask { task, state: None, form: TaskForm::Extension }),
            GetReply::Bare(task, form) => (task, form),
        };
        let result = match (task.status, form) {
            (TaskStatus::Working | TaskStatus::Cancelled, _) => {
                return Ok(WholeTask { task: DetailedTask::new(task, TaskDetail::None), state: None, form });
            }
            (TaskStatus::InputRequired, TaskForm::Session) => {
                let task = DetailedTask::new(task, TaskDetail::InputRequests(InputRequests::new()));
                return Ok(WholeTask { task, state: None, form });
            }
            _ => self.result(task_id, None, Some(self.timeout)).await,
        };
        let (status, detail, state) = match result {
            // A tool's error is a failed task there, and a completed one in the extension.
            Ok(TaskResult::Final(result)) => (TaskStatus::Completed, TaskDetail::Result(result), None),
            Ok(TaskResult::Asks(asks, state)) => {
                (TaskStatus::InputRequired, TaskDetail::InputRequests(asks), state)
            }
            Err(RequestFault::Server(error) | RequestFault::UnknownTask(error))
                if task.status == TaskStatus::Failed =>
            {
                (TaskStatus::Failed, TaskDetail::Error(error), None)
            }
            Err(fault) => return Err(fault),
        };
        task.status = status;
        Ok(WholeTask { task: DetailedTask::new(task, detail), state, form })
    }

    /// Waits for the result of a task, or in the draft for its questions. On a session, the server sends its questions
    /// meanwhile: `origin` is the call that they belong to.
    ///
    /// > When the requestor encounters the `input_required` status, it **SHOULD** preemptively call `tasks/result`
    pub(crate) async fn result(
        self,
        task_id: &str,
        origin: Option<&Origin>,
        limit: Option<Duration>,
    ) -> Result<TaskResult, RequestFault> {
        let form = self.form_now().await?;
        let write = |id: &RequestId, meta: Meta| {
            write_request(id, method::TASKS_RESULT, &TaskParams::new(task_id, meta))
        };
        let requests = Self { timeout: limit.unwrap_or(WITHOUT_LIMIT), ..self };
        let spec = RequestSpec { origin, ..requests.spec(method::TASKS_RESULT, task_id, form) };
        let result = requests.exchange(&spec, &write).await?;
        if form == TaskForm::Session {
            return Ok(TaskResult::Final(result));
        }
        match DraftTaskResult::read(&result) {
            Ok(DraftTaskResult::InputRequired(asks)) => {
                let (asks, state) = asks.into_parts();
                Ok(TaskResult::Asks(asks, state))
            }
            Ok(_) => Ok(TaskResult::Final(result)),
            Err(fault) => Err(malformed(fault)),
        }
    }

    /// Sends answers. The server may ignore those whose questions are not open.
    pub(crate) async fn update(
        self,
        task_id: &str,
        answers: &InputResponses,
        state: Option<&str>,
    ) -> Result<(), RequestFault> {
        let form = self.form_now().await?;
        let sent = match form {
            TaskForm::Extension => {
                let write = |id: &RequestId, meta: Meta| {
                    let params = UpdateTaskParams::new(task_id, answers.clone(), meta);
                    write_request(id, method::TASKS_UPDATE, &params)
                };
                self.send(method::TASKS_UPDATE, task_id, form, &write).await
            }
            TaskForm::Draft => {
                let write = |id: &RequestId, meta: Meta| {
                    let mut params = TaskInputParams::new(task_id, answers.clone(), meta);
                    // The schema has the id in `_meta`, the prose in the params.
                    params.id = Some(task_id.to_owned());
                    params.request_state = state.map(str::to_owned);
                    write_request(id, method::TASKS_INPUT_RESPONSE, &params)
                };
                self.send(method::TASKS_INPUT_RESPONSE, task_id, form, &write).await
            }
            // The answers there are responses to requests of the server.
            TaskForm::Session => return Err(RequestFault::TaskOnSession),
        };
        match sent {
            Ok(_) => Ok(()),
            // The same code is that of an answer that the server does not accept: the task itself decides.
            Err(RequestFault::UnknownTask(error)) => {
                self.get(task_id).await?;
                Err(RequestFault::Server(error))
            }
            Err(fault) => Err(fault),
        }
    }

    /// Asks the server to cancel the task.
    ///
    /// > The request signals intent, and the server decides whether and when to honor it.
    pub(crate) async fn cancel(self, task_id: &str) -> Result<(), RequestFault> {
        let form = self.form_now().await?;
        let write = |id: &RequestId, meta: Meta| {
            write_request(id, method::TASKS_CANCEL, &TaskParams::new(task_id, meta))
        };
        let (sent, form) = self.send_or_as_extension(method::TASKS_CANCEL, task_id, form, &write).await;
        match sent {
            // > Receivers **MUST** reject cancellation requests for tasks already in a terminal status [...] with error code
            // > `-32602`
            Err(RequestFault::UnknownTask(error)) if form != TaskForm::Extension => {
                match self.get(task_id).await? {
                    GetReply::Bare(task, _) if !task.status.is_final() => Err(RequestFault::Server(error)),
                    _ => Ok(()),
                }
            }
            sent => sent.map(drop),
        }
    }

    /// The form in which the server speaks about tasks now. It may have changed since the task was made.
    async fn form_now(self) -> Result<TaskForm, RequestFault> {
        let era = match self.connection.era_state() {
            EraState::Modern => EraState::Modern,
            _ => self.connection.settle().await?,
        };
        match era {
            EraState::Legacy(session) if session.has_tasks() => Ok(TaskForm::Session),
            EraState::Legacy(_) => Err(RequestFault::TaskOnSession),
            _ if self.form == TaskForm::Draft => Ok(TaskForm::Draft),
            _ => Ok(TaskForm::Extension),
        }
    }

    fn spec<'t>(self, method: &'static str, task_id: &'t str, form: TaskForm) -> RequestSpec<'t> {
        RequestSpec {
            name: Some(task_id),
            draft: form == TaskForm::Draft,
            // A request in the form of a modern server is not sent to a session.
            carries: form != TaskForm::Session,
            // > `notifications/progress` and `notifications/message` [...] are not supported on tasks
            quiet: true,
            ..RequestSpec::single(method, self.timeout)
        }
    }

    async fn send(
        self,
        method: &'static str,
        task_id: &str,
        form: TaskForm,
        write: &BodyWriter<'_>,
    ) -> Result<Box<RawValue>, RequestFault> {
        self.exchange(&self.spec(method, task_id, form), write).await
    }

    /// Sends a request. One in the form of the draft is sent again in that of the extension, if the server has the extension
    /// only: an id alone does not say its form. Returns the form of the reply.
    async fn send_or_as_extension(
        self,
        method: &'static str,
        task_id: &str,
        form: TaskForm,
        write: &BodyWriter<'_>,
    ) -> (Result<Box<RawValue>, RequestFault>, TaskForm) {
        let sent = self.send(method, task_id, form, write).await;
        let needs_extension = matches!(sent, Err(RequestFault::MissingCapability { .. }));
        if form != TaskForm::Draft || !self.connection.core.tasks || !needs_extension {
            return (sent, form);
        }
        let form = TaskForm::Extension;
        (self.send(method, task_id, form, write).await, form)
    }

    async fn exchange(
        self,
        spec: &RequestSpec<'_>,
        write: &BodyWriter<'_>,
    ) -> Result<Box<RawValue>, RequestFault> {
        self.connection.request(spec, write).await.map_err(|fault| match fault {
            // > Invalid or nonexistent `taskId`: `-32602` (Invalid params)
            RequestFault::Server(error) if error.code == ErrorCode::INVALID_PARAMS => {
                RequestFault::UnknownTask(error)
            }
            RequestFault::PendingOnSession => RequestFault::TaskOnSession,
            fault => fault,
        })
    }
}

fn read<T: DeserializeOwned>(result: &RawValue) -> Result<T, RequestFault> {
    serde_json::from_str(result.get()).map_err(malformed)
}

fn malformed(fault: serde_json::Error) -> RequestFault {
    RequestFault::Result { fault: OutcomeFault::Malformed(fault), ask: None }
}

/// The end of a task.
pub(crate) enum TaskEnd {
    Completed(Box<RawValue>),
    Failed(ErrorObject),
    Cancelled(Option<String>),
}

impl TaskEnd {
    /// Reads the result of the call that became the task, or returns the error that the call ends with.
    pub(crate) async fn result<T: Final>(
        self,
        tools: &ServerTools,
        tool: Option<&str>,
    ) -> Result<T, ClientErrorKind> {
        let result = match self {
            Self::Completed(result) => result,
            Self::Failed(error) => {
                let declared = tools.lists.connection.core.handlers.declared;
                return Err(RequestFault::server(error, declared).into());
            }
            Self::Cancelled(message) => return Err(ClientErrorKind::TaskCancelled { message }),
        };
        let unfit = |fault| RequestFault::Result { fault, ask: None };
        let result = match T::read(CallKind::Tool, &result).map_err(unfit)? {
            Leg::Complete(result) => result,
            // > the `result` field **MUST** contain that result.
            Leg::InputRequired(_) => return Err(unfit(not_final("input_required")).into()),
            Leg::Task(..) => return Err(unfit(not_final("task")).into()),
        };
        if let (Some(tool), Some(of_tool)) = (tool, result.of_tool()) {
            tools.check_output(tool, tools.known_tool(tool).as_deref(), of_tool).await?;
        }
        Ok(result)
    }
}

fn not_final(result_type: &str) -> OutcomeFault {
    OutcomeFault::UnknownResultType(result_type.to_owned())
}

/// The state of a task whose `tasks/get` has neither questions nor result.
pub(crate) struct BareTask {
    /// The form in which the server speaks now.
    pub(crate) form: TaskForm,
    pub(crate) status: TaskStatus,
    /// `true` if `tasks/result` is to be sent.
    pub(crate) wants_result: bool,
    pub(crate) failures: Failures,
    /// The fault of the latest `tasks/result`. The status of the task shows if it is the error of the task.
    pub(crate) fault: Option<RequestFault>,
    /// `lastUpdatedAt` when the questions were requested.
    pub(crate) asked_at: Option<String>,
    /// The moment after which a `tasks/result` that waits is sent again: the task is over.
    pub(crate) overdue: Option<Instant>,
}

impl BareTask {
    pub(crate) fn new(form: TaskForm) -> Self {
        Self {
            form,
            status: TaskStatus::Working,
            wants_result: false,
            failures: Failures::default(),
            fault: None,
            asked_at: None,
            overdue: None,
        }
    }

    /// Returns the end of a task that failed with the error of the latest `tasks/result`, if there was one. A fault that the
    /// status does not explain is the error of the call.
    pub(crate) fn end_after_fault(&mut self, status: TaskStatus) -> Result<Option<TaskEnd>, RequestFault> {
        match (self.fault.take(), status) {
            (None, _) => Ok(None),
            (Some(RequestFault::Server(error) | RequestFault::UnknownTask(error)), TaskStatus::Failed) => {
                Ok(Some(TaskEnd::Failed(error)))
            }
            (Some(fault), _) => Err(fault),
        }
    }
}

/// Asks the server to cancel a task whose call ended with an error, if the options of the call say so. One attempt.
pub(crate) async fn cancel_after_error(tools: &ServerTools, task: &TaskHandle, options: &CallOptions) {
    let connection = &tools.lists.connection;
    if !options.cancel_on_error || task.server().target != connection.core.target() {
        return;
    }
    let limit = options.leg_timeout.unwrap_or(connection.core.bounds.leg_timeout);
    let requests = TaskRequests { connection, timeout: limit, form: task.form() };
    match timeout(limit, requests.cancel(task.task_id())).await {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => {
            tracing::warn!(server = %escaped(task.server()), fault = %escaped(&fault), "a task could not be cancelled");
        }
        Err(_) => tracing::warn!(server = %escaped(task.server()), "a task could not be cancelled in time"),
    }
}
