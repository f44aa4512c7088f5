//! The view of a task for its client: its snapshot, with the messages that wait in the queue.

use super::{
    id,
    snapshot::{Cancellation, End, Message, Snapshot},
};
use crate::{clock::millis, runtime::Runtime};
use antiphon_seal::utc;
use antiphon_store::{TaskKey, TaskRow, mutant::is_mutant};
use antiphon_wire::{DetailedTask, Task, TaskDetail};

/// Returns the task for its client.
pub(super) fn detailed(
    server: &Runtime,
    key: TaskKey,
    row: &TaskRow,
    mut snapshot: Snapshot,
) -> DetailedTask {
    for message in &row.messages {
        match Message::open(server, key, &message.body) {
            // The question is answered, although the handler does not have the answer yet.
            Some(Message::Answers(answers)) => {
                for (key, _) in answers.iter().filter(|_| !is_mutant("task_answer_shown")) {
                    snapshot.questions.answer(key);
                }
            }
            Some(Message::Cancel) => snapshot.request_cancellation(),
            None => {}
        }
    }
    // Nobody is to answer a question of a task that is cancelled.
    if snapshot.cancellation != Cancellation::None {
        snapshot.questions.clear();
    }
    let task = task(server, key, &snapshot);
    DetailedTask::new(
        task,
        match snapshot.end {
            Some(End::Completed(result)) => TaskDetail::Result(result),
            Some(End::Failed(error)) => TaskDetail::Error(error),
            Some(End::Cancelled) => TaskDetail::None,
            None if snapshot.questions.is_empty() => TaskDetail::None,
            None => TaskDetail::InputRequests(snapshot.questions.to_requests()),
        },
    )
}

/// Returns the operational data of a task.
pub(super) fn task(server: &Runtime, key: TaskKey, snapshot: &Snapshot) -> Task {
    let mut task = Task::new(id::text(key), snapshot.task_status(), utc::format(snapshot.created / 1000));
    // The clock of another process may be behind.
    task.last_updated_at = utc::format(snapshot.updated.max(snapshot.created) / 1000);
    task.status_message = match &snapshot.end {
        Some(End::Failed(error)) => Some(error.message.clone()),
        _ => snapshot.status.clone(),
    };
    task.ttl_ms = snapshot.ttl;
    let interval = server.tasks.as_ref().map(|tasks| tasks.options.poll_interval.as_millis());
    task.poll_interval_ms = interval.and_then(|interval| u64::try_from(interval).ok());
    task
}

/// Notes the moment of a change.
pub(super) fn touch(server: &Runtime, snapshot: &mut Snapshot) {
    snapshot.updated = millis(server.clock.now());
}
