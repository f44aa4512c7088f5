//! A call that became a task: it continues without its request. Extension `io.modelcontextprotocol/tasks`. Its handle is
//! `call/task_handle`.
//!
//! ```text
//!  CreateTaskResult --> TaskHandle --wait (run)--> tasks/get --working------------> a pause (pace) --+
//!                        ^   |                     ^  |  |                                          |
//!                        |   |                     |  |  +--input_required--> callbacks             |
//!                        |   |                     |  |                           |                 |
//!                        |   |                     +--|---- tasks/update <--------+                 |
//!                        |   |                     +--|---------------------------------------------+
//!                        |   |                        +--completed, failed, cancelled--> the end
//!                        |   +--get, answer, cancel
//!                        +---- a deadline, a cancelled call, a callback that fails: the error holds the handle
//! ```

pub(crate) mod callbacks;
pub(crate) mod pace;
pub(crate) mod requests;
pub(crate) mod run;

use crate::{
    asks::{
        AskRound,
        answers::{AnswerError, AnswerFault, refuse_other_schemes},
        callbacks::AskFault,
    },
    call::{
        CallOptions, error_kind::ClientErrorKind, errors::ClientError, legs::within, task_handle::TaskHandle,
    },
    lists::tools::ServerTools,
    request::{Core, fault::RequestFault},
};
use antiphon_wire::{
    AskKind, CallToolResult, DetailedTask, InputRequest, InputRequests, InputResponses, method,
};
use requests::{TaskRequests, WholeTask, cancel_after_error};
use run::TaskRun;
use serde::Serialize;
use std::{fmt, sync::Arc};

/// A task of a server: gets it, answers its questions, cancels it, or follows it to its end.
///
/// Made by [`Client::task`](crate::Client::task) from a [`TaskHandle`], and by [`Client::attach`](crate::Client::attach) from
/// an id. [`handle`](Self::handle) is plain data, which another process can continue. Dropping the value changes nothing at
/// the server.
///
/// ```
/// use antiphon::client::{Call, CallProgress, Client, ClientError};
///
/// async fn begin(client: &Client) -> Result<(), ClientError> {
///     let Ok(call) = Call::tool("render", serde_json::json!({"film": 7})) else { return Ok(()) };
///     if let CallProgress::Task(handle) = client.begin(call).await? {
///         let stored = serde_json::to_string(&handle).unwrap_or_default();
///         // Perhaps days later, in another process:
///         if let Ok(handle) = serde_json::from_str(&stored) {
///             let result = client.task(handle).wait().await?;
///             println!("{:?}", result.first_text());
///         }
///     }
///     Ok(())
/// }
/// ```
pub struct ClientTask {
    tools: Arc<ServerTools>,
    handle: TaskHandle,
    options: CallOptions,
    /// The questions of the latest `get`.
    questions: InputRequests,
}

impl ClientTask {
    pub(crate) fn new(tools: Arc<ServerTools>, handle: TaskHandle) -> Self {
        Self { tools, handle, options: CallOptions::default(), questions: InputRequests::new() }
    }

