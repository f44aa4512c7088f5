//! The beginning of a run: because a request came, or because a task is due.

use super::{run::run, shared::Shared};
use crate::{StoreReach, TaskKey, TaskProgram};
use antiphon_wire::escaped;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::runtime::Handle;

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
            tokio::time::sleep(LOOK).await;
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
