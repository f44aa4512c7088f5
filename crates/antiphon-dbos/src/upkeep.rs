//! The upkeep of an instance: its heartbeat, the tasks of dead instances, what dbos did not get, and what is over.

use crate::{
    shared::{self, FORGOTTEN_AFTER, Shared, Stage, VERSION},
    tables::{of_write, workflow_id},
};
use antiphon_store::{StoreError, StoreErrorKind, TaskKey};
use antiphon_wire::escaped;
use dbos::sysdb::{
    INTERNAL_QUEUE, SystemDatabase as _,
    types::{WorkflowFilter, WorkflowStatus},
};
use std::{
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{runtime::Handle, time::sleep};

/// The time between two looks, at most.
const LOOK: Duration = Duration::from_secs(1);
/// The number of looks between two checks of the workflows that this instance has.
const LOOKS_PER_CHECK: u32 = 8;
/// The number of looks between two removals of expired tasks.
const LOOKS_PER_SWEEP: u32 = 60;
/// The number of tasks and messages of one look.
const AT_ONCE: usize = 200;

/// Looks until the tasks are handed over.
pub(crate) async fn run(shared: Weak<Shared>) {
    tokio::spawn(beat(Weak::clone(&shared)));
    let mut idle = HashSet::new();
    for look in 0_u32.. {
        let Some(shared) = still_there(&shared) else { return };
        if let Err(error) = look_once(&shared, look, &mut idle).await {
            tracing::warn!(error = %escaped(&error), "the upkeep of tasks failed: it is tried again");
        }
        let pause = between_looks(&shared);
        drop(shared);
        sleep(pause).await;
    }
}

/// Sends heartbeats until the tasks are handed over, also while a look waits for the database.
async fn beat(shared: Weak<Shared>) {
    while let Some(shared) = still_there(&shared) {
        if let Err(error) = shared.tables.beat(&shared.executor).await {
            tracing::warn!(error = %escaped(&error), "a heartbeat was not sent: it is tried again");
        }
        let pause = between_looks(&shared);
        drop(shared);
        sleep(pause).await;
    }
}

fn still_there(shared: &Weak<Shared>) -> Option<Arc<Shared>> {
    shared.upgrade().filter(|shared| shared.stage() < Stage::HandedOver)
}

fn between_looks(shared: &Shared) -> Duration {
    LOOK.min(shared.options.lease / 3)
}

async fn look_once(shared: &Shared, look: u32, idle: &mut HashSet<TaskKey>) -> Result<(), StoreError> {
    let write = |error| of_write("upkeep", error);
    take_over(shared).await?;
    // The first look follows the launch, before which this instance started no task.
    for task in shared.tables.unstarted(look == 0, AT_ONCE).await.map_err(write)? {
        shared::start(shared, task).await;
    }
    for (task, number) in shared.tables.unannounced(AT_ONCE).await.map_err(write)? {
        shared::announce(shared, task, number).await;
    }
    if look % LOOKS_PER_CHECK == LOOKS_PER_CHECK - 1 {
        run_lost(shared, idle).await?;
    }
    if look % LOOKS_PER_SWEEP == LOOKS_PER_SWEEP - 1 {
        resume_parked(shared).await?;
        let expired = shared.tables.expired(AT_ONCE).await.map_err(write)?;
        remove(shared, &expired).await?;
    }
    Ok(())
}

/// Gives the tasks of dead instances to those that run.
///
/// dbos recovers the workflows of its own executor only, when it is launched. One that is given back twice is in its queue once.
async fn take_over(shared: &Shared) -> Result<(), StoreError> {
    let lease = shared.options.lease;
    let dead = shared.tables.dead(lease).await.map_err(|error| of_write("upkeep", error))?;
    if dead.is_empty() {
        return Ok(());
    }
    let executors: Vec<&str> = dead.iter().map(String::as_str).collect();
    let moved = shared.system.reenqueue_for_recovery(&executors, VERSION, INTERNAL_QUEUE).await;
    let moved = moved.map_err(of_dbos)?.len();
    if moved > 0 {
        tracing::warn!(moved, "an instance died: others continue its tasks");
    }
    // The name of no instance.
    shared.tables.forget("", lease + FORGOTTEN_AFTER).await.map_err(|error| of_write("upkeep", error))
}

/// Runs workflows again that this instance has and does not run: see [`runs`](crate::runs).
async fn run_lost(shared: &Shared, idle: &mut HashSet<TaskKey>) -> Result<(), StoreError> {
    if shared.stage() != Stage::Running {
        return Ok(());
    }
    let owned = shared.tables.owned(&shared.executor()).await.map_err(|error| of_write("upkeep", error))?;
    let lost = shared.runs.lost(&owned, idle);
    if lost.is_empty() {
        return Ok(());
    }
    tracing::warn!(lost = lost.len(), "workflows of tasks did not run any more: they run again");
    let ids: Vec<String> = lost.into_iter().map(workflow_id).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    shared.system.resume_workflows(&ids, None, None).await.map_err(of_dbos).map(drop)
}

/// Runs workflows again that dbos has parked, because they were taken over a hundred times. A task may wait for months.
async fn resume_parked(shared: &Shared) -> Result<(), StoreError> {
    let filter = WorkflowFilter {
        status: vec![WorkflowStatus::MaxRecoveryAttemptsExceeded],
        ..WorkflowFilter::default()
    };
    let parked = shared.system.list_workflows(&filter, None).await.map_err(of_dbos)?;
    let ids: Vec<&str> = parked.iter().map(|workflow| &*workflow.workflow_id).collect();
    if !ids.is_empty() {
        shared.system.resume_workflows(&ids, None, None).await.map_err(of_dbos)?;
    }
    Ok(())
}

/// Removes tasks, with all that dbos recorded of them.
pub(crate) async fn remove(shared: &Shared, tasks: &[TaskKey]) -> Result<(), StoreError> {
    if tasks.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = tasks.iter().copied().map(workflow_id).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    shared.system.delete_workflows(&ids, true, None).await.map_err(of_dbos)?;
    shared.tables.delete(tasks).await.map_err(|error| of_write("upkeep", error))
}

fn of_dbos(error: dbos::sysdb::Error) -> StoreError {
    StoreError::read(StoreErrorKind::Other, "upkeep", error)
}

// The end of an instance: its tasks go to others.

/// Ends the legs soon, and gives the tasks back when the legs have ended.
pub(crate) fn begin(shared: &Arc<Shared>) {
    let before = shared.stage();
    if !shared.advance(Stage::Draining) {
        return;
    }
    if before == Stage::Connected {
        // Either no task ever ran here, or the launch goes on and ends with the hand-over.
        if shared.program.get().is_none() {
            shared.advance(Stage::HandedOver);
        }
        return;
    }
    shared.legs.end_all();
    if let Ok(runtime) = Handle::try_current() {
        let shared = Arc::clone(shared);
        runtime.spawn(async move { finish(&shared).await });
    }
}

/// Gives the tasks of this instance to the others.
pub(crate) async fn finish(shared: &Shared) {
    shared.legs.idle().await;
    if let Some((dbos, _)) = shared.launched.get() {
        // Workflows stay as they are recorded.
        dbos.shutdown().await;
        let executors = [&*shared.executor];
        match shared.system.reenqueue_for_recovery(&executors, VERSION, INTERNAL_QUEUE).await {
            Ok(_) => {
                // After a failure, others find that this instance is dead.
                let _ = shared.tables.forget(&shared.executor, FORGOTTEN_AFTER).await;
            }
            Err(error) => {
                tracing::warn!(error = %escaped(&error), "tasks were not handed over: others take them over after the lease");
            }
        }
    }
    shared.advance(Stage::HandedOver);
}
