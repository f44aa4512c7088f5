//! The arguments of `task` and `tasks`.

use super::{AnswerArgs, ClientArgs, TargetArgs};
use antiphon::client::ClientBuilder;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Prints the state of a task: its status, its questions, its result
    Get(TaskArgs),
    /// Sends answers to the questions of a task, and does not wait for its end
    ///
    /// Questions without an `--answer` are asked at the terminal; without one they stay open.
    Answer {
        #[command(flatten)]
        answers: AnswerArgs,
        #[command(flatten)]
        client: ClientArgs,
        #[command(flatten)]
        task: TaskArgs,
    },
    /// Asks the server to cancel a task; the server decides
    Cancel(TaskArgs),
    /// Follows a task to its end, answers its questions, and prints the result as `call` does
    Watch {
        #[command(flatten)]
        answers: AnswerArgs,
        #[command(flatten)]
        client: ClientArgs,
        /// Save images, audio and other binary contents of the result as new files in this directory
        #[arg(long, value_name = "DIR")]
        save: Option<PathBuf>,
        #[command(flatten)]
        task: TaskArgs,
    },
}

/// The arguments of a call that may become a task.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct CallTaskArgs {
    /// Print the id of the task and stop, if the server makes a task of the call; `task` continues it
    #[arg(long)]
    pub(crate) detach: bool,
    /// Ask for a task also as in the draft before the extension; `only`: not with the extension
    #[arg(long, value_name = "WHERE", num_args = 0..=1, require_equals = true, default_missing_value = "also")]
    pub(crate) draft_tasks: Option<DraftTasks>,
}

/// The use of the draft before the extension for tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DraftTasks {
    /// The extension too, which a server that has both uses
    Also,
    /// The draft without the extension
    Only,
}

impl CallTaskArgs {
    /// Sets the forms of tasks that the client speaks.
    pub(crate) fn attach(self, builder: ClientBuilder) -> ClientBuilder {
        builder.tasks(self.draft_tasks != Some(DraftTasks::Only)).draft_tasks(self.draft_tasks.is_some())
    }
}

#[derive(Args, Debug)]
pub(crate) struct TaskArgs {
    /// The id of the task, as `call --detach` prints it; `@FILE` reads the output of `call --detach --json`
    ///
    /// A file has the keys of the answered questions, which are not asked again, and the server, unless the command line names
    /// another one.
    #[arg(value_name = "TASK")]
    pub(crate) task: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The task is one of the draft before the extension; a file of `call --detach --json` says that itself
    #[arg(long)]
    pub(crate) draft_tasks: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

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
