//! The messages that wait in the queue of a task.

use super::sealed::{open, seal};
use crate::runtime::Runtime;
use antiphon_engine::check_answer;
use antiphon_seal::canonical;
use antiphon_store::{TaskKey, TaskRow};
use antiphon_wire::{InputRequest, UniqueNames};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A message to a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Message {
    Answers(Vec<GivenAnswer>),
    Cancel,
}

/// An answer to an open question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct GivenAnswer {
    /// The key of the question on the wire.
    pub(super) key: String,
    pub(super) text: Box<RawValue>,
    /// False if the answer does not fit its question: the next leg asks again, and the question stays open until then.
    pub(super) is_valid: bool,
}

impl GivenAnswer {
    /// Checks an answer as the leg will.
    pub(super) fn new(server: &Runtime, key: &str, question: &InputRequest, answer: &RawValue) -> Self {
        // An answer that names a member twice would end the task: it counts as one that cannot be read.
        let is_unique = UniqueNames::from_walk(answer.get(), canonical::check).is_ok();
        let text = if is_unique { answer } else { RawValue::NULL };
        let is_valid = check_answer(question, text.get(), &server.engine_limits()).is_ok();
        Self { key: key.to_owned(), text: text.to_owned(), is_valid }
    }
}

impl Message {
    pub(super) fn seal(&self, server: &Runtime, key: TaskKey) -> Option<Vec<u8>> {
        seal(server, key, "message", self)
    }

    pub(super) fn open(server: &Runtime, key: TaskKey, sealed: &[u8]) -> Option<Self> {
        open(server, key, "message", sealed)
    }
}

/// Returns true if a cancellation waits in the queue.
pub(super) fn has_cancel(server: &Runtime, key: TaskKey, row: &TaskRow) -> bool {
    row.messages
        .iter()
        .any(|message| matches!(Message::open(server, key, &message.body), Some(Message::Cancel)))
}
