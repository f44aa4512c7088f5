//! The loop over the polls of a task, until its end.

use crate::{
    asks::{
        answers::{checked, refuse_other_schemes},
        errors::AskFault,
        questions::Origin,
        round::AskRound,
    },
    call::{
        definition::{CallKind, CallOptions},
        errors::ClientErrorKind,
        outcome::{Final, Leg},
        task::{
            callbacks::{CallbackAnswers, TaskCallbacks},
            pace::{Failures, poll_interval, time_left},
            requests::TaskRequests,
        },
        task_handle::TaskHandle,
    },
    lists::tools::ServerTools,
    request::{
        core::Core,
        events::{EventContext, ProgressEvent},
        fault::RequestFault,
        random::random,
    },
};
use antiphon_wire::{
    DetailedTask, ErrorObject, InputRequests, InputResponses, OutcomeFault, TaskDetail, TaskStatus, escaped,
    method,
};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::{future::pending, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, sleep_until, timeout};

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
            Leg::Task(_) => return Err(unfit(not_final("task")).into()),
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
    let sent = TaskRequests { connection, timeout: limit }.cancel(task.task_id());
    match timeout(limit, sent).await {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => {
            tracing::warn!(server = %escaped(task.server()), fault = %escaped(&fault), "a task could not be cancelled");
        }
        Err(_) => tracing::warn!(server = %escaped(task.server()), "a task could not be cancelled in time"),
    }
}

type Polled = Result<DetailedTask, RequestFault>;
/// The answers of a `tasks/update`, and its reply.
type Sent = (InputResponses, Result<(), RequestFault>);

/// One task that is followed to its end. It stores everything that must survive in its handle.
pub(crate) struct TaskRun<'a> {
    core: &'a Core,
    requests: TaskRequests<'a>,
    handle: &'a mut TaskHandle,
    options: &'a CallOptions,
    callbacks: TaskCallbacks<'a>,
    /// The number of rounds that were answered in this process.
    rounds: u32,
    /// The answers that must not be sent before a moment, by key: `on_round` made them wait.
    held: Vec<(String, Instant)>,
    /// `true` until the answers of an earlier process were checked against their questions.
    has_unchecked: bool,
    poll_failures: Failures,
    update_failures: Failures,
    update_after: Option<Duration>,
    /// The moment after which the task is given up without an answer of the server.
    expires: Option<Instant>,
    started: Instant,
    age: Duration,
    status_events: StatusEvents,
}

impl<'a> TaskRun<'a> {
    /// Follows the task of this handle. `rounds` is the number of rounds that the call has answered already.
    pub(crate) fn new(
        tools: &'a ServerTools,
        handle: &'a mut TaskHandle,
        options: &'a CallOptions,
        arguments: Option<Arc<RawValue>>,
        rounds: u32,
    ) -> Self {
        let connection = &tools.lists.connection;
        let core = &*connection.core;
        let origin = Origin {
            server: handle.server().clone(),
            method: method::TOOLS_CALL,
            target: handle.tool().unwrap_or_default().to_owned(),
            arguments,
        };
        let timeout = options.leg_timeout.unwrap_or(core.bounds.leg_timeout);
        let (age, has_unchecked) = (handle.age(), !handle.unsent().is_empty());
        let mut run = Self {
            core,
            requests: TaskRequests { connection, timeout },
            handle,
            options,
            callbacks: TaskCallbacks::new(&core.handlers, origin),
            rounds,
            held: Vec::new(),
            has_unchecked,
            poll_failures: Failures::default(),
            update_failures: Failures::default(),
            update_after: None,
            expires: None,
            started: Instant::now(),
            age,
            status_events: StatusEvents::default(),
        };
        run.set_expiry();
        run
    }

