//! The program of tasks, which their engine calls: it decides, and it runs legs.

use super::{
    next::{After, LegEnd, Message, Next, after, end_of, message, next, span, take_answers},
    snapshot::{End, Ending, LegInput, Snapshot},
    view::touch,
};
use crate::{
    options::{millis, seconds},
    runtime::Runtime,
    task_registry::{
        RunningLeg, Tasks,
        leg::{LegNews, TaskLeg},
    },
};
use antiphon_store::{
    LegControl, LegStop, TaskAction, TaskDecision, TaskFuture, TaskKey, TaskMessage, TaskProgram,
};
use antiphon_wire::{ErrorObject, escaped};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep_until},
};
use tracing::Instrument as _;

/// The time between two snapshots that show the same leg's progress.
const BETWEEN_STATUS: Duration = Duration::from_millis(200);
/// The time until a task is tried again whose snapshot this process cannot open.
const UNREADABLE: Duration = Duration::from_secs(60);

/// Begins to run tasks, once. Outside of a runtime, the first request does.
pub(crate) fn begin(server: &Arc<Runtime>) {
    let Some(tasks) = &server.tasks else { return };
    if Handle::try_current().is_err() || !tasks.is_first_begin() {
        return;
    }
    let server: Arc<dyn TaskProgram> = Arc::<Runtime>::clone(server);
    tasks.engine.begin(Arc::downgrade(&server));
}

impl TaskProgram for Runtime {
    fn decide(&self, task: TaskKey, sealed: &[u8], messages: &[TaskMessage]) -> TaskDecision {
        let Some(mut snapshot) = Snapshot::open(self, task, sealed) else { return later(sealed) };
        // A process died in this leg: it runs again with the same input.
        if snapshot.leg.is_some() {
            return TaskDecision::new(sealed, TaskAction::Continue);
        }
        if let Some(ending) = snapshot.ending.take() {
            return settle(self, task, sealed, snapshot, ending, messages);
        }
        let (input, taken) = take(self, task, &mut snapshot, messages);
        let action = match next(&mut snapshot, input, seconds(self.clock.now())) {
            Next::Leg(input) => {
                snapshot.leg = Some(input);
                TaskAction::Continue
            }
            Next::Wait(until) => TaskAction::Wait(until.map(|second| {
                Duration::from_millis((second * 1000).saturating_sub(millis(self.clock.now())))
            })),
            Next::End(end) => finish(self, &mut snapshot, end),
        };
        match snapshot.seal(self, task) {
            Some(snapshot) => TaskDecision::new(snapshot, action).with_taken(taken),
            None => later(sealed),
        }
    }

    fn run<'a>(
        &'a self,
        task: TaskKey,
        sealed: &'a [u8],
        control: &'a LegControl,
    ) -> TaskFuture<'a, TaskDecision> {
        Box::pin(async move {
            let (Some(snapshot), Some(tasks)) = (Snapshot::open(self, task, sealed), &self.tasks) else {
                return later(sealed);
            };
            let mut leg = Leg { server: self, tasks, key: task, snapshot, control };
            let action = leg.run().await;
            match leg.snapshot.seal(self, task) {
                Some(snapshot) => TaskDecision::new(snapshot, action),
                None => later(sealed),
            }
        })
    }
}

/// Returns the decision about a snapshot that cannot be opened or sealed now. Another process may have the key.
fn later(sealed: &[u8]) -> TaskDecision {
    TaskDecision::new(sealed, TaskAction::Pause(UNREADABLE))
}

/// Takes a cancellation that came before the end, and ends the task.
///
/// The end is stored twice. After the first time, a request that cancels sees that the task ends, and waits. So the messages of
/// the second time hold each cancellation that was accepted without a wait.
///
/// > Once a task is cancelled, it **MUST** remain in `cancelled` status even if execution continues to completion or fails.
fn settle(
    server: &Runtime,
    key: TaskKey,
    sealed: &[u8],
    mut snapshot: Snapshot,
    ending: Ending,
    messages: &[TaskMessage],
) -> TaskDecision {
    if messages
        .iter()
        .any(|message| matches!(Message::open(server, key, &message.body), Some(Message::Cancel)))
    {
        snapshot.request_cancellation();
    }
    let taken = messages.last().map_or(0, |message| message.number);
    let action = if ending.is_stored {
        finish(server, &mut snapshot, ending.end)
    } else {
        snapshot.ending = Some(Ending { is_stored: true, ..ending });
        TaskAction::Continue
    };
    match snapshot.seal(server, key) {
        Some(snapshot) => TaskDecision::new(snapshot, action).with_taken(taken),
        None => later(sealed),
    }
}

/// Takes messages, up to the first one with an answer, so that answers reach the handler in the order in which they came.
fn take(
    server: &Runtime,
    key: TaskKey,
    snapshot: &mut Snapshot,
    messages: &[TaskMessage],
) -> (LegInput, u64) {
    let (mut input, mut taken) = (LegInput::default(), 0);
    for message in messages {
        taken = message.number;
        match Message::open(server, key, &message.body) {
            Some(Message::Cancel) => snapshot.request_cancellation(),
            Some(Message::Answers(answers)) if take_answers(snapshot, &mut input, &answers) => {
                touch(server, snapshot);
                break;
            }
            Some(Message::Answers(_)) | None => {}
        }
    }
    (input, taken)
}

