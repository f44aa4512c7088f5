//! The three requests about a task.

use crate::{
    request::{
        fault::RequestFault,
        spec::{BodyWriter, RequestSpec},
    },
    session::connection::Connection,
};
use antiphon_wire::{
    DetailedTask, ErrorCode, GetTaskResult, InputResponses, Meta, OutcomeFault, RequestId, TaskParams,
    UpdateTaskParams, method, write_request,
};
use serde_json::value::RawValue;
use std::time::Duration;

/// Sends requests about tasks. Each has a new id, and the id of the task as its name: HTTP repeats it in `Mcp-Name`.
///
/// > the client **MUST** set the `Mcp-Name` header to the value of `params.taskId`.
#[derive(Clone, Copy)]
pub(crate) struct TaskRequests<'a> {
    pub(crate) connection: &'a Connection,
    /// The time limit of one request.
    pub(crate) timeout: Duration,
}

impl TaskRequests<'_> {
    /// Gets the task.
    pub(crate) async fn get(self, task_id: &str) -> Result<DetailedTask, RequestFault> {
        let write = |id: &RequestId, meta: Meta| {
            write_request(id, method::TASKS_GET, &TaskParams::new(task_id, meta))
        };
        let result = self.send(method::TASKS_GET, task_id, &write).await?;
        match serde_json::from_str::<GetTaskResult>(result.get()) {
            Ok(GetTaskResult(task)) => Ok(task),
            Err(fault) => Err(RequestFault::Result { fault: OutcomeFault::Malformed(fault), ask: None }),
        }
    }

    /// Sends answers. The server may ignore those whose questions are not open.
    pub(crate) async fn update(self, task_id: &str, answers: &InputResponses) -> Result<(), RequestFault> {
        let write = |id: &RequestId, meta: Meta| {
            write_request(id, method::TASKS_UPDATE, &UpdateTaskParams::new(task_id, answers.clone(), meta))
        };
        match self.send(method::TASKS_UPDATE, task_id, &write).await {
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
        let write = |id: &RequestId, meta: Meta| {
            write_request(id, method::TASKS_CANCEL, &TaskParams::new(task_id, meta))
        };
        self.send(method::TASKS_CANCEL, task_id, &write).await.map(drop)
    }

    async fn send(
        self,
        method: &'static str,
        task_id: &str,
        write: &BodyWriter<'_>,
    ) -> Result<Box<RawValue>, RequestFault> {
        let spec = RequestSpec {
            name: Some(task_id),
            // Tasks do not exist on the sessions of legacy servers.
            carries: true,
            // > `notifications/progress` and `notifications/message` [...] are not supported on tasks
            quiet: true,
            ..RequestSpec::single(method, self.timeout)
        };
        self.connection.request(&spec, write).await.map_err(|fault| match fault {
            // > Invalid or nonexistent `taskId`: `-32602` (Invalid params)
            RequestFault::Server(error) if error.code == ErrorCode::INVALID_PARAMS => {
                RequestFault::UnknownTask(error)
            }
            RequestFault::PendingOnSession => RequestFault::TaskOnSession,
            fault => fault,
        })
    }
}
