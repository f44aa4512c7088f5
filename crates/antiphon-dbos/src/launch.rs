//! The launch of the executor of dbos, and the changes that all instances report on a channel of the database.

use crate::{
    shared::{APPLICATION, Shared, Stage, TaskWorkflow, VERSION},
    tables::task_of,
    upkeep, workflow,
};
use antiphon_store::TaskProgram;
use antiphon_wire::escaped;
use dbos::{Config, DBOS};
use sqlx::{PgPool, postgres::PgListener};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{runtime::Handle, time::sleep};

/// The name of the workflow of a task.
const WORKFLOW: &str = "task";
/// The time between two attempts to launch, or to open a broken connection again.
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
            return upkeep::finish(&shared).await;
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
        return upkeep::finish(&shared).await;
    }
    tokio::spawn(upkeep::run(Arc::downgrade(&shared)));
}

/// Listens as long as the engine exists.
pub(crate) async fn run(shared: Weak<Shared>) {
    loop {
        let Some((pool, channel)) =
            shared.upgrade().map(|shared| (shared.tables.pool().clone(), shared.tables.channel.clone()))
        else {
            return;
        };
        if let Err(error) = listen(&shared, &pool, &channel).await {
            tracing::warn!(error = %escaped(&error), "the changes of tasks are not received now");
            sleep(PAUSE).await;
        }
    }
}

async fn listen(shared: &Weak<Shared>, pool: &PgPool, channel: &str) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(channel).await?;
    loop {
        // Changes before the connection were missed.
        missed(shared);
        while let Some(notification) = listener.try_recv().await? {
            let Some(shared) = shared.upgrade() else { return Ok(()) };
            let Some((kind, id)) = notification.payload().split_at_checked(1) else { continue };
            let Some(task) = task_of(id) else { continue };
            if kind == "m" {
                shared.legs.end_soon(task);
            }
            shared.changed(Some(task));
        }
    }
}

fn missed(shared: &Weak<Shared>) {
    if let Some(shared) = shared.upgrade() {
        // There may be a message for each of them.
        shared.legs.end_all();
        shared.changed(None);
    }
}
