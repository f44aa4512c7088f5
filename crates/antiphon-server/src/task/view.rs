//! The view of a task for its client: its snapshot, with the messages that wait in the queue.

use super::{
    next::Message,
    sealed::{self, Cancellation, Shown, ShownEnd},
    snapshot::Snapshot,
};
use crate::{errors::refusal::Refusal, options::millis, runtime::Runtime};
use antiphon_seal::utc;
use antiphon_store::{TaskKey, TaskRow};
use antiphon_wire::{DetailedTask, InputRequests, Meta, Task, TaskDetail};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

/// The content of a task's status, as JSON.
pub(super) enum Content {
    None,
    Questions(Box<RawValue>),
    Result(Box<RawValue>),
    Error(Box<RawValue>),
}

/// A task for its client. The content is written as it was stored.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrittenTask {
    #[serde(flatten)]
    task: DetailedTask,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<RawValue>>,
}

impl WrittenTask {
    /// Returns the id of the task.
    pub(crate) fn id(&self) -> &str {
        &self.task.task.task_id
    }

    /// Returns the task, content included.
    pub(super) fn of(server: &Runtime, key: TaskKey, row: &TaskRow, shown: &Shown) -> Result<Self, Refusal> {
        let now = with_messages(server, key, row, shown.clone());
        let mut written = Self::without_content(server, key, &now);
        match content(server, key, row, shown, &now)? {
            Content::None => {}
            Content::Questions(text) => written.input_requests = Some(text),
            Content::Result(text) => written.result = Some(text),
            Content::Error(text) => written.error = Some(text),
        }
        Ok(written)
    }

    fn without_content(server: &Runtime, key: TaskKey, now: &Shown) -> Self {
        let task = DetailedTask::new(task(server, key, now), TaskDetail::None);
        Self { task, input_requests: None, result: None, error: None }
    }

    /// Returns the task, without content if that cannot be opened. The log says so.
    pub(super) fn of_row(server: &Runtime, key: TaskKey, row: &TaskRow, shown: &Shown) -> Self {
        Self::of(server, key, row, shown).unwrap_or_else(|_refusal| {
            Self::without_content(server, key, &with_messages(server, key, row, shown.clone()))
        })
    }

    /// Returns the task with this metadata.
    pub(crate) fn with_meta(mut self, meta: Meta) -> Self {
        self.task = self.task.with_meta(Some(meta));
        self
    }
}

/// Returns the operational data of a task with the messages that wait in the queue.
pub(super) fn with_messages(server: &Runtime, key: TaskKey, row: &TaskRow, mut shown: Shown) -> Shown {
    for message in &row.messages {
        match Message::open(server, key, &message.body) {
            // The question is answered, although the handler does not have the answer yet.
            Some(Message::Answers(answers)) => {
                for given in &answers {
                    shown.answer(&given.key, given.is_valid);
                }
            }
            Some(Message::Cancel) => shown.request_cancellation(),
            None => {}
        }
    }
    // Nobody is to answer a question of a task that is cancelled.
    if shown.cancellation != Cancellation::None {
        shown.questions.clear();
    }
    shown
}

/// Returns the content of a task's status. `shown` is the stored one, and `now` the same with the messages in the queue. A task
/// that works has none, and nothing is opened.
pub(super) fn content(
    server: &Runtime,
    key: TaskKey,
    row: &TaskRow,
    shown: &Shown,
    now: &Shown,
) -> Result<Content, Refusal> {
    let open = || raw(shown.open_content(server, key, &row.snapshot)).ok_or(Refusal::Internal);
    match &now.end {
        Some(ShownEnd::Completed { .. }) => open().map(Content::Result),
        Some(ShownEnd::Failed { .. }) => open().map(Content::Error),
        Some(ShownEnd::Cancelled) => Ok(Content::None),
        None if now.questions.is_empty() => Ok(Content::None),
        None if now.is_unanswered(shown) => open().map(Content::Questions),
        // The status stays `input_required` while a question is asked again. Another answer under its old key would be lost, so that
        // only its new key is shown.
        None => {
            let requests = questions(server, key, row, shown, |open| now.is_awaited(open))?;
            to_raw_value(&requests).map(Content::Questions).map_err(|_fault| Refusal::Internal)
        }
    }
}

/// Returns those of the stored questions whose keys fulfil `is_wanted`. Without any, nothing is opened.
pub(super) fn questions(
    server: &Runtime,
    key: TaskKey,
    row: &TaskRow,
    shown: &Shown,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<InputRequests, Refusal> {
    let mut wanted = InputRequests::new();
    if !shown.questions.iter().any(|question| is_wanted(&question.key)) {
        return Ok(wanted);
    }
    let text = raw(shown.open_content(server, key, &row.snapshot)).ok_or(Refusal::Internal)?;
    let all: InputRequests = parsed(&text).ok_or(Refusal::Internal)?;
    for (key, request) in all.iter().filter(|(key, _)| is_wanted(key)) {
        // Each key is there once.
        let _ = wanted.insert(key, request.clone());
    }
    Ok(wanted)
}

fn raw(content: Option<Vec<u8>>) -> Option<Box<RawValue>> {
    RawValue::from_string(String::from_utf8(content?).ok()?).ok()
}

fn parsed<T: DeserializeOwned>(text: &RawValue) -> Option<T> {
    serde_json::from_str(text.get()).ok()
}

/// Returns the operational data of a task.
pub(super) fn task(server: &Runtime, key: TaskKey, shown: &Shown) -> Task {
    let mut task = Task::new(sealed::text(key), shown.status(), utc::format(shown.created / 1000));
    // The clock of another process may be behind.
    task.last_updated_at = utc::format(shown.updated.max(shown.created) / 1000);
    task.status_message = shown.message().map(ToOwned::to_owned);
    // > The value of `ttlMs` **MAY** change over the lifetime of a task.
    task.ttl_ms = shown.kept.or(shown.ttl);
    let interval = server.tasks.as_ref().map(|tasks| tasks.options.poll_interval.as_millis());
    task.poll_interval_ms = interval.and_then(|interval| u64::try_from(interval).ok());
    task
}

/// Notes the moment of a change.
pub(super) fn touch(server: &Runtime, snapshot: &mut Snapshot) {
    snapshot.updated = millis(server.clock.now());
}