    /// Sets the time limits, the cancellation and the callback for progress of these requests.
    /// [`call_timeout`](CallOptions::call_timeout) is the time limit of one [`wait`](Self::wait).
    #[must_use]
    pub fn with_options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }

    /// The task as plain data, with the keys that are answered.
    pub fn handle(&self) -> &TaskHandle {
        &self.handle
    }

    /// The task as plain data, by value.
    pub fn into_handle(self) -> TaskHandle {
        self.handle
    }

    /// Gets the present state of the task: its status, and the questions, the result or the error of this status.
    ///
    /// Do not call it more often than [`TaskHandle::poll_interval`] suggests. The questions of a task of a session
    /// ([`TaskForm::Session`](crate::TaskForm::Session)) are not part of it: they come while [`wait`](Self::wait) runs, and
    /// the callbacks answer them. A result with a tool's error is `completed` in every form.
    ///
    /// # Errors
    /// [`ClientError`]; [`is_not_found`](ClientError::is_not_found) if the server does not know the task, or no longer.
    pub async fn get(&mut self) -> Result<DetailedTask, ClientError> {
        let got = match self.requests() {
            Ok(requests) => requests.get_whole(self.handle.task_id()).await.map_err(ClientErrorKind::from),
            Err(kind) => Err(kind),
        };
        let WholeTask { task, state, form } = got.map_err(|kind| self.error(method::TASKS_GET, kind))?;
        self.handle.update(&task.task);
        self.handle.set_form(form);
        self.questions = task.input_requests().cloned().unwrap_or_default();
        if !self.questions.is_empty() {
            self.handle.set_state(state);
        }
        Ok(task)
    }

    /// The questions of the latest [`get`](Self::get) that have no acknowledged answer, in the server's order.
    pub fn questions(&self) -> impl Iterator<Item = (&str, &InputRequest)> {
        let is_open = |key: &str| !self.handle.answered().any(|answered| answered == key);
        self.questions.iter().filter(move |(key, _)| is_open(key))
    }

    /// Sends the answer to one question: an [`ElicitResult`](antiphon_wire::ElicitResult),
    /// [`CreateMessageResult`](antiphon_wire::CreateMessageResult) or [`ListRootsResult`](antiphon_wire::ListRootsResult), or
    /// JSON of the same shape. It is checked against the question, as [`PendingCall::answer`](crate::PendingCall::answer) does.
    ///
    /// # Errors
    /// As [`answer_all`](Self::answer_all).
    pub async fn answer(&mut self, key: &str, answer: &impl Serialize) -> Result<(), ClientError> {
        let mut answers = InputResponses::new();
        if answers.insert(key, answer).is_err() {
            let unfit = AnswerError::new(key, AnswerFault::WrongKind(AskKind::Unknown));
            return Err(self.error(method::TASKS_UPDATE, ClientErrorKind::Ask(AskFault::Answer(unfit))));
        }
        self.answer_all(&answers).await
    }

    /// Sends the answers to several questions with one request. Gets the task first if a question is not known here. A
    /// question may be answered again until the server has acknowledged an answer.
    ///
    /// # Errors
    /// [`ClientError`]. If no open question has a key, or an answer does not fit ([`AskFault::Answer`]), nothing is sent. If the
    /// request fails, the handle stores the answers, and [`wait`](Self::wait) sends them.
    pub async fn answer_all(&mut self, answers: &InputResponses) -> Result<(), ClientError> {
        let is_unknown = |key: &str| !self.questions().any(|(open, _)| open == key);
        if answers.iter().any(|(key, _)| is_unknown(key)) {
            self.get().await?;
        }
        let checked = self.checked(answers);
        let checked = checked.map_err(|error| {
            self.error(method::TASKS_UPDATE, ClientErrorKind::Ask(AskFault::Answer(error)))
        })?;
        for (key, answer) in checked.iter() {
            self.handle.store_answer(key, &answer);
        }
        let sent = match self.requests() {
            Ok(requests) => {
                let sent = requests.update(self.handle.task_id(), &checked, self.handle.state());
                sent.await.map_err(ClientErrorKind::from)
            }
            Err(kind) => Err(kind),
        };
        sent.map_err(|kind| self.error(method::TASKS_UPDATE, kind))?;
        self.handle.acknowledged(&checked);
        Ok(())
    }

    /// Asks the server to cancel the task. The server decides: the task may still end with a result.
    ///
    /// # Errors
    /// [`ClientError`]; [`is_not_found`](ClientError::is_not_found) if the server does not know the task, or no longer.
    pub async fn cancel(&self) -> Result<(), ClientError> {
        let sent = match self.requests() {
            Ok(requests) => requests.cancel(self.handle.task_id()).await.map_err(ClientErrorKind::from),
            Err(kind) => Err(kind),
        };
        sent.map_err(|kind| self.error(method::TASKS_CANCEL, kind))
    }

    /// Follows the task to its end, and returns the result of the call that became the task. The callbacks of the client answer
    /// its questions. Sends the answers first that the handle stores. Transient failures are retried, for as long as
    /// [`call_timeout`](CallOptions::call_timeout) and the task's TTL allow. Dropping the future loses no acknowledged answer.
    ///
    /// # Errors
    /// As [`Client::call_tool`](crate::Client::call_tool). The error holds the handle if the task may still run
    /// ([`ClientError::task`]).
    pub async fn wait(&mut self) -> Result<CallToolResult, ClientError> {
        if let Err(kind) = self.requests() {
            return Err(self.error(method::TASKS_GET, kind));
        }
        let Self { tools, handle, options, .. } = self;
        let core = &*tools.lists.connection.core;
        let run = TaskRun::new(tools, handle, options, None, 0);
        let ended = match within(core, options, Box::pin(run.finish(None))).await {
            Ok(end) => end.result(tools, handle.tool()).await.map_err(|kind| (kind, false)),
            Err(kind) => Err((kind, true)),
        };
        match ended {
            Ok(result) => Ok(result),
            Err((kind, true)) => {
                if !is_unknown(&kind) {
                    cancel_after_error(tools, handle, options).await;
                }
                Err(self.error(method::TASKS_GET, kind))
            }
            Err((kind, false)) => {
                Err(ClientError::of_request(self.core().identity(), method::TASKS_GET, kind))
            }
        }
    }

    fn core(&self) -> &Core {
        &self.tools.lists.connection.core
    }

    /// The requests, if the task belongs to this server.
    fn requests(&self) -> Result<TaskRequests<'_>, ClientErrorKind> {
        let target = &self.handle.server().target;
        if target != self.core().target() {
            return Err(ClientErrorKind::OtherServer { belongs_to: target.clone() });
        }
        let timeout = self.options.leg_timeout.unwrap_or(self.core().bounds.leg_timeout);
        Ok(TaskRequests { connection: &self.tools.lists.connection, timeout, form: self.handle.form() })
    }

    /// The answers as they are sent, checked against their questions.
    fn checked(&self, answers: &InputResponses) -> Result<InputResponses, AnswerError> {
        let mut open = InputRequests::new();
        for (key, ask) in self.questions() {
            // The keys are those of a map, so none is there twice.
            let _ = open.insert(key, ask.clone());
        }
        let mut round = AskRound::new(self.handle.round(), open);
        for (key, answer) in answers.iter() {
            if !self.core().handlers.any_url_scheme {
                refuse_other_schemes(key, round.ask(key)?, &answer)?;
            }
            round.answer(key, &answer)?;
        }
        Ok(round.answers)
    }

    fn error(&self, method: &'static str, kind: ClientErrorKind) -> ClientError {
        let task = (!is_unknown(&kind)).then(|| self.handle.clone());
        ClientError::of_request(self.core().identity(), method, kind).with_task(task)
    }
}

/// Returns `true` if the server does not know the task.
fn is_unknown(kind: &ClientErrorKind) -> bool {
    matches!(kind, ClientErrorKind::Request(RequestFault::UnknownTask(_)))
}

impl fmt::Debug for ClientTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTask").field("handle", &self.handle).finish_non_exhaustive()
    }
}
