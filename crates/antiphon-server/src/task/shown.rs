//! The part of a snapshot that requests about the task open. It is as short for a task with a large record, large questions or a
//! large result as for any other.

use super::sealed::{Parts, open, open_bytes};
use crate::runtime::Runtime;
use antiphon_seal::Principal;
use antiphon_store::TaskKey;
use antiphon_wire::TaskStatus;
use serde::{Deserialize, Serialize};

/// The operational data of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Shown {
    /// The name of the other parts of the snapshot.
    pub(super) parts: String,
    /// The tool.
    pub(super) tool: String,
    pub(super) principal: Option<StoredPrincipal>,
    /// The digest of the answers of the leg that has become the task, if that leg was claimed.
    pub(super) created_by: Option<String>,
    /// The moments of creation and of the last change, in Unix milliseconds.
    pub(super) created: u64,
    pub(super) updated: u64,
    /// The times from the creation, in milliseconds: that of the creating reply, and that for which a task that is over is kept.
    pub(super) ttl: Option<u64>,
    pub(super) kept: Option<u64>,
    pub(super) progress: Option<Progress>,
    /// The questions in the content.
    pub(super) questions: Vec<ShownQuestion>,
    pub(super) cancellation: Cancellation,
    /// True while a task that keeps its cancellation ends.
    pub(super) is_ending: bool,
    pub(super) end: Option<ShownEnd>,
}

/// A question without an answer that is valid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ShownQuestion {
    pub(super) key: String,
    /// The id that the author gave to a URL question. Sessions see it.
    pub(super) elicitation_id: Option<String>,
    /// True if it has an answer that is not valid. It is asked again soon.
    pub(super) is_refused: bool,
}

/// The end of a task, without its result or its error.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum ShownEnd {
    Completed {
        /// The text of a tool's error.
        failure: Option<String>,
    },
    Failed {
        message: String,
    },
    Cancelled,
}

/// The text of the last progress, which belongs to one status.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) text: String,
    pub(super) of: TaskStatus,
}

/// The cancellation of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Cancellation {
    None,
    /// The client has asked for it, and the handler does not know yet.
    Requested,
    /// The handler knows. It may compensate.
    Met {
        /// The number of questions that were cancelled since.
        asked: u32,
    },
}

/// A principal in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredPrincipal {
    issuer: Option<String>,
    client: Option<String>,
    subject: Option<String>,
}

impl StoredPrincipal {
    pub(super) fn of(principal: &Principal) -> Self {
        let part = |part: Option<&str>| part.map(ToOwned::to_owned);
        Self {
            issuer: part(principal.issuer()),
            client: part(principal.client_id()),
            subject: part(principal.subject()),
        }
    }

    pub(super) fn to_principal(&self) -> Principal {
        // An empty part counts as none.
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        Principal::user(part(&self.subject))
            .with_client_id(part(&self.client))
            .with_issuer(part(&self.issuer))
    }
}

impl Shown {
    /// Opens this part of a row's snapshot.
    pub(super) fn open(server: &Runtime, key: TaskKey, snapshot: &[u8]) -> Option<Self> {
        open(server, key, "shown", Parts::shown(snapshot)?)
    }

    /// Opens the content of the same snapshot.
    pub(super) fn open_content(&self, server: &Runtime, key: TaskKey, snapshot: &[u8]) -> Option<Vec<u8>> {
        open_bytes(server, key, &content_purpose(&self.parts), Parts::of(snapshot)?.content)
    }

    /// Returns true if this caller created the task.
    pub(super) fn is_of(&self, principal: Option<&Principal>) -> bool {
        self.principal == principal.map(StoredPrincipal::of)
    }

    /// Takes an answer to a question: one that is valid removes the question.
    pub(super) fn answer(&mut self, key: &str, is_valid: bool) {
        let Some(at) = self.questions.iter().position(|question| question.key == key) else { return };
        if !is_valid {
            self.questions[at].is_refused = true;
        } else if !self.questions[at].is_refused {
            self.questions.remove(at);
        }
    }

    /// Returns true if no question of the stored data has an answer.
    pub(super) fn is_unanswered(&self, stored: &Self) -> bool {
        self.questions.len() == stored.questions.len() && self.questions.iter().all(|open| !open.is_refused)
    }

    /// Returns true if the question waits for an answer.
    pub(super) fn is_awaited(&self, key: &str) -> bool {
        self.questions.iter().any(|question| question.key == key && !question.is_refused)
    }

    /// Returns the id that the author gave to the question with this key.
    pub(super) fn elicitation_id(&self, key: &str) -> Option<&str> {
        self.questions.iter().find(|question| question.key == key)?.elicitation_id.as_deref()
    }

    /// Notes that the client wants the task to be cancelled.
    pub(super) fn request_cancellation(&mut self) {
        if self.cancellation == Cancellation::None {
            self.cancellation = Cancellation::Requested;
        }
    }

    /// Returns the status.
    pub(super) fn status(&self) -> TaskStatus {
        match &self.end {
            Some(ShownEnd::Completed { .. }) => TaskStatus::Completed,
            Some(ShownEnd::Failed { .. }) => TaskStatus::Failed,
            Some(ShownEnd::Cancelled) => TaskStatus::Cancelled,
            None if self.questions.is_empty() => TaskStatus::Working,
            None => TaskStatus::InputRequired,
        }
    }

    /// Returns the text that belongs to the status.
    pub(super) fn message(&self) -> Option<&str> {
        match (&self.end, &self.progress) {
            (Some(ShownEnd::Failed { message }), _) => Some(message),
            (_, Some(progress)) if progress.of == self.status() => Some(&progress.text),
            _ => None,
        }
    }
}

/// Returns the purpose under which the content of a snapshot is sealed.
pub(super) fn content_purpose(parts: &str) -> String {
    format!("content {parts}")
}
