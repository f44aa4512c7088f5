//! The forms in which servers speak about tasks.

use serde::{Deserialize, Serialize};

/// The form in which a server speaks about a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskForm {
    /// The extension `io.modelcontextprotocol/tasks` of 2026-07-28: `tasks/get` returns questions and result.
    #[default]
    Extension,
    /// The experimental tasks of a session of 2025-11-25: `tasks/result` waits for the result, and the server sends its
    /// questions meanwhile.
    Session,
    /// The draft before the extension: `tasks/result` returns the questions, and `tasks/input_response` answers them. Calls ask
    /// for it with [`draft_tasks`](crate::ClientBuilder::draft_tasks).
    Draft,
}
