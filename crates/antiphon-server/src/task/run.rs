//! The run of a task in this process: from its claim until it waits, ends, or goes to another process.

use super::{
    next::{After, Next, after, next, take_answers},
    run_leg::{LegEnd, end_of, message, span},
    snapshot::{End, LegInput, Message, Snapshot},
    view::touch,
};
use crate::{
    clock::{millis, seconds},
    runtime::Runtime,
    task_leg::{LegNews, TaskLeg},
    task_registry::{Tasks, active::ActiveTask},
};
use antiphon_seal::CallId;
use antiphon_store::{
    RunnerId, StoreError, TaskClaim, TaskFence, TaskKey, TaskMessage, TaskNext, TaskUpdate, Written,
};
use antiphon_wire::escaped;
use std::{future::Future, pin::pin, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::Instrument as _;

/// The number of attempts to write a snapshot, and the pause after the first one.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// The time between two writes of the same leg's progress.
const BETWEEN_STATUS: Duration = Duration::from_millis(200);
/// The time until a task is tried again whose snapshot this process cannot open.
const UNREADABLE: Duration = Duration::from_secs(60);

/// Runs a task until it waits or ends.
pub(super) async fn run(server: Arc<Runtime>, key: TaskKey, active: Arc<ActiveTask>) {
    let Some(tasks) = &server.tasks else { return };
    let _removed = RemovedAtEnd { tasks, key };
    loop {
        let Ok(_place) = tasks.places.acquire().await else { return };
        active.looks();
        run_claimed(&server, tasks, key, &active).await;
        if server.subscriptions.is_draining() || tasks.active.end(key, &active) {
            return;
        }
    }
}

/// Removes the task from the active ones, also after a panic.
struct RemovedAtEnd<'a> {
    tasks: &'a Tasks,
    key: TaskKey,
}

impl Drop for RemovedAtEnd<'_> {
    fn drop(&mut self) {
        self.tasks.active.remove(self.key);
    }
}

async fn run_claimed(server: &Arc<Runtime>, tasks: &Tasks, key: TaskKey, active: &ActiveTask) {
    let Ok(runner) = CallId::random() else { return };
    let claim = tasks.store.claim(key, RunnerId::from_bytes(*runner.as_bytes()), tasks.options.lease).await;
    let (fence, row) = match claim {
        Ok(TaskClaim::Fresh(fence, row)) => (fence, row),
        // Another process runs the task, or it is over.
        Ok(TaskClaim::Held { .. } | TaskClaim::Final | TaskClaim::NotFound) => return,
        Err(error) => {
            tracing::warn!(task = %escaped(&key), error = %escaped(&error), "a task cannot be claimed now");
            return;
        }
    };
    let Some(snapshot) = Snapshot::open(server, key, &row.snapshot) else {
        // Another process may have the key.
        let next = TaskNext::Pauses(UNREADABLE);
        let update = TaskUpdate { snapshot: row.snapshot, taken: 0, next, keeps_lease: false };
        let _ = tasks.store.update(&fence, &update).await;
        return;
    };
    let mut run = Run { server, tasks, key, fence, snapshot, active };
    tokio::select! {
        biased;
        () = run.go(row.messages) => {}
        () = lost(tasks, &fence) => {
            tasks.counters.lost_claims.add_one();
            tracing::error!(task = %escaped(&key), "another process took a task over, or its time is over: this run ends");
        }
    }
    active.set_leg(None);
}

/// Renews the lease. Resolves when it is lost.
async fn lost(tasks: &Tasks, fence: &TaskFence) {
    let lease = tasks.options.lease;
    let mut valid_until = Instant::now() + lease;
    loop {
        sleep(lease / 3).await;
        let begin = Instant::now();
        match tasks.store.renew(fence, lease).await {
            Ok(()) => valid_until = begin + lease,
            Err(error) if error.is_fence_lost() => return,
            // Another process may have taken the task over.
            Err(_) if Instant::now() >= valid_until => return,
            Err(error) => {
                tracing::warn!(task = %escaped(&fence.task()), error = %escaped(&error), "the lease of a task was not renewed");
            }
        }
    }
}