    /// Polls the task until its end. The callbacks answer its questions meanwhile.
    ///
    /// `seen`: the status and its message in the reply that created the task.
    pub(crate) async fn finish(
        mut self,
        seen: Option<(TaskStatus, Option<String>)>,
    ) -> Result<TaskEnd, ClientErrorKind> {
        let mut first = Duration::ZERO;
        if let Some((status, message)) = seen {
            self.report(message);
            // Any other status has something to get at once.
            if status == TaskStatus::Working {
                first = poll_interval(self.handle.poll_interval());
            }
        }
        let mut poll = self.poll_after(first);
        let mut update: Option<BoxFuture<'a, Sent>> = None;
        loop {
            if update.is_none() {
                update = self.next_update();
            }
            let wake = self.wake();
            tokio::select! {
                biased;
                came = self.callbacks.next() => self.store_answers(came)?,
                sent = async { match &mut update { Some(update) => update.await, None => pending().await } } => {
                    update = None;
                    self.updated(sent)?;
                }
                polled = &mut poll => {
                    let wait = match self.polled(polled)? {
                        Turn::End(end) => return Ok(end),
                        Turn::PollAfter(wait) => wait,
                    };
                    poll = self.poll_after(wait);
                }
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {
                    if self.expires.is_some_and(|expires| expires <= Instant::now()) {
                        return Err(ClientErrorKind::TaskExpired);
                    }
                }
            }
        }
    }

