//! The end of an instance: its tasks go to others.

use std::sync::Arc;

use antiphon_wire::escaped;
use dbos::sysdb::{INTERNAL_QUEUE, SystemDatabase as _};
use tokio::runtime::Handle;

use crate::shared::{FORGOTTEN_AFTER, Shared, Stage, VERSION};

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
