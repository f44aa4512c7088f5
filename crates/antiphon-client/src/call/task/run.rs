//! The loop over the polls of a task, until its end.

use crate::{
    asks::{AskRound, callbacks::AskFault, questions::Origin},
    call::{
        CallOptions,
        error_kind::ClientErrorKind,
        task::{
            callbacks::{CallbackAnswers, StatusEvents, TaskCallbacks},
            pace::{Failures, NewsSource, PollTimes, poll_interval, time_left},
            requests::{BareTask, GetReply, TaskEnd, TaskRequests, TaskResult},
        },
        task_handle::{TaskForm, TaskHandle},
    },
    lists::tools::ServerTools,
    request::{Core, fault::RequestFault, random},
    session::task_watch::TaskNews,
};
use antiphon_wire::{
    DetailedTask, InputRequests, InputResponses, Task, TaskDetail, TaskStatus, escaped, method,
};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::{future::pending, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, sleep_until};

type Polled = Result<GetReply, RequestFault>;
/// The answers of a `tasks/update`, and its reply.
type Sent = (InputResponses, Result<(), RequestFault>);
type Replied = Result<TaskResult, RequestFault>;

/// One task that is followed to its end. It stores everything that must survive in its handle.
pub(crate) struct TaskRun<'a> {
    core: &'a Core,
    requests: TaskRequests<'a>,
    handle: &'a mut TaskHandle,
    options: &'a CallOptions,
    /// The call that the questions belong to.
    origin: Arc<Origin>,
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
    news: NewsSource,
    times: PollTimes,
    bare: BareTask,
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
        let origin = Arc::new(Origin {
            server: handle.server().clone(),
            method: method::TOOLS_CALL.into(),
            target: handle.tool().unwrap_or_default().to_owned(),
            arguments,
        });
        let timeout = options.leg_timeout.unwrap_or(core.bounds.leg_timeout);
        let (age, has_unchecked, form) = (handle.age(), !handle.unsent().is_empty(), handle.form());
        let mut run = Self {
            core,
            requests: TaskRequests { connection, timeout, form },
            news: NewsSource::new(connection, handle.task_id(), form, &origin),
            handle,
            options,
            callbacks: TaskCallbacks::new(&core.handlers, Origin::clone(&origin)),
            origin,
            rounds,
            held: Vec::new(),
            has_unchecked,
            poll_failures: Failures::default(),
            update_failures: Failures::default(),
            update_after: None,
            times: PollTimes::default(),
            bare: BareTask::new(form),
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
        let (mut update, mut result): (Option<BoxFuture<'a, Sent>>, Option<BoxFuture<'a, Replied>>) =
            (None, None);
        loop {
            if update.is_none() {
                update = self.next_update();
            }
            if result.is_none() && std::mem::take(&mut self.bare.wants_result) {
                result = Some(self.fetch_result());
            }
            let wake = self.wake();
            let turn = tokio::select! {
                biased;
                came = self.callbacks.next() => {
                    self.store_answers(came)?;
                    continue;
                }
                sent = output(&mut update) => {
                    update = None;
                    self.updated(sent)?;
                    continue;
                }
                news = self.news.next() => self.on_news(news)?,
                replied = output(&mut result) => {
                    result = None;
                    self.replied(replied)?
                }
                polled = &mut poll => self.polled(polled)?,
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {
                    let is_over = |moment: Option<Instant>| moment.is_some_and(|moment| moment <= Instant::now());
                    if is_over(self.expires) {
                        return Err(ClientErrorKind::TaskExpired);
                    }
                    if is_over(self.bare.overdue) {
                        result = None;
                        (self.bare.overdue, self.bare.wants_result) = (None, true);
                    }
                    continue;
                }
            };
            match turn {
                Turn::End(end) => return Ok(end),
                // A poll that is under way is dropped: its reply is older.
                Turn::PollAfter(wait) => poll = self.poll_after(wait),
                Turn::Wait => {}
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

    /// The next request with answers: all that may be sent now.
    fn next_update(&mut self) -> Option<BoxFuture<'a, Sent>> {
        let now = Instant::now();
        self.held.retain(|(_, until)| *until > now);
        // In the draft, the answers of a round leave together, with its state.
        let is_partial =
            self.bare.form == TaskForm::Draft && !(self.held.is_empty() && self.callbacks.is_idle());
        if self.has_unchecked || is_partial {
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
        let (wait, state) = (self.update_after.take(), self.handle.state().map(str::to_owned));
        Some(Box::pin(async move {
            if let Some(wait) = wait {
                sleep(wait).await;
            }
            let sent = requests.update(&id, &answers, state.as_deref()).await;
            (answers, sent)
        }))
    }

    /// Sends `tasks/result`. Before the end of the task it may take as long as the task.
    fn fetch_result(&self) -> BoxFuture<'a, Replied> {
        let (requests, id) = (self.requests, self.handle.task_id().to_owned());
        let origin = Arc::clone(&self.origin);
        let limit = self.bare.status.is_final().then_some(requests.timeout);
        Box::pin(async move { requests.result(&id, Some(&origin), limit).await })
    }

    /// The next moment in which something is due besides polls and callbacks.
    fn wake(&self) -> Option<Instant> {
        let held = self.held.iter().map(|(_, until)| *until);
        held.chain(self.expires).chain(self.bare.overdue).min()
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
        match polled {
            Ok(GetReply::Whole(task)) => self.on_whole(task),
            Ok(GetReply::Bare(task, form)) => self.on_bare(task, form),
            Err(fault) => {
                let wait = self.poll_failures.next(&fault, random());
                self.after_failure(fault, wait).map(Turn::PollAfter)
            }
        }
    }

    /// Handles a change that the server reported.
    fn on_news(&mut self, news: TaskNews) -> Result<Turn, ClientErrorKind> {
        match news {
            TaskNews::State(task) if self.times.is_outdated(&task.task) => Ok(Turn::Wait),
            TaskNews::State(task) => self.on_whole(*task),
            TaskNews::Changed => Ok(Turn::PollAfter(self.times.after_change())),
            // What happened before the subscription began, or after it ended, is not reported: one poll at the usual time.
            TaskNews::Reported(is_reported) => {
                self.times.is_reported = is_reported;
                Ok(Turn::PollAfter(poll_interval(self.handle.poll_interval())))
            }
        }
    }

    fn on_whole(&mut self, task: DetailedTask) -> Result<Turn, ClientErrorKind> {
        self.bare.form = TaskForm::Extension;
        self.seen(&task.task);
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
        Ok(self.next_poll())
    }

    /// Handles the state of a task whose questions and result come by `tasks/result`.
    fn on_bare(&mut self, task: Task, form: TaskForm) -> Result<Turn, ClientErrorKind> {
        self.bare.form = form;
        self.seen(&task);
        if let Some(end) = self.bare.end_after_fault(task.status)? {
            return Ok(Turn::End(end));
        }
        match task.status {
            TaskStatus::Cancelled => return Ok(Turn::End(TaskEnd::Cancelled(task.status_message))),
            TaskStatus::Completed | TaskStatus::Failed => {
                self.questions(None)?;
                self.bare.wants_result = true;
                self.bare.overdue.get_or_insert(Instant::now() + self.requests.timeout);
            }
            TaskStatus::Working => self.questions(None)?,
            // One request is enough for all questions: it ends with the task.
            TaskStatus::InputRequired if form == TaskForm::Session => self.bare.wants_result = true,
            TaskStatus::InputRequired => {
                let is_answered = self.callbacks.is_idle() && self.handle.unsent().is_empty();
                let moment = Some(task.last_updated_at);
                // > clients MUST call tasks/result to get the inputRequests and optional requestState.
                if is_answered || self.has_unchecked || self.bare.asked_at != moment {
                    (self.bare.asked_at, self.bare.wants_result) = (moment, true);
                }
            }
        }
        Ok(self.next_poll())
    }

    fn replied(&mut self, replied: Replied) -> Result<Turn, ClientErrorKind> {
        (self.bare.wants_result, self.bare.overdue) = (false, None);
        let fault = match replied {
            Ok(TaskResult::Final(result)) => return Ok(Turn::End(TaskEnd::Completed(result))),
            Ok(TaskResult::Asks(asks, state)) => {
                self.bare.failures.reset();
                self.handle.set_state(state);
                self.questions(Some(&asks))?;
                return Ok(self.next_poll());
            }
            Err(fault @ RequestFault::Ask(_)) => return Err(fault.into()),
            Err(RequestFault::Server(error) | RequestFault::UnknownTask(error))
                if self.bare.status == TaskStatus::Failed =>
            {
                return Ok(Turn::End(TaskEnd::Failed(error)));
            }
            Err(fault) => fault,
        };
        self.bare.asked_at = None;
        match self.bare.failures.next(&fault, random()) {
            Some(wait) => self.after_failure(fault, Some(wait)).map(Turn::PollAfter),
            None => {
                self.bare.fault = Some(fault);
                Ok(Turn::PollAfter(Duration::ZERO))
            }
        }
    }

    /// Stores the operational data of a state.
    fn seen(&mut self, task: &Task) {
        self.poll_failures.reset();
        self.handle.update(task);
        self.times.replied(task);
        self.bare.status = task.status;
        self.set_expiry();
        self.report(task.status_message.clone());
    }

    fn next_poll(&self) -> Turn {
        Turn::PollAfter(self.times.interval(self.handle.poll_interval()))
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
            self.callbacks.check_unsent(self.handle, open).map_err(ClientErrorKind::Ask)?;
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

    fn report(&mut self, message: Option<String>) {
        self.status_events.report(self.core, self.options, self.handle, message);
    }
}

enum Turn {
    End(TaskEnd),
    PollAfter(Duration),
    /// The next poll stays where it is.
    Wait,
}

/// Waits for the output of a future, if there is one.
async fn output<T>(future: &mut Option<BoxFuture<'_, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}