/// Takes the end of the task into its snapshot.
fn finish(server: &Runtime, snapshot: &mut Snapshot, end: End) -> TaskAction {
    touch(server, snapshot);
    if let Some(tasks) = &server.tasks {
        match &end {
            End::Completed(_) => tasks.counters.completed.add_one(),
            End::Failed(_) => tasks.counters.failed.add_one(),
            End::Cancelled => tasks.counters.cancelled.add_one(),
        }
    }
    snapshot.questions.clear();
    (snapshot.state, snapshot.leg, snapshot.request.arguments, snapshot.end) = (None, None, None, Some(end));
    let keep = server.tasks.as_ref().map_or(Duration::ZERO, |tasks| tasks.options.keep);
    let kept = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
    let age = snapshot.updated.saturating_sub(snapshot.created);
    snapshot.kept = Some(snapshot.ttl.unwrap_or(0).max(age.saturating_add(kept)));
    TaskAction::Finish(keep)
}

/// A leg that runs.
struct Leg<'a> {
    server: &'a Runtime,
    tasks: &'a Tasks,
    key: TaskKey,
    snapshot: Snapshot,
    control: &'a LegControl,
}

impl Leg<'_> {
    async fn run(&mut self) -> TaskAction {
        let Some(input) = self.snapshot.leg.clone() else { return TaskAction::Continue };
        let running = RunningLeg::new(&self.tasks.counters);
        let (end, news) = self.reply(&input).await;
        running.end();
        touch(self.server, &mut self.snapshot);
        match after(&mut self.snapshot, end, news, self.server.limits.engine.asks) {
            After::Continue => TaskAction::Continue,
            After::Again(time) => {
                self.tasks.counters.failed_legs.add_one();
                TaskAction::Pause(time)
            }
            After::End(end) if self.snapshot.keeps_cancellation => {
                self.snapshot.questions.clear();
                (self.snapshot.leg, self.snapshot.ending) = (None, Some(Ending { end, is_stored: false }));
                TaskAction::Continue
            }
            After::End(end) => finish(self.server, &mut self.snapshot, end),
            After::Gone => TaskAction::Leave,
        }
    }

    /// Sends the request of the leg to the server itself. Meanwhile, its questions and its progress are shown.
    async fn reply(&mut self, input: &LegInput) -> (LegEnd, LegNews) {
        let leg = TaskLeg::new(
            self.snapshot.principal(),
            self.snapshot.asks(),
            self.snapshot.questions.shown_by_earlier_run(),
            input.refuses_step,
            self.snapshot.state_ttl(self.server),
            self.server.kept.read(&self.snapshot.request.kept),
        );
        let message = match message(&self.snapshot, input) {
            Ok(message) => message,
            Err(fault) => {
                tracing::error!(task = %escaped(&self.key), fault = %escaped(&fault), "the request of a task cannot be written");
                return (LegEnd::Failed(ErrorObject::internal()), LegNews::default());
            }
        };
        let span = span(self.key, &self.snapshot);
        let mut reply = pin!(self.tasks.legs.run(&message, &leg).instrument(span));
        let (mut status_at, mut stop): (Option<Instant>, _) = (None, LegStop::No);
        let reply = loop {
            tokio::select! {
                biased;
                // Before the leg is polled: it begins no step after that.
                earlier = self.control.ends_before(stop) => {
                    stop = earlier;
                    leg.end(stop);
                }
                reply = &mut reply => break reply,
                () = leg.changed() => {
                    if self.take_news(leg.take_shown()) {
                        self.show();
                    } else {
                        status_at.get_or_insert_with(|| Instant::now() + BETWEEN_STATUS);
                    }
                }
                () = until(status_at) => {
                    status_at = None;
                    self.show();
                }
            }
        };
        let mut news = leg.take_news();
        // The questions of the round are in the reply.
        news.questions = None;
        (end_of(reply), news)
    }

    /// Takes news into the snapshot. Returns true if they are questions, which are shown at once.
    fn take_news(&mut self, news: LegNews) -> bool {
        touch(self.server, &mut self.snapshot);
        if let Some(status) = news.status {
            self.snapshot.report(status);
        }
        let Some(questions) = news.questions else { return false };
        let (all, at_most) = (&mut self.snapshot.questions, self.server.limits.engine.asks);
        let asked = questions.iter().map(|ask| (&*ask.path, &ask.request));
        all.add(asked, &news.elicitation_ids, at_most);
        all.note_digests(questions.iter().map(|ask| (&*ask.path, ask.digest)));
        true
    }

    fn show(&mut self) {
        if let Some(sealed) = self.snapshot.seal(self.server, self.key) {
            self.control.show(sealed);
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
