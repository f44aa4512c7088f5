//! A call that became a task: it continues without its request. Extension `io.modelcontextprotocol/tasks`. Its handle is
//! `call/task_handle`.
//!
//! ```text
//!  CreateTaskResult --> TaskHandle --wait (run)--> tasks/get --working------------> a pause (pace) --+
//!                        ^   |                     ^  |  |                                          |
//!                        |   |                     |  |  +--input_required--> callbacks             |
//!                        |   |                     |  |                           |                 |
//!                        |   |                     +--|---- tasks/update <--------+                 |
//!                        |   |                     +--|---------------------------------------------+
//!                        |   |                        +--completed, failed, cancelled--> the end
//!                        |   +--get, answer, cancel (control)
//!                        +---- a deadline, a cancelled call, a callback that fails: the error holds the handle
//! ```

pub(crate) mod callbacks;
pub(crate) mod control;
pub(crate) mod end;
pub(crate) mod pace;
pub(crate) mod requests;
pub(crate) mod run;