/// A claimed task.
struct Run<'a> {
    server: &'a Arc<Runtime>,
    tasks: &'a Tasks,
    key: TaskKey,
    fence: TaskFence,
    snapshot: Snapshot,
    active: &'a ActiveTask,
}

impl Run<'_> {
    /// Runs leg after leg. A failure of the store ends the run: the task is due again when its lease is over.
    async fn go(&mut self, mut messages: Vec<TaskMessage>) {
        loop {
            if self.is_draining() {
                return self.write_and_release(TaskNext::Runs, 0).await;
            }
            let (input, taken) = match self.snapshot.leg.clone() {
                // A process died in this leg.
                Some(input) => (input, 0),
                None => {
                    let (input, taken) = self.take(&messages);
                    match next(&mut self.snapshot, input, seconds(self.server.clock.now())) {
                        Next::Leg(input) => (input, taken),
                        Next::Wait(until) => return self.wait(until, taken).await,
                        Next::End(end) => return self.end(end, taken).await,
                    }
                }
            };
            self.snapshot.leg = Some(input.clone());
            if self.write(TaskNext::Runs, taken, true).await.is_err() {
                return;
            }
            let (end, news) = self.leg(&input).await;
            touch(self.server, &mut self.snapshot);
            let is_draining = self.is_draining();
            match after(&mut self.snapshot, end, news, is_draining) {
                After::Continue => {}
                After::Again(time) => {
                    self.tasks.counters.failed_legs.add_one();
                    return self.write_and_release(TaskNext::Pauses(time), 0).await;
                }
                After::End(end) => return self.end(end, 0).await,
                After::Gone => return self.write_and_release(TaskNext::Runs, 0).await,
            }
            match self.tasks.store.load(self.key).await {
                Ok(Some(row)) => messages = row.messages,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(task = %escaped(&self.key), error = %escaped(&error), "the messages of a task cannot be read now");
                    return self.write_and_release(TaskNext::Runs, 0).await;
                }
            }
        }
    }

    fn is_draining(&self) -> bool {
        self.server.subscriptions.is_draining()
    }

    /// Takes messages, up to the first one with an answer, so that answers reach the handler in the order in which they came.
    fn take(&mut self, messages: &[TaskMessage]) -> (LegInput, u64) {
        let (mut input, mut taken) = (LegInput::default(), 0);
        for message in messages {
            taken = message.number;
            match Message::open(self.server, self.key, &message.body) {
                Some(Message::Cancel) => self.snapshot.request_cancellation(),
                Some(Message::Answers(answers)) if take_answers(&mut self.snapshot, &mut input, &answers) => {
                    touch(self.server, &mut self.snapshot);
                    break;
                }
                Some(Message::Answers(_)) | None => {}
            }
        }
        (input, taken)
    }

    /// Runs a leg. Meanwhile, its questions and its progress are shown, and a message ends it at the next opportunity.
    async fn leg(&mut self, input: &LegInput) -> (LegEnd, LegNews) {
        let leg = TaskLeg::new(
            self.snapshot.principal(),
            self.snapshot.asks(),
            input.refuses_step,
            self.snapshot.state_ttl(self.server),
        );
        self.active.set_leg(Some(Arc::clone(&leg)));
        let message = match message(&self.snapshot, input) {
            Ok(message) => message,
            Err(fault) => {
                tracing::error!(task = %escaped(&self.key), fault = %escaped(&fault), "the request of a task cannot be written");
                return (LegEnd::Failed(antiphon_wire::ErrorObject::internal()), LegNews::default());
            }
        };
        let tasks = self.tasks;
        let span = span(self.key, &self.snapshot);
        let mut reply = pin!(tasks.legs.run(&message, &leg).instrument(span));
        let mut status_at: Option<Instant> = None;
        let reply = loop {
            if self.is_draining() {
                leg.end_soon();
            }
            tokio::select! {
                biased;
                reply = &mut reply => break reply,
                () = leg.changed() => {
                    if self.show(leg.take_news()) {
                        let _ = self.write(TaskNext::Runs, 0, true).await;
                    } else {
                        status_at.get_or_insert_with(|| Instant::now() + BETWEEN_STATUS);
                    }
                }
                () = until(status_at) => {
                    status_at = None;
                    let _ = self.write(TaskNext::Runs, 0, true).await;
                }
                () = self.active.message.notified() => {
                    if self.has_messages().await {
                        leg.end_soon();
                    }
                }
            }
        };
        self.active.set_leg(None);
        let mut news = leg.take_news();
        // The questions of the round are in the reply.
        news.questions = None;
        (end_of(reply), news)
    }

    async fn has_messages(&self) -> bool {
        let row = self.tasks.store.load(self.key).await;
        row.is_ok_and(|row| row.is_some_and(|row| !row.messages.is_empty()))
    }

    /// Takes news into the snapshot. Returns true if they are questions, which are shown at once.
    fn show(&mut self, news: LegNews) -> bool {
        touch(self.server, &mut self.snapshot);
        if let Some(status) = news.status {
            self.snapshot.status = Some(status);
        }
        let Some(questions) = news.questions else { return false };
        self.snapshot.questions.replace(questions.iter().map(|(path, request)| (&**path, request)));
        true
    }

    async fn wait(&mut self, until: Option<u64>, taken: u64) {
        let now = millis(self.server.clock.now());
        let wait = until.map(|second| Duration::from_millis((second * 1000).saturating_sub(now)));
        self.write_and_release(TaskNext::Waits(wait), taken).await;
    }

    async fn end(&mut self, end: End, taken: u64) {
        touch(self.server, &mut self.snapshot);
        let snapshot = &mut self.snapshot;
        let counters = &self.tasks.counters;
        match &end {
            End::Completed(_) => counters.completed.add_one(),
            End::Failed(_) => counters.failed.add_one(),
            End::Cancelled => counters.cancelled.add_one(),
        }
        snapshot.questions.clear();
        (snapshot.state, snapshot.leg, snapshot.request.arguments, snapshot.end) =
            (None, None, None, Some(end));
        // > The value of `ttlMs` **MAY** change over the lifetime of a task.
        let keep = u64::try_from(self.tasks.options.keep.as_millis()).unwrap_or(u64::MAX);
        let age = snapshot.updated.saturating_sub(snapshot.created);
        snapshot.ttl = Some(snapshot.ttl.unwrap_or(0).max(age.saturating_add(keep)));
        self.write_and_release(TaskNext::Final(self.tasks.options.keep), taken).await;
    }

    async fn write_and_release(&self, next: TaskNext, taken: u64) {
        let _ = self.write(next, taken, false).await;
    }

    /// Writes the snapshot. An error is in the log.
    async fn write(&self, next: TaskNext, taken: u64, keeps_lease: bool) -> Result<(), ()> {
        let Some(snapshot) = self.snapshot.seal(self.server, self.key) else { return Err(()) };
        let update = TaskUpdate { snapshot, taken, next, keeps_lease };
        let written = repeated(|| self.tasks.store.update(&self.fence, &update)).await;
        match written {
            Ok(confirmed) => {
                self.tasks.changed(self.key);
                // Without the lease, no leg may run.
                confirmed.or((!keeps_lease).then_some(())).ok_or(())
            }
            Err(error) => {
                tracing::error!(task = %escaped(&self.key), error = %escaped(&error), "the snapshot of a task was not written");
                Err(())
            }
        }
    }
}

/// Repeats an operation of the store that may succeed later. Returns nothing if the lease is gone and it is unknown whether an earlier
/// attempt was written.
async fn repeated<T, F: Future<Output = Result<T, StoreError>>>(
    mut operation: impl FnMut() -> F,
) -> Result<Option<T>, StoreError> {
    let (mut attempt, mut is_unknown) = (1, false);
    loop {
        match operation().await {
            // The lost confirmation was that of a write that gave the lease back, or another process has the task now: this run
            // has nothing more to write.
            Err(error) if error.is_fence_lost() && is_unknown => return Ok(None),
            Err(error) if error.is_temporary() && attempt < ATTEMPTS => {
                is_unknown |= error.written() == Written::Unknown;
                sleep(PAUSE * attempt).await;
                attempt += 1;
            }
            result => return result.map(Some),
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
