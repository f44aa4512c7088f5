//! The end of a task, and of the call that became it. A task without its result in `tasks/get` ends by `tasks/result`.

use crate::{
    call::{
        definition::{CallKind, CallOptions},
        error_kind::ClientErrorKind,
        outcome::{Final, Leg},
        task::{pace::Failures, requests::TaskRequests},
        task_handle::{TaskForm, TaskHandle},
    },
    lists::tools::ServerTools,
    request::fault::RequestFault,
};
use antiphon_wire::{ErrorObject, OutcomeFault, TaskStatus, escaped};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

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
