//! The connection between a running leg of a task and the runner of the task.

use antiphon_engine::{AskRecord, PendingAsk, Record};
use antiphon_seal::{Digest, Principal};
use antiphon_store::{LegStop, TaskKey};
use antiphon_wire::{AskSupport, lock::Lock};
use futures_util::task::AtomicWaker;
use http::Extensions;
use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, MutexGuard},
    task::Context,
    time::Duration,
};
use tokio::sync::Notify;

/// One leg of a task: what the runner gives to the leg, and what the leg sends to the runner while it runs.
pub(crate) struct TaskLeg {
    /// The caller who created the task.
    pub(crate) principal: Option<Principal>,
    /// The questions that the client of the creating request supports.
    pub(crate) asks: AskSupport,
    /// The questions that an earlier run of this leg has shown, by their paths.
    pub(crate) shown: Vec<(Arc<str>, Digest)>,
    /// True if the first new step of this leg is refused: the task was cancelled.
    pub(crate) refuses_step: bool,
    /// The time for which the state of this leg is accepted.
    pub(crate) state_ttl: Duration,
    /// The values of layers that the task keeps.
    pub(crate) kept: Option<Arc<Extensions>>,
    stop: Lock<LegStop>,
    waker: AtomicWaker,
    news: Lock<LegNews>,
    changed: Notify,
}

/// The news of a running leg.
#[derive(Debug, Default)]
pub(crate) struct LegNews {
    /// The questions that are asked while a step runs, if they have changed.
    pub(crate) questions: Option<Vec<PendingAsk>>,
    /// The paths of the questions that stay open after the leg, if they were open: those in its record.
    pub(crate) kept: Vec<String>,
    /// The ids that the author gave to URL questions, by the paths of the questions.
    pub(crate) elicitation_ids: Vec<(String, String)>,
    /// The text of the last progress, if there was one.
    pub(crate) status: Option<String>,
    /// The second at which the first question of the round expires, in Unix seconds.
    pub(crate) deadline: Option<u64>,
    /// True if the leg was to refuse a step, and the handler began none.
    pub(crate) is_cancellation_unmet: bool,
    /// True if the leg ended because its handler did not meet the cancellation in time.
    pub(crate) is_grace_over: bool,
}

impl TaskLeg {
    pub(crate) fn new(
        principal: Option<Principal>,
        asks: AskSupport,
        shown: Vec<(Arc<str>, Digest)>,
        refuses_step: bool,
        state_ttl: Duration,
        kept: Option<Arc<Extensions>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            principal,
            asks,
            shown,
            refuses_step,
            state_ttl,
            kept,
            stop: Lock::default(),
            waker: AtomicWaker::new(),
            news: Lock::default(),
            changed: Notify::new(),
        })
    }

    /// Ends the leg before its handler does, and never within a step.
    pub(crate) fn end(&self, stop: LegStop) {
        *self.stop.lock() = stop;
        self.waker.wake();
    }

    /// Returns when the leg is to end. The task of this context is woken when that changes.
    pub(crate) fn poll_stop(&self, cx: &Context<'_>) -> LegStop {
        self.waker.register(cx.waker());
        *self.stop.lock()
    }

    /// Tells the runner what it cannot see in the state of the next leg.
    pub(crate) fn report_record(&self, record: &Record) {
        let deadline = record.asked().iter().filter_map(AskRecord::deadline).min();
        let kept = record.asked().iter().map(|asked| asked.path().to_owned()).collect();
        self.report(|news| (news.deadline, news.kept) = (deadline, kept));
    }

    /// Changes the news, and wakes the runner.
    pub(crate) fn report(&self, change: impl FnOnce(&mut LegNews)) {
        change(&mut self.news());
        self.changed.notify_one();
    }

    /// Takes the news that are shown while the leg runs. The others belong to its end: a leg sends them before its reply is
    /// stored, which may take a while.
    pub(crate) fn take_shown(&self) -> LegNews {
        let mut news = self.news();
        LegNews {
            questions: news.questions.take(),
            // Those of the questions, which may also be in the reply.
            elicitation_ids: news.elicitation_ids.clone(),
            status: news.status.take(),
            ..LegNews::default()
        }
    }

    /// Takes all news, at the end of the leg.
    pub(crate) fn take_news(&self) -> LegNews {
        std::mem::take(&mut self.news())
    }

    /// Waits for news.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn news(&self) -> MutexGuard<'_, LegNews> {
        self.news.lock()
    }
}

impl fmt::Debug for TaskLeg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskLeg").field("refuses_step", &self.refuses_step).finish_non_exhaustive()
    }
}

/// A function that is called after a question was given back.
type GivenBack = Box<dyn Fn(TaskKey) + Send + Sync>;

/// The questions that are with a client now.
pub(crate) struct AskedQuestions {
    asked: Lock<HashSet<(TaskKey, String)>>,
    given_back: GivenBack,
}

/// A question that is with a client. Dropping it gives the question back: another request may ask it.
pub(crate) struct AskedQuestion {
    all: Arc<AskedQuestions>,
    task: TaskKey,
    key: String,
}

impl AskedQuestions {
    pub(crate) fn new(given_back: GivenBack) -> Arc<Self> {
        Arc::new(Self { asked: Lock::default(), given_back })
    }

    /// Takes a question; nothing if a client has it already.
    pub(crate) fn take(self: &Arc<Self>, task: TaskKey, key: &str) -> Option<AskedQuestion> {
        let is_new = self.asked().insert((task, key.to_owned()));
        is_new.then(|| AskedQuestion { all: Arc::clone(self), task, key: key.to_owned() })
    }

    fn asked(&self) -> MutexGuard<'_, HashSet<(TaskKey, String)>> {
        self.asked.lock()
    }
}

impl AskedQuestion {
    /// Returns the key of the question.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

impl Drop for AskedQuestion {
    fn drop(&mut self) {
        self.all.asked().remove(&(self.task, std::mem::take(&mut self.key)));
        (self.all.given_back)(self.task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_the_end_of_a_leg_stays_until_then() {
        let leg = TaskLeg::new(None, AskSupport::NONE, Vec::new(), true, Duration::from_secs(1), None);
        leg.report(|news| news.status = Some("half".to_owned()));
        leg.report(|news| (news.deadline, news.is_cancellation_unmet) = (Some(7), true));
        let shown = leg.take_shown();
        assert_eq!((shown.status.as_deref(), shown.deadline), (Some("half"), None));
        let end = leg.take_news();
        assert_eq!((end.status, end.deadline, end.is_cancellation_unmet), (None, Some(7), true));
    }
}
