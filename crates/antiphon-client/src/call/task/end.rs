//! The end of a task, and of the call that became it.

use crate::{
    call::{
        definition::{CallKind, CallOptions},
        errors::ClientErrorKind,
        outcome::{Final, Leg},
        task::requests::TaskRequests,
        task_handle::TaskHandle,
    },
    lists::tools::ServerTools,
    request::fault::RequestFault,
};
use antiphon_wire::{ErrorObject, OutcomeFault, escaped};
use serde_json::value::RawValue;
use tokio::time::timeout;

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
