//! The run of a task in this process: from a request or a search until it waits, ends, or goes to another process.

use super::active::{ActiveTask, Shared};
use crate::{
    LegControl, RunnerId, StoreError, StoreReach, TaskAction, TaskClaim, TaskDecision, TaskFence, TaskKey,
    TaskMessage, TaskNext, TaskProgram, TaskUpdate, Written,
};
use antiphon_wire::escaped;
use futures_util::future::{Either, select};
use std::{
    future::{Future, pending},
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep, sleep_until},
};

/// The number of attempts to write a snapshot, and the pause after the first one.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// The time that each leg has from its beginning to record something, also if the process drains. Where a process lives for one
/// request, a task would otherwise only change hands.
const DRAINED_LEG: Duration = Duration::from_secs(1);

/// Runs a task until it waits or ends.
pub(super) async fn run(
    engine: Arc<Shared>,
    program: Arc<dyn TaskProgram>,
    key: TaskKey,
    active: Arc<ActiveTask>,
) {
    let _removed = RemovedAtEnd { engine: &engine, key };
    loop {
        let Ok(_place) = engine.places.acquire().await else { return };
        if engine.is_draining() {
            return;
        }
        active.looks();
        run_claimed(&engine, &*program, key, &active).await;
        if engine.active.end(key, &active) {
            return;
        }
    }
}

/// Removes the task from the active ones, also after a panic.
struct RemovedAtEnd<'a> {
    engine: &'a Shared,
    key: TaskKey,
}

impl Drop for RemovedAtEnd<'_> {
    fn drop(&mut self) {
        self.engine.active.remove(self.key);
    }
}

