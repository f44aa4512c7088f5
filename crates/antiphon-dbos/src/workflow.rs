//! The workflow of a task: the same loop for every task and every server.
//!
//! ```text
//!  step "begin": the first snapshot
//!    │
//!    ▼
//!  step "decide": the snapshot, and the messages that no decision took ◀──────────────┐
//!    │                                                                                │
//!    ├─ Continue ─▶ the row shows it ─▶ step "leg" ─┬─ Continue ──────────────────────┤
//!    ├─ Wait ─▶ the row shows it ─▶ receive an announcement, or the end of a time ────┤
//!    ├─ Pause ─▶ the row shows it ─▶ sleep ───────────────────────────────────────────┘
//!    └─ Finish ─▶ the row shows it ─▶ the end
//! ```
//!
//! dbos records the result of a step when it has ended, and finds it by its position when the workflow runs again. What a row shows
//! is written after its decision is recorded, and once; a repeated run writes nothing. So messages are removed only after the
//! decision that took them is recorded.

use crate::{
    runs::{Action, Recorded, RunningWorkflow, Sealed},
    shared::{Shared, Stage, TOPIC},
    tables::{Shows, Turn, task_of, workflow_id},
};
use antiphon_store::{LegControl, TaskKey};
use antiphon_wire::escaped;
use antiphon_wire::lock::Lock;
use std::{
    convert::Infallible,
    future::{Future, pending},
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::sleep;

/// The longest time for which a task waits; longer than any task exists.
const LONGEST: Duration = Duration::from_secs(400 * 24 * 3600);
/// The pauses between attempts to reach the database.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Runs a task, from its first step or from what is recorded of it.
pub(crate) async fn run(shared: Weak<Shared>, id: String) -> dbos::Result<()> {
    let Some(task) = task_of(&id) else { return Ok(()) };
    let running = there(&shared).await.runs.begin(task);
    let first = dbos::step("begin", || {
        let shared = Weak::clone(&shared);
        async move {
            let shared = there(&shared).await;
            let first = repeated(|| shared.tables.shown(task, 0)).await;
            Ok::<_, dbos::Error>(first.map(Sealed))
        }
    });
    // The task is over, and its row is gone.
    let Some(Sealed(snapshot)) = first.await? else { return Ok(()) };
    let mut run = Run { shared, running, task, snapshot, taken: 0, seen: 0, turn: 0 };
    loop {
        let decision = run.decide().await?;
        let mut action = decision.action;
        run.take(decision).await;
        if matches!(action, Action::Continue) {
            let end = run.leg().await?;
            action = end.action;
            run.take(end).await;
        }
        match action {
            // The next decision.
            Action::Continue => {}
            Action::Wait(time) => {
                let _: Option<()> = dbos::recv(Some(TOPIC), time.unwrap_or(LONGEST).min(LONGEST)).await?;
            }
            Action::Pause(time) => dbos::sleep(time).await?,
            Action::Finish(_) => return Ok(()),
            Action::Leave => pending().await,
        }
    }
}

/// Returns the engine, if this process still runs tasks. Otherwise another process continues from what is recorded.
async fn there(shared: &Weak<Shared>) -> Arc<Shared> {
    match shared.upgrade().filter(|shared| shared.stage() < Stage::Draining) {
        Some(shared) => shared,
        None => pending().await,
    }
}

/// A task that runs.
struct Run {
    shared: Weak<Shared>,
    running: RunningWorkflow,
    task: TaskKey,
    snapshot: Vec<u8>,
    /// The number of the last message that a recorded decision took.
    taken: u64,
    /// The number of the last message that a recorded decision was made with.
    seen: u64,
    /// The number of recorded decisions and legs.
    turn: i64,
}

impl Run {
    async fn decide(&self) -> dbos::Result<Recorded> {
        dbos::step("decide", || async {
            let shared = there(&self.shared).await;
            let messages = repeated(|| shared.tables.messages(self.task, self.taken)).await;
            let Some(program) = shared.program() else { return pending().await };
            let decision = Recorded::from(program.decide(self.task, &self.snapshot, &messages));
            let seen = messages.last().map_or(self.seen, |message| message.number);
            Ok(Recorded { seen, ..decision })
        })
        .await
    }

    /// Takes a recorded decision: the row shows it.
    async fn take(&mut self, decision: Recorded) {
        self.snapshot = decision.snapshot.0;
        self.taken = self.taken.max(decision.taken);
        self.seen = self.seen.max(decision.seen);
        self.turn += 1;
        let shared = there(&self.shared).await;
        let shows = match decision.action {
            Action::Continue | Action::Leave => Shows::Runs,
            Action::Wait(_) | Action::Pause(_) => Shows::Waits,
            Action::Finish(keep) => Shows::Final(keep),
        };
        let turn =
            Turn { task: self.task, number: self.turn, snapshot: &self.snapshot, taken: self.taken, shows };
        repeated(|| shared.tables.write(turn)).await;
    }

    async fn leg(&self) -> dbos::Result<Recorded> {
        // A leg counts as running until its result is recorded, so that a drain does not lose the result.
        let until_recorded = Lock::new(None);
        dbos::step("leg", || async {
            let shared = there(&self.shared).await;
            // The semaphore is not closed.
            let Ok(_place) = shared.places.acquire().await else { return pending().await };
            let running = shared.legs.begin(self.task);
            let control = Arc::clone(&running.control);
            if shared.stage() >= Stage::Draining {
                drop(running);
                return pending().await;
            }
            // Messages that came since the decision; later ones are reported.
            if !repeated(|| shared.tables.messages(self.task, self.seen)).await.is_empty() {
                control.end_soon();
            }
            // A leg that runs again has shown questions under keys that it must not use for others.
            let shown = repeated(|| shared.tables.shown(self.task, self.turn)).await;
            let snapshot = shown.as_ref().unwrap_or(&self.snapshot);
            let Some(program) = shared.program() else { return pending().await };
            let mut leg = program.run(self.task, snapshot, &control);
            // The leg goes on while the database is late: its call would lose its lease.
            let end = tokio::select! {
                biased;
                end = &mut leg => Recorded::from(end),
                never = self.show_all(&shared, &control) => match never {},
            };
            if matches!(end.action, Action::Leave) {
                // Nothing is recorded: another process runs the leg again.
                drop(leg);
                drop(running);
                return pending().await;
            }
            // Another run of this leg may have shown questions since, so this one must not replace them.
            if !self.is_own(&shared).await {
                tracing::warn!(task = %escaped(&self.task), "a leg went to another run meanwhile: its result does not count");
                return Err(dbos::Error::Interrupted { workflow_id: workflow_id(self.task) });
            }
            *until_recorded.lock() = Some(running);
            Ok(end)
        })
        .await
    }
}

impl Run {
    /// Shows the snapshots of a leg as long as it runs, the last one if the database is late. The workflow is that of this run.
    async fn show_all(&self, shared: &Shared, control: &LegControl) -> Infallible {
        let executor = shared.executor();
        let mut snapshot = control.shown().await;
        loop {
            let mut pause = PAUSE;
            while self.running.is_latest() {
                match shared.tables.show(self.task, self.turn, &snapshot, &executor).await {
                    Ok(()) => break,
                    Err(error) => {
                        tracing::warn!(task = %escaped(&self.task), error = %escaped(&error), "the snapshot of a running task was not shown: it is tried again");
                    }
                }
                tokio::select! {
                    newer = control.shown() => snapshot = newer,
                    () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                }
            }
            snapshot = control.shown().await;
        }
    }

    /// Returns true if the workflow is still that of this run.
    async fn is_own(&self, shared: &Shared) -> bool {
        let executor = shared.executor();
        self.running.is_latest() && repeated(|| shared.tables.is_of(self.task, &executor)).await
    }
}

/// Repeats an operation until the database has answered.
async fn repeated<T, F: Future<Output = Result<T, sqlx::Error>>>(mut operation: impl FnMut() -> F) -> T {
    let mut pause = PAUSE;
    loop {
        match operation().await {
            Ok(value) => return value,
            Err(error) => {
                tracing::warn!(error = %escaped(&error), "the database of tasks did not answer: it is tried again");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}
