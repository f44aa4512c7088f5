//! The wish of a client for a task, and the support of a tool for it, in the revision 2025-11-25 and the draft after that revision.

use crate::members::optional_whole;
use serde::{Deserialize, Serialize};

/// The member `task` of a request's params: the client wants a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// The time from the creation for which the client wants the task to be kept, in milliseconds; `None` if the client does
    /// not mind.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "optional_whole")]
    pub ttl: Option<u64>,
}

impl TaskMetadata {
    /// Creates the metadata of a task that the client wants to be kept for this time, in milliseconds.
    pub fn new(ttl: Option<u64>) -> Self {
        Self { ttl }
    }
}

/// The support of a tool for tasks: `execution.taskSupport` of its definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    /// A call of the tool is never a task. The default.
    #[default]
    Forbidden,
    /// A call of the tool is a task if the client wants one.
    Optional,
    /// A call of the tool is always a task.
    Required,
}
