//! Tasks: calls that outlive their request. The extension `io.modelcontextprotocol/tasks`, and the two earlier forms of tasks as
//! other views of the same tasks (`carrier.rs`).
//!
//! ```text
//!  tools/call ──▶ start: the engine has a snapshot ──▶ the client has the id
//!                     │
//!   program ◀─────────┘ called by the engine
//!    │  next: answers, the end of a question's time, or nothing is missing? ──▶ no: the task waits
//!    ▼  yes
//!   leg: the request of the call, with the state and the answers, sent to the server itself
//!    │    └── meanwhile: questions beside a running step, progress, and the messages of the client
//!    ▼
//!   the snapshot is replaced: open questions, state, or the end
//!
//!  tasks/get ──▶ view: the snapshot, with the messages that wait in the queue
//!  tasks/update, tasks/cancel ──▶ a message in the queue ──▶ program
//! ```
//!
//! A snapshot has three parts (`sealed.rs`): what every request about the task opens, the content of its status, and the record. Polls do
//! not open the record.
//!
//! A leg of a task is the same as a leg of any call: it is admitted, claimed, replayed and sealed by the same code. Only its
//! state stays in the engine. So a task that is promoted, recovered after a crash, or taken over by another process begins its next leg
//! in the same way.

mod earlier;
mod next;
mod program;
mod questions;
mod requests;
mod result;
mod run_leg;
mod sealed;
mod snapshot;
mod start;
mod view;
mod watch;

pub(crate) use earlier::{cancel as cancel_earlier, get as get_earlier, input_response, list, notify};
pub(crate) use program::begin;
pub(crate) use requests::{cancel, get, update};
pub(crate) use result::{TaskResult, result};
pub(crate) use start::{Promoted, create, create_again, created_before, promoted, required, start};

pub(crate) use watch::TaskWatch;
