//! The launch of the executor of dbos.

use std::sync::{Arc, Weak};
use std::time::Duration;

use antiphon_store::TaskProgram;
use antiphon_wire::escaped;
use dbos::{Config, DBOS};
use tokio::runtime::Handle;
use tokio::time::sleep;

use crate::shared::{APPLICATION, Shared, Stage, TaskWorkflow, VERSION};
use crate::{drain, upkeep, workflow};

/// The name of the workflow of a task.
const WORKFLOW: &str = "task";
/// The time between two attempts to launch.
const PAUSE: Duration = Duration::from_secs(1);

/// Begins to run tasks, once.
pub(crate) fn begin(shared: &Arc<Shared>, program: Weak<dyn TaskProgram>) {
    let Ok(runtime) = Handle::try_current() else { return };
    if shared.program.set(program).is_ok() {
        runtime.spawn(launch(Arc::clone(shared)));
    }
}

async fn launch(shared: Arc<Shared>) {
    let config = Config {
        app_version: Some(VERSION.to_owned()),
        executor_id: Some(shared.executor.clone()),
        schema: shared.options.schema.clone(),
        max_connections: shared.options.connections,
        // `connect` did.
        migrate: false,
        ..Config::new(APPLICATION, &shared.url)
    };
    let dbos = DBOS::new(config);
    let weak = Arc::downgrade(&shared);
    let registered =
        dbos.register_workflow(WORKFLOW, move |id: String| workflow::run(Weak::clone(&weak), id));
    let workflow: TaskWorkflow = match registered {
        Ok(workflow) => workflow,
        Err(error) => {
            tracing::error!(error = %escaped(&error), "the workflow of tasks cannot be registered: no task runs");
            return;
        }
    };
    loop {
        if shared.stage() >= Stage::Draining {
            return drain::finish(&shared).await;
        }
        // Before the executor has workflows: otherwise nobody takes them over if this process dies now.
        let launched = match shared.tables.beat(&shared.executor).await {
            Ok(()) => dbos.launch().await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match launched {
            Ok(()) => break,
            Err(error) => {
                tracing::warn!(error = %escaped(&error), "dbos cannot be launched now: no task runs");
                sleep(PAUSE).await;
            }
        }
    }
    // It is set once.
    let _ = shared.launched.set((dbos, workflow));
    if !shared.advance(Stage::Running) {
        return drain::finish(&shared).await;
    }
    tokio::spawn(upkeep::run(Arc::downgrade(&shared)));
}
