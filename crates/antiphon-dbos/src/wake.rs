//! The start of workflows, and the announcements of messages that wake them.

use antiphon_store::TaskKey;
use antiphon_wire::escaped;
use dbos::sysdb::SystemDatabase as _;
use dbos::sysdb::types::Message;
use dbos::{Serializer, StartOptions};

use crate::shared::{Shared, Stage};
use crate::tables::workflow_id;

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
