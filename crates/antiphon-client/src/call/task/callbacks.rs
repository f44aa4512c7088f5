//! The callbacks of a task, which run while the task is polled: they answer its questions, and receive its status messages as progress.

use crate::{
    asks::{
        AnswerText, AskRound, PreparedRound,
        answers::{AnswerError, checked, refuse_other_schemes},
        callbacks::{AskFault, AskHandlers},
        failed, prepare_round,
        progress::AskProgress,
        questions::Origin,
    },
    call::{CallOptions, task_handle::TaskHandle},
    request::{
        Core,
        events::{EventContext, ProgressEvent},
    },
};
use antiphon_wire::{InputRequest, InputRequests, method};
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

/// The rounds of questions of one task that have no answer yet.
pub(crate) struct TaskCallbacks<'a> {
    handlers: &'a AskHandlers,
    origin: Origin,
    /// The rounds on which `on_round` has not decided yet. The first one is being decided.
    undecided: VecDeque<Undecided<'a>>,
    running: Vec<RunningCallback>,
}

/// A round before its callbacks run.
struct Undecided<'a> {
    /// The keys of its questions that are still open.
    open: Vec<String>,
    decision: BoxFuture<'a, Result<(AskRound, PreparedRound), AskFault>>,
}

struct RunningCallback {
    key: String,
    ask: InputRequest,
    wait: Duration,
    callback: BoxFuture<'static, AnswerText>,
}

/// An answer, checked, and the time to wait before it is sent.
pub(crate) struct CallbackAnswer {
    pub(crate) key: String,
    pub(crate) answer: Box<RawValue>,
    pub(crate) wait: Duration,
}

/// The answers that came together, and the fault that ended the callbacks after them.
#[derive(Default)]
pub(crate) struct CallbackAnswers {
    pub(crate) answers: Vec<CallbackAnswer>,
    pub(crate) fault: Option<AskFault>,
}

impl<'a> TaskCallbacks<'a> {
    pub(crate) fn new(handlers: &'a AskHandlers, origin: Origin) -> Self {
        Self { handlers, origin, undecided: VecDeque::new(), running: Vec::new() }
    }

    /// Checks the answers that an earlier process stored.
    pub(crate) fn check_unsent(&self, handle: &mut TaskHandle, open: &InputRequests) -> Result<(), AskFault> {
        for (key, answer) in handle.unsent().clone().iter() {
            let Some(ask) = open.get(key) else { continue };
            if !self.handlers.any_url_scheme {
                refuse_other_schemes(key, ask, &answer).map_err(AskFault::Answer)?;
            }
            let answer = checked(key, ask, answer).map_err(AskFault::Answer)?;
            handle.store_answer(key, &answer);
        }
        Ok(())
    }

    /// Returns `true` if no callback runs or will run.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.undecided.is_empty()
    }

    /// Returns `true` if the question of this key has a callback that runs or will run.
    pub(crate) fn is_asked(&self, key: &str) -> bool {
        self.running.iter().any(|running| running.key == key)
            || self.undecided.iter().any(|round| round.open.iter().any(|open| open == key))
    }

    /// Drops the callbacks of all questions that are not open any more.
    pub(crate) fn keep(&mut self, open: Option<&InputRequests>) {
        let is_open = |key: &String| open.is_some_and(|open| open.get(key).is_some());
        self.running.retain(|running| is_open(&running.key));
        self.undecided.iter_mut().for_each(|round| round.open.retain(is_open));
        self.undecided.retain(|round| !round.open.is_empty());
    }

    /// Begins a round of new questions: first the checks and `on_round`, then the callbacks.
    pub(crate) fn begin(&mut self, mut round: AskRound) {
        let open = round.asks.iter().map(|(key, _)| key.to_owned()).collect();
        let (handlers, origin) = (self.handlers, self.origin.clone());
        let decision = Box::pin(async move {
            let prepared = prepare_round(handlers, &origin, &mut round, &AskProgress::default()).await?;
            Ok((round, prepared))
        });
        self.undecided.push_back(Undecided { open, decision });
    }

    /// Waits for the next answers. Without callbacks, it waits without end.
    pub(crate) async fn next(&mut self) -> CallbackAnswers {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<CallbackAnswers> {
        let mut came = CallbackAnswers::default();
        while let Some(first) = self.undecided.front_mut()
            && let Poll::Ready(decided) = first.decision.as_mut().poll(cx)
        {
            let open = self.undecided.pop_front().map(|first| first.open).unwrap_or_default();
            match decided {
                Ok((round, prepared)) => self.start(&open, &round, prepared, &mut came),
                Err(fault) => {
                    came.fault = Some(fault);
                    return Poll::Ready(came);
                }
            }
        }
        let mut at = 0;
        while let Some(running) = self.running.get_mut(at) {
            match running.callback.as_mut().poll(cx) {
                // The callbacks behind it have to wait for it.
                Poll::Pending if self.handlers.one_at_a_time => break,
                Poll::Pending => at += 1,
                Poll::Ready(answer) => {
                    let RunningCallback { key, ask, wait, .. } = self.running.remove(at);
                    match checked_answer(&key, &ask, answer) {
                        Ok(answer) => came.answers.push(CallbackAnswer { key, answer, wait }),
                        Err(fault) => {
                            came.fault = Some(fault);
                            return Poll::Ready(came);
                        }
                    }
                }
            }
        }
        if came.answers.is_empty() { Poll::Pending } else { Poll::Ready(came) }
    }

    /// Starts the callbacks of a round, and takes the answers that `on_round` gave.
    fn start(
        &mut self,
        open: &[String],
        round: &AskRound,
        prepared: PreparedRound,
        came: &mut CallbackAnswers,
    ) {
        let PreparedRound { wait, calls } = prepared;
        let is_open = |key: &str| open.iter().any(|open| open == key);
        for (key, answer) in round.answers.iter().filter(|(key, _)| is_open(key)) {
            came.answers.push(CallbackAnswer { key: key.to_owned(), answer: answer.to_owned(), wait });
        }
        for (key, callback) in calls.into_iter().filter(|(key, _)| is_open(key)) {
            if let Some(ask) = round.asks.get(&key).cloned() {
                self.running.push(RunningCallback { key, ask, wait, callback });
            }
        }
    }
}

fn checked_answer(key: &str, ask: &InputRequest, answer: AnswerText) -> Result<Box<RawValue>, AskFault> {
    let answer = answer.map_err(|source| failed(key.to_owned(), source))?;
    checked(key, ask, &answer).map_err(|error: AnswerError| AskFault::Answer(error))
}

/// The status messages so far.
#[derive(Default)]
pub(crate) struct StatusEvents {
    last: Option<String>,
    count: u32,
}

impl StatusEvents {
    /// Passes a new status message to the callback for progress.
    pub(crate) fn report(
        &mut self,
        core: &Core,
        options: &CallOptions,
        task: &TaskHandle,
        message: Option<String>,
    ) {
        let Some(on_progress) = options.on_progress.as_ref().or(core.observers.progress.as_ref()) else {
            return;
        };
        let Some((progress, message)) = self.next(message) else { return };
        on_progress.call(ProgressEvent {
            context: Arc::new(EventContext {
                server: core.identity(),
                method: method::TASKS_GET.into(),
                name: task.tool().map(str::to_owned),
                round: task.round(),
                leg: progress,
            }),
            progress: f64::from(progress),
            total: None,
            message: Some(message),
        });
    }

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
