//! The beginning of a run: because a request came, or because a task is due.

use super::run::run;
use crate::{runtime::Runtime, task_registry::Tasks};
use antiphon_store::TaskKey;
use antiphon_wire::escaped;
use std::{sync::Arc, time::Duration};
use tokio::runtime::Handle;

/// The time between two looks for tasks that are due: those of processes that died, and those that waited for a moment.
const LOOK: Duration = Duration::from_secs(1);
/// The number of tasks that are taken at one look.
const AT_ONCE: usize = 64;
/// The number of looks between two removals of expired rows.
const LOOKS_PER_SWEEP: u32 = 60;
const SWEEP_LIMIT: usize = 1000;

/// Runs a task in this process, if it does not run here already.
pub(super) fn wake(server: &Arc<Runtime>, key: TaskKey) {
    let Some(tasks) = &server.tasks else { return };
    let (Ok(runtime), Some(active)) = (Handle::try_current(), tasks.active.begin(key)) else { return };
    runtime.spawn(run(Arc::clone(server), key, active));
}

/// Begins to look for tasks that are due, once. Outside of a runtime, the first request does.
pub(crate) fn begin(server: &Arc<Runtime>) {
    let Some(tasks) = &server.tasks else { return };
    let Ok(runtime) = Handle::try_current() else { return };
    if !tasks.is_first_look() {
        return;
    }
    let server = Arc::downgrade(server);
    runtime.spawn(async move {
        for look in 0_u32.. {
            let Some(server) = server.upgrade() else { return };
            let Some(tasks) = &server.tasks else { return };
            look_once(&server, tasks, look).await;
            drop(server);
            tokio::time::sleep(LOOK).await;
        }
    });
}

async fn look_once(server: &Arc<Runtime>, tasks: &Tasks, look: u32) {
    if look % LOOKS_PER_SWEEP == LOOKS_PER_SWEEP - 1
        && let Err(error) = tasks.store.sweep(SWEEP_LIMIT).await
    {
        tracing::warn!(error = %escaped(&error), "expired tasks were not removed from the store");
    }
    if server.subscriptions.is_draining() {
        return;
    }
    let free = tasks.places.available_permits().min(AT_ONCE);
    match tasks.store.due(free).await {
        Ok(due) => {
            due.into_iter().filter(|key| !tasks.active.contains(*key)).for_each(|key| wake(server, key))
        }
        Err(error) => tracing::warn!(error = %escaped(&error), "the store does not say which tasks are due"),
    }
}
