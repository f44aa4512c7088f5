//! The form of tasks in a request, and the wish of a client for a task.
//!
//! | form | requests | a call becomes a task | questions |
//! |---|---|---|---|
//! | extension | of 2026-07-28 with the extension | if the tool says so | in `tasks/get` |
//! | session | in a session of 2025-11-25 | if `params.task` says so | pushed beside `tasks/result` |
//! | draft | of 2026-07-28 without the extension, if the server has the draft | if `params.task` and the tool say so | returned by `tasks/result` |
//!
//! All forms are views of the same tasks.

use crate::{errors::refusal::Refusal, request::receive::Request, runtime::Runtime};
use antiphon_wire::TaskMetadata;
use std::time::Duration;

/// The shortest time for which a task exists, whatever its client wants.
const SHORTEST: Duration = Duration::from_secs(1);

/// The form of tasks in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskForm {
    /// The extension.
    Extension,
    /// Sessions of a revision with tasks.
    Session,
    /// The draft after that revision.
    Draft,
}

impl TaskForm {
    /// Returns the form of tasks in this request; nothing if it has none.
    pub(crate) fn of(server: &Runtime, request: &Request<'_>) -> Option<Self> {
        let tasks = server.tasks.as_ref()?;
        match &request.session {
            Some(session) => session.has_tasks().then_some(Self::Session),
            None if request.meta.tasks => Some(Self::Extension),
            None => tasks.is_draft.then_some(Self::Draft),
        }
    }

    /// Returns the form if the client may wish for a task in it, and wishes for one.
    ///
    /// > Receivers that do not declare the task capability for a request type **MUST** process requests of that type
    /// > normally, ignoring any task-augmentation metadata if present.
    pub(crate) fn wished(server: &Runtime, request: &Request<'_>) -> Option<Self> {
        let form = Self::of(server, request).filter(|form| *form != Self::Extension);
        form.filter(|_| request.params.task.is_some())
    }
}

/// Returns true if a running call may become a task.
pub(crate) fn may_promote(server: &Runtime, request: &Request<'_>) -> bool {
    match TaskForm::of(server, request) {
        // > A server **MUST NOT** return `CreateTaskResult` to a client that did not include the extension capability on
        // > its request
        None | Some(TaskForm::Session) => false,
        Some(TaskForm::Extension) => true,
        Some(TaskForm::Draft) => request.params.task.is_some(),
    }
}

/// Returns the time for which the task of this request exists.
///
/// > Receivers **MAY** override the requested `ttl` duration.
pub(crate) fn ttl(server: &Runtime, request: &Request<'_>) -> Result<Option<Duration>, Refusal> {
    let at_most = server.tasks.as_ref().and_then(|tasks| tasks.options.ttl);
    let wish = request.params.task.filter(|_| TaskForm::wished(server, request).is_some());
    let Some(wish) = wish else { return Ok(at_most) };
    let wish: TaskMetadata =
        crate::read::read_object(wish, "params.task").map_err(|fault| Refusal::params(fault.message))?;
    let Some(wish) = wish.ttl else { return Ok(at_most) };
    let wish = Duration::from_millis(wish).max(SHORTEST);
    Ok(Some(at_most.map_or(wish, |at_most| wish.min(at_most))))
}
