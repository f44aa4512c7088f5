//! `notifications/tasks/status` in sessions.

use super::{
    earlier,
    requests::load_any,
    watch::{self, Changes},
};
use crate::{
    outbox::{MessageKind, Outbox},
    runtime::Runtime,
    session::Session,
};
use antiphon_store::TaskKey;
use antiphon_wire::{LegacyTask, TaskStatus, escaped, method, write_notification};
use std::{collections::HashMap, hash::RandomState, sync::Arc};

/// The number of tasks at which those that the session does not remember are forgotten.
const SHOWN: usize = 1024;

/// Sends each change of the status of the tasks that the session has created. The future does not end.
///
/// > When a task status changes, receivers **MAY** send a `notifications/tasks/status` notification to inform the requestor of
/// > the change.
pub(crate) async fn notify(server: &Arc<Runtime>, session: &Session, outbox: &Outbox) {
    let Some(tasks) = server.tasks.as_ref().filter(|_| session.has_tasks()) else {
        return std::future::pending().await;
    };
    let mut changes = Changes::of(tasks);
    let digests = RandomState::new();
    let begins = watch::digest(&digests, &(TaskStatus::Working, None::<String>));
    // The digests of each status and its text.
    let mut shown: HashMap<TaskKey, u64> = HashMap::new();
    loop {
        // Without a name, changes may have been missed: the client polls.
        let Some(key) = changes.next().await else { continue };
        if !session.has_created(key) {
            continue;
        }
        // The session has created the task, so it belongs to the caller of the session.
        let Ok(Some((row, loaded))) = load_any(server, tasks, key).await else { continue };
        let task = earlier::task(server, key, &row, &loaded);
        let now = watch::digest(&digests, &(task.task.status, &task.task.status_message));
        if shown.len() >= SHOWN {
            shown.retain(|key, _| session.has_created(*key));
        }
        // > Tasks **MUST** begin in the `working` status when created.
        if shown.insert(key, now).unwrap_or(begins) != now {
            send(outbox, &task);
        }
    }
}

fn send(outbox: &Outbox, task: &LegacyTask) {
    match write_notification(method::TASKS_STATUS, task) {
        // > Requestors **MUST NOT** rely on receiving this notifications, as it is optional.
        //
        // A client that reads slowly loses some, as it loses log messages.
        Ok(bytes) => outbox.push(MessageKind::Log, bytes),
        Err(fault) => {
            tracing::error!(fault = %escaped(&fault), "the status of a task cannot be written as JSON");
        }
    }
}
