//! The state that the parts of an engine share, with the legs that run in this process and the start of workflows.

use crate::{
    options::DbosOptions,
    runs::Runs,
    tables::{Tables, workflow_id},
};
use antiphon_store::{LegControl, TaskKey, TaskListener, TaskProgram};
use antiphon_wire::escaped;
use antiphon_wire::lock::Lock;
use dbos::{
    DBOS, Serializer, StartOptions, WorkflowRef,
    sysdb::{SystemDatabase as _, postgres::PostgresSystemDatabase, types::Message},
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, MutexGuard, OnceLock, PoisonError, RwLock, Weak},
    time::Duration,
};
use tokio::sync::{Semaphore, watch};

/// The version that dbos compares before it recovers a workflow: that of the loop in `workflow.rs`, whose steps are found by their
/// position. It changes when the order of steps does, and not with the server: versions of tools are compared there.
pub(crate) const VERSION: &str = "antiphon-1";

/// The time after which a dead instance is forgotten. Until then, all that it may still have taken is given to others.
pub(crate) const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);

/// The application of dbos.
pub(crate) const APPLICATION: &str = "antiphon";

/// The workflow of a task: its argument is the key of the task, which is also its id.
pub(crate) type TaskWorkflow = WorkflowRef<String, ()>;

pub(crate) struct Shared {
    pub(crate) tables: Tables,
    /// The tables of dbos, for what its executor does not do: messages and hand-over after the executor has ended.
    pub(crate) system: PostgresSystemDatabase,
    pub(crate) url: String,
    pub(crate) options: DbosOptions,
    /// The name of this instance among the executors of dbos.
    pub(crate) executor: String,
    pub(crate) program: OnceLock<Weak<dyn TaskProgram>>,
    pub(crate) launched: OnceLock<(DBOS, TaskWorkflow)>,
    pub(crate) legs: Arc<Legs>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) places: Semaphore,
    pub(crate) stage: watch::Sender<Stage>,
    pub(crate) listeners: RwLock<Vec<TaskListener>>,
}

/// The stage of an engine's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Requests are answered, and no task runs.
    Connected,
    /// Tasks run.
    Running,
    /// Legs end, and no other begins.
    Draining,
    /// The tasks belong to other instances.
    HandedOver,
}

impl Shared {
    pub(crate) fn stage(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Moves to a later stage. Returns false if the engine is there already, or further.
    pub(crate) fn advance(&self, to: Stage) -> bool {
        self.stage.send_if_modified(|stage| {
            let is_later = *stage < to;
            *stage = to.max(*stage);
            is_later
        })
    }

    /// Returns the name of this instance in the rows of workflows: in the cloud of DBOS, the environment sets it.
    pub(crate) fn executor(&self) -> String {
        let named = self.launched.get().and_then(|(dbos, _)| dbos.executor_id().ok());
        named.unwrap_or_else(|| self.executor.clone())
    }

    /// Returns the program, as long as its server exists.
    pub(crate) fn program(&self) -> Option<Arc<dyn TaskProgram>> {
        self.program.get().and_then(Weak::upgrade)
    }

    /// Reports that a task has changed, or perhaps any of them.
    pub(crate) fn changed(&self, task: Option<TaskKey>) {
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        listeners.iter().for_each(|listener| listener(task));
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .field("executor", &self.executor)
            .field("stage", &self.stage())
            .finish_non_exhaustive()
    }
}

/// The legs that run in this process. A workflow that was taken over and comes back may run twice here for a moment.
#[derive(Debug)]
pub(crate) struct Legs {
    running: Lock<HashMap<TaskKey, Vec<Arc<LegControl>>>>,
    /// The number of their tasks.
    count: watch::Sender<usize>,
}

/// A leg that runs, until this value is dropped.
#[derive(Debug)]
pub(super) struct RunningLeg {
    legs: Arc<Legs>,
    task: TaskKey,
    pub(crate) control: Arc<LegControl>,
}

impl Legs {
    pub(crate) fn new() -> Self {
        Self { running: Lock::default(), count: watch::Sender::new(0) }
    }

    pub(crate) fn begin(self: &Arc<Self>, task: TaskKey) -> RunningLeg {
        let control = Arc::new(LegControl::new());
        let mut running = self.running();
        running.entry(task).or_default().push(Arc::clone(&control));
        self.count.send_replace(running.len());
        drop(running);
        RunningLeg { legs: Arc::clone(self), task, control }
    }

    /// Ends the legs of a task soon.
    pub(crate) fn end_soon(&self, task: TaskKey) {
        for control in self.running().get(&task).into_iter().flatten() {
            control.end_soon();
        }
    }

    /// Ends all legs soon.
    pub(crate) fn end_all(&self) {
        for control in self.running().values().flatten() {
            control.end_soon();
        }
    }

    /// Waits until no leg runs.
    pub(crate) async fn idle(&self) {
        // The sender is here, so there is no error.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }

    fn running(&self) -> MutexGuard<'_, HashMap<TaskKey, Vec<Arc<LegControl>>>> {
        self.running.lock()
    }
}

impl Drop for RunningLeg {
    fn drop(&mut self) {
        let mut running = self.legs.running();
        if let Some(controls) = running.get_mut(&self.task) {
            controls.retain(|control| !Arc::ptr_eq(control, &self.control));
            if controls.is_empty() {
                running.remove(&self.task);
            }
        }
        self.legs.count.send_replace(running.len());
    }
}

/// The topic of the announcements of messages.
pub(crate) const TOPIC: &str = "message";

/// Starts the workflow of a task, if this instance runs tasks. A workflow that dbos has already is not started again.
///
/// It is called outside of workflows: one that starts another one is its parent. A request of a handler to its own server has a
/// spawned task for that.
pub(crate) async fn start(shared: &Shared, task: TaskKey) {
    if shared.stage() != Stage::Running {
        return;
    }
    if let Err(error) = started(shared, task).await {
        tracing::warn!(task = %escaped(&task), error = %escaped(&error), "the workflow of a task did not start: it is tried again");
    }
}

async fn started(shared: &Shared, task: TaskKey) -> Result<(), String> {
    let Some((_, workflow)) = shared.launched.get() else { return Ok(()) };
    let id = workflow_id(task);
    let options = StartOptions { workflow_id: Some(&id), ..StartOptions::default() };
    workflow.start_with(id.clone(), options).await.map_err(|error| error.to_string())?;
    shared.tables.started(task).await.map_err(|error| error.to_string())
}

/// Announces a message to the workflow of its task. A message that was announced already is not announced again.
pub(crate) async fn announce(shared: &Shared, task: TaskKey, number: i64) {
    let id = workflow_id(task);
    let key = format!("{id}-{number}");
    let serializer = Serializer::default();
    let message =
        Message { destination_id: &id, topic: Some(TOPIC), message: "null", idempotency_key: Some(&key) };
    let sent = shared.system.send_message(&message, Some(serializer.name()), None, false).await;
    let noted = match sent {
        Ok(()) => shared.tables.announced(task, number).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = noted {
        // The workflow may not have started yet.
        tracing::debug!(task = %escaped(&task), error = %escaped(&error), "a message was not announced: it is tried again");
    }
}