    fn poll_after(&self, wait: Duration) -> BoxFuture<'a, Polled> {
        let (requests, id) = (self.requests, self.handle.task_id().to_owned());
        Box::pin(async move {
            if !wait.is_zero() {
                sleep(wait).await;
            }
            requests.get(&id).await
        })
    }

    /// The next `tasks/update`, with all answers that may be sent now.
    fn next_update(&mut self) -> Option<BoxFuture<'a, Sent>> {
        let now = Instant::now();
        self.held.retain(|(_, until)| *until > now);
        if self.has_unchecked {
            return None;
        }
        let mut answers = InputResponses::new();
        for (key, answer) in self.handle.unsent().iter() {
            if !self.held.iter().any(|(held, _)| held == key) {
                // A raw value is JSON already.
                let _ = answers.insert(key, &answer);
            }
        }
        if answers.is_empty() {
            return None;
        }
        let (requests, id) = (self.requests, self.handle.task_id().to_owned());
        let wait = self.update_after.take();
        Some(Box::pin(async move {
            if let Some(wait) = wait {
                sleep(wait).await;
            }
            let sent = requests.update(&id, &answers).await;
            (answers, sent)
        }))
    }

    /// The next moment in which something is due besides polls and callbacks.
    fn wake(&self) -> Option<Instant> {
        self.held.iter().map(|(_, until)| *until).chain(self.expires).min()
    }

    /// The server has answered: from now on, the end of the TTL counts again.
    fn set_expiry(&mut self) {
        let time_left = time_left(self.handle.ttl(), self.age.saturating_add(self.started.elapsed()));
        self.expires = time_left.and_then(|time_left| Instant::now().checked_add(time_left));
    }

    fn store_answers(&mut self, came: CallbackAnswers) -> Result<(), ClientErrorKind> {
        for came in came.answers {
            self.handle.store_answer(&came.key, &came.answer);
            if !came.wait.is_zero() {
                self.held.push((came.key, Instant::now() + came.wait));
            }
        }
        came.fault.map_or(Ok(()), |fault| Err(ClientErrorKind::Ask(fault)))
    }

    fn updated(&mut self, (answers, sent): Sent) -> Result<(), ClientErrorKind> {
        match sent {
            Ok(()) => {
                self.update_failures.reset();
                self.handle.acknowledged(&answers);
                Ok(())
            }
            // The server ignores answers that it has already, so they may be sent again.
            Err(fault) => {
                let wait = self.update_failures.next(&fault, random());
                self.update_after = Some(self.after_failure(fault, wait)?);
                Ok(())
            }
        }
    }

    fn polled(&mut self, polled: Polled) -> Result<Turn, ClientErrorKind> {
        let task = match polled {
            Ok(task) => task,
            Err(fault) => {
                let wait = self.poll_failures.next(&fault, random());
                return self.after_failure(fault, wait).map(Turn::PollAfter);
            }
        };
        self.poll_failures.reset();
        self.handle.update(&task.task);
        self.set_expiry();
        self.report(task.task.status_message.clone());
        let ended = |end| Ok(Turn::End(end));
        match task.detail {
            TaskDetail::Result(result) => return ended(TaskEnd::Completed(result)),
            TaskDetail::Error(error) => return ended(TaskEnd::Failed(error)),
            TaskDetail::None if task.task.status == TaskStatus::Cancelled => {
                return ended(TaskEnd::Cancelled(task.task.status_message));
            }
            TaskDetail::None => self.questions(None)?,
            TaskDetail::InputRequests(open) => self.questions(Some(&open))?,
        }
        Ok(Turn::PollAfter(poll_interval(self.handle.poll_interval())))
    }

    fn after_failure(
        &self,
        fault: RequestFault,
        wait: Option<Duration>,
    ) -> Result<Duration, ClientErrorKind> {
        let Some(wait) = wait else { return Err(fault.into()) };
        tracing::info!(
            server = %escaped(self.handle.server()),
            ?wait,
            fault = %escaped(&fault),
            "a request about a task failed, and is sent again"
        );
        Ok(wait)
    }

    /// Compares the open questions with those that are asked: drops the callbacks of the others, and asks the new ones.
    ///
    /// > Clients **SHOULD** deduplicate `inputRequests` keys across consecutive polls to avoid presenting the same request to
    /// > the user or model more than once.
    fn questions(&mut self, open: Option<&InputRequests>) -> Result<(), ClientErrorKind> {
        let bounds = self.core.bounds;
        let asks = open.map_or(0, InputRequests::len);
        if asks > bounds.max_asks {
            return Err(ClientErrorKind::Ask(AskFault::TooManyAsks { asks, limit: bounds.max_asks }));
        }
        self.callbacks.keep(open);
        // > Each key MUST correspond to a currently-outstanding inputRequest key.
        self.handle.keep_unsent(|key| open.is_some_and(|open| open.get(key).is_some()));
        let Some(open) = open else {
            self.has_unchecked = false;
            return Ok(());
        };
        if std::mem::replace(&mut self.has_unchecked, false) {
            self.check_unsent(open).map_err(ClientErrorKind::Ask)?;
        }
        let mut new = InputRequests::new();
        let is_new = |key: &str| !self.handle.is_answered(key) && !self.callbacks.is_asked(key);
        for (key, ask) in open.iter().filter(|(key, _)| is_new(key)) {
            // The keys are those of a map, so none is there twice.
            let _ = new.insert(key, ask.clone());
        }
        if new.is_empty() {
            return Ok(());
        }
        if self.rounds == bounds.max_rounds {
            return Err(ClientErrorKind::Ask(AskFault::RoundLimit { rounds: self.rounds }));
        }
        self.rounds += 1;
        self.callbacks.begin(AskRound::new(self.handle.next_round(), new));
        Ok(())
    }

    /// Checks the answers that an earlier process stored.
    fn check_unsent(&mut self, open: &InputRequests) -> Result<(), AskFault> {
        for (key, answer) in self.handle.unsent().clone().iter() {
            let Some(ask) = open.get(key) else { continue };
            if !self.core.handlers.any_url_scheme {
                refuse_other_schemes(key, ask, &answer).map_err(AskFault::Answer)?;
            }
            let answer = checked(key, ask, answer).map_err(AskFault::Answer)?;
            self.handle.store_answer(key, &answer);
        }
        Ok(())
    }

    /// Passes a new status message to the callback for progress.
    fn report(&mut self, message: Option<String>) {
        let Some(on_progress) = self.options.on_progress.as_ref().or(self.core.observers.progress.as_ref())
        else {
            return;
        };
        let Some((progress, message)) = self.status_events.next(message) else { return };
        on_progress.call(ProgressEvent {
            context: Arc::new(EventContext {
                server: self.core.identity(),
                method: method::TASKS_GET,
                name: self.handle.tool().map(str::to_owned),
                round: self.handle.round(),
                leg: progress,
            }),
            progress: f64::from(progress),
            total: None,
            message: Some(message),
        });
    }
}

enum Turn {
    End(TaskEnd),
    PollAfter(Duration),
}

/// The status messages so far.
#[derive(Default)]
struct StatusEvents {
    last: Option<String>,
    count: u32,
}

impl StatusEvents {
    /// Returns the number of a message, from 1, and the message, if it differs from the one before.
    fn next(&mut self, message: Option<String>) -> Option<(u32, String)> {
        let message = message?;
        if self.last.as_ref() == Some(&message) {
            return None;
        }
        self.last = Some(message.clone());
        self.count = self.count.saturating_add(1);
        Some((self.count, message))
    }
}
