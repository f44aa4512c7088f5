//! The arguments of `tasks`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// Lists the tasks of the store, the oldest first
    ///
    /// The columns: the id; "held" (a process runs the task), "due" (none does, and one should), "waits" (for an answer) or "final";
    /// the age, the time since the last change, and the rest of the time for which the row exists; the messages in the queue, the
    /// bytes of the snapshot, and the number of times that a process began to run the task.
    Ls {
        /// Only tasks that need the operator: due and unchanged for this number of seconds at least (60 unless given), or begun ten
        /// times more often than messages came
        #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "60")]
        stuck: Option<u64>,
        /// The maximum number of tasks
        #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
        limit: usize,
        #[command(flatten)]
        store: TaskStoreArgs,
    },
    /// Prints one task of the store
    Show {
        /// The id of the task, or the beginning of it
        #[arg(value_name = "TASK")]
        task: String,
        #[command(flatten)]
        store: TaskStoreArgs,
    },
}

#[derive(Args, Debug)]
pub(crate) struct TaskStoreArgs {
    /// The SQLite file of the server, which is only read. No key is needed: questions, answers and results are sealed and not shown
    #[arg(long = "store", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print one JSON object; times are in milliseconds
    #[arg(long)]
    pub(crate) json: bool,
}