async fn run_claimed(engine: &Shared, program: &dyn TaskProgram, key: TaskKey, active: &ActiveTask) {
    let mut runner = [0; 16];
    if getrandom::fill(&mut runner).is_err() {
        return;
    }
    let claim = engine.store.claim(key, RunnerId::from_bytes(runner), engine.lease).await;
    let (fence, row) = match claim {
        Ok(TaskClaim::Fresh(fence, row)) => (fence, row),
        // Another process runs the task, or it is over.
        Ok(_held_or_gone) => return,
        Err(error) => {
            tracing::warn!(task = %escaped(&key), error = %escaped(&error), "a task cannot be claimed now");
            return;
        }
    };
    let mut run = Run { engine, program, key, fence, snapshot: row.snapshot.to_vec(), active };
    tokio::select! {
        biased;
        () = run.go(row.messages) => {}
        () = lost(engine, &fence) => {
            tracing::error!(task = %escaped(&key), "another process took a task over, or its time is over: this run ends");
        }
    }
    active.set_leg(None);
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

/// Renews the lease. Resolves when it is lost.
async fn lost(engine: &Shared, fence: &TaskFence) {
    let lease = engine.lease;
    let mut valid_until = Instant::now() + lease;
    loop {
        sleep(lease / 3).await;
        let begin = Instant::now();
        match engine.store.renew(fence, lease).await {
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
    engine: &'a Shared,
    program: &'a dyn TaskProgram,
    key: TaskKey,
    fence: TaskFence,
    snapshot: Vec<u8>,
    active: &'a ActiveTask,
}

impl Run<'_> {
    /// Runs leg after leg, the first one in any case. A failure of the store ends the run: the task is due again when its lease is
    /// over.
    async fn go(&mut self, mut messages: Vec<TaskMessage>) {
        for leg in 1_u64.. {
            if self.engine.is_draining() && leg > 1 {
                return self.write_and_release(TaskNext::Runs, 0).await;
            }
            let decision = self.program.decide(self.key, &self.snapshot, &messages);
            let taken = decision.taken;
            if let Some(next) = self.take(decision) {
                return self.write_and_release(next, taken).await;
            }
            if self.write(TaskNext::Runs, taken, true).await.is_err() {
                return;
            }
            let end = self.leg().await;
            if let Some(next) = self.take(end) {
                return self.write_and_release(next, 0).await;
            }
            match self.engine.store.load_head(self.key, 0).await {
                Ok(Some(row)) => messages = row.messages,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(task = %escaped(&self.key), error = %escaped(&error), "the messages of a task cannot be read now");
                    return self.write_and_release(TaskNext::Runs, 0).await;
                }
            }
        }
    }

    /// Takes the snapshot of a decision. Returns the state of the row, if this run ends.
    fn take(&mut self, decision: TaskDecision) -> Option<TaskNext> {
        self.snapshot = decision.snapshot;
        match decision.action {
            TaskAction::Continue => None,
            TaskAction::Wait(time) => Some(TaskNext::Waits(time)),
            TaskAction::Pause(time) => Some(TaskNext::Pauses(time)),
            TaskAction::Finish(keep) => Some(TaskNext::Final(keep)),
            TaskAction::Leave => Some(TaskNext::Runs),
        }
    }

    /// Runs a leg. Meanwhile, its questions and its progress are shown, and a message ends it at the next opportunity. The leg goes on
    /// while the store is late: its call would lose its lease.
    async fn leg(&mut self) -> TaskDecision {
        let control = Arc::new(LegControl::new());
        self.active.set_leg(Some(Arc::clone(&control)));
        let snapshot = self.snapshot.clone();
        let mut leg = self.program.run(self.key, &snapshot, &control);
        let mut drained = Some(Instant::now() + DRAINED_LEG);
        let end = loop {
            if self.engine.is_draining() {
                control.end_after_next_entry();
            }
            tokio::select! {
                biased;
                end = &mut leg => break end,
                () = until(drained), if self.engine.is_draining() && drained.is_some() => {
                    drained = None;
                    control.end_soon();
                }
                shown = control.shown() => {
                    self.snapshot = shown;
                    let mut written = pin!(self.write(TaskNext::Runs, 0, true));
                    if let Either::Left((end, written)) = select(&mut leg, &mut written).await {
                        let _ = written.await;
                        break end;
                    }
                }
                () = self.active.message.notified() => {
                    match select(&mut leg, pin!(self.has_messages())).await {
                        Either::Left((end, _)) => break end,
                        Either::Right((has_messages, _)) if has_messages => control.end_soon(),
                        Either::Right(_) => {}
                    }
                }
            }
        };
        self.active.set_leg(None);
        end
    }

    async fn has_messages(&self) -> bool {
        let row = self.engine.store.load_head(self.key, 0).await;
        row.is_ok_and(|row| row.is_some_and(|row| !row.messages.is_empty()))
    }

    async fn write_and_release(&self, next: TaskNext, taken: u64) {
        let _ = self.write(next, taken, false).await;
    }

    /// Writes the snapshot. An error is in the log.
    async fn write(&self, next: TaskNext, taken: u64, keeps_lease: bool) -> Result<(), ()> {
        let update =
            TaskUpdate::new(self.snapshot.clone(), next).with_taken(taken).with_lease_kept(keeps_lease);
        let written = repeated(|| self.engine.store.update(&self.fence, &update)).await;
        match written {
            Ok(confirmed) => {
                self.engine.changed(Some(self.key));
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

// The beginning of a run: because a request came, or because a task is due.

/// The time between two looks for tasks that are due: those of processes that died, and those that waited for a moment.
const LOOK: Duration = Duration::from_secs(1);
/// The number of tasks that are taken at one look.
const AT_ONCE: usize = 64;
/// The number of looks between two removals of expired rows.
const LOOKS_PER_SWEEP: u32 = 60;
const SWEEP_LIMIT: usize = 1000;

/// Runs a task in this process, if it does not run here already.
pub(super) fn wake(engine: &Arc<Shared>, key: TaskKey) {
    let Some(program) = engine.program.get().and_then(Weak::upgrade) else { return };
    let (Ok(runtime), Some(active)) = (Handle::try_current(), engine.active.begin(key)) else { return };
    // Looked at after it is active: a drain before that sees no run, and one after that waits for it.
    if engine.is_draining() {
        return engine.active.remove(key);
    }
    runtime.spawn(run(Arc::clone(engine), program, key, active));
}

/// Begins to look for tasks that are due, once.
pub(super) fn begin(engine: &Arc<Shared>, program: Weak<dyn TaskProgram>) {
    let Ok(runtime) = Handle::try_current() else { return };
    if engine.program.set(program).is_err() {
        return;
    }
    let engine = Arc::downgrade(engine);
    runtime.spawn(async move {
        for look in 0_u32.. {
            let Some(engine) = engine.upgrade() else { return };
            if engine.program.get().is_none_or(|program| program.strong_count() == 0) {
                return;
            }
            look_once(&engine, look).await;
            drop(engine);
            sleep(LOOK).await;
        }
    });
}

async fn look_once(engine: &Arc<Shared>, look: u32) {
    if engine.store.reach() != StoreReach::Process {
        // Other processes change tasks too.
        engine.changed(None);
    }
    if look % LOOKS_PER_SWEEP == LOOKS_PER_SWEEP - 1
        && let Err(error) = engine.store.sweep(SWEEP_LIMIT).await
    {
        tracing::warn!(error = %escaped(&error), "expired tasks were not removed from the store");
    }
    if engine.is_draining() {
        return;
    }
    let free = engine.places.available_permits().min(AT_ONCE);
    match engine.store.due(free).await {
        Ok(due) => {
            due.into_iter().filter(|key| !engine.active.contains(*key)).for_each(|key| wake(engine, key));
        }
        Err(error) => tracing::warn!(error = %escaped(&error), "the store does not say which tasks are due"),
    }
}
