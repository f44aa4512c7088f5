//! Tasks: calls that outlive their request. The extension `io.modelcontextprotocol/tasks`.
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
//! A leg of a task is the same as a leg of any call: it is admitted, claimed, replayed and sealed by the same code. Only its
//! state stays in the engine. So a task that is promoted, recovered after a crash, or taken over by another process begins its next leg
//! in the same way.

mod id;
mod next;
mod program;
mod questions;
mod requests;
mod run_leg;
mod snapshot;
mod start;
mod view;
mod watch;

pub(crate) use program::begin;
pub(crate) use requests::{cancel, get, update};
pub(crate) use start::{promote, required, start};

pub(crate) use watch::TaskWatch;
