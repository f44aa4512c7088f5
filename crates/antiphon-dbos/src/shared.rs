//! The state that the parts of an engine share.

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use antiphon_store::{TaskKey, TaskListener, TaskProgram};
use dbos::sysdb::postgres::PostgresSystemDatabase;
use dbos::{DBOS, WorkflowRef};
use tokio::sync::{Semaphore, watch};

use crate::legs::Legs;
use crate::options::DbosOptions;
use crate::runs::Runs;
use crate::tables::Tables;

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
