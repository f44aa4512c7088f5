//! The arguments that name the server, and those of `task` and `tasks`.

use crate::{
    args::{AnswerArgs, ClientArgs},
    failure::Failure,
};
use antiphon::{
    client::{ClientBuilder, Mode},
    wire::ProtocolVersion,
};
use clap::{Args, Subcommand, ValueEnum};
use std::{ffi::OsString, fmt, path::PathBuf};

#[derive(Args, Debug)]
pub(crate) struct TargetArgs {
    /// The URL of the server
    #[arg(value_name = "URL", conflicts_with_all = ["command", "servers"])]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
}

/// The server, after words for the command itself. The word that is a URL is that of the server.
#[derive(Args, Debug)]
pub(crate) struct WordsArgs<W: Words> {
    #[command(flatten)]
    words: W,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Words of the command line, one of which may be the URL of the server.
pub(crate) trait Words: Args + fmt::Debug {
    fn into_words(self) -> Vec<String>;
}

#[derive(Args, Debug)]
pub(crate) struct ArgumentWords {
    /// Arguments as NAME=VALUE, and the URL of the server
    ///
    /// A VALUE is read by the type of the argument: a text as it is, anything else as JSON. They are added to those of `--args`.
    #[arg(value_name = "NAME=VALUE|URL")]
    words: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct NameWords {
    /// Names of entries that are printed in full, without the others, and the URL of the server
    #[arg(value_name = "NAME|URL")]
    words: Vec<String>,
}

impl Words for ArgumentWords {
    fn into_words(self) -> Vec<String> {
        self.words
    }
}

impl Words for NameWords {
    fn into_words(self) -> Vec<String> {
        self.words
    }
}

impl<W: Words> WordsArgs<W> {
    /// Separates the words for the command from the server.
    pub(crate) fn split(self) -> Result<(Vec<String>, TargetArgs), Failure> {
        let is_url = |word: &String| word.starts_with("http://") || word.starts_with("https://");
        let (mut urls, words): (Vec<_>, Vec<_>) = self.words.into_words().into_iter().partition(is_url);
        let connection = self.connection;
        let url = urls.pop();
        let has_other = !connection.command.is_empty() || connection.servers.is_some();
        if !urls.is_empty() || url.is_some() && has_other {
            return Err(Failure::usage("one server: a URL, a command after `--`, or --servers"));
        }
        Ok((words, TargetArgs { url, connection }))
    }
}

/// The connection to the server.
#[derive(Args, Debug)]
pub(crate) struct ConnectionArgs {
    /// The time limit of one request, in seconds; the time for answers does not count
    #[arg(long, value_name = "SECS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// The time limit of one request that reports progress, in seconds: each report begins the time of --timeout again
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_timeout: Option<u64>,
    /// The protocol versions to use: auto, legacy (sessions), or one version, such as 2025-06-18
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = mode)]
    pub(crate) mode: Mode,
    /// The bearer token for a URL
    #[arg(long, value_name = "TOKEN", env = "MCP_BEARER", hide_env_values = true)]
    pub(crate) bearer: Option<String>,
    /// A header for a URL, sent with every request; may be repeated
    #[arg(long = "header", value_name = "NAME:VALUE", value_parser = header)]
    pub(crate) headers: Vec<HttpHeader>,
    /// A variable for a command; without a value, that of this program is passed on; may be repeated
    ///
    /// A command gets only HOME, LOGNAME, PATH, SHELL, TERM and USER of this program's environment.
    #[arg(long = "env", value_name = "NAME[=VALUE]", value_parser = variable)]
    pub(crate) variables: Vec<EnvVariable>,
    /// Pass the whole environment of this program on to a command, with all tokens and keys in it
    #[arg(long)]
    pub(crate) inherit_env: bool,
    /// A JSON file with an object "mcpServers" or "servers", as hosts have it, or `-` for standard input
    ///
    /// "command", "args", "env" and "cwd", or "url" and "headers". ${NAME}, ${env:NAME} and ${NAME:-DEFAULT} in the values are
    /// variables of this program's environment, and errors show the names only. Comments and trailing commas are read. A warning
    /// names what is not used. The file is a regular one of at most 1 MiB. Headers of the connection and of the protocol, such as
    /// Host and Mcp-Method, are refused.
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub(crate) servers: Option<PathBuf>,
    /// The name of the server in the file of `--servers`, which a file with one server does not need. Without a name, lists are those
    /// of all servers
    #[arg(long, value_name = "NAME", requires = "servers")]
    pub(crate) server: Option<String>,
    /// The command that starts the server on its standard input and output
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

impl Default for ConnectionArgs {
    fn default() -> Self {
        Self {
            timeout: 60,
            max_timeout: None,
            mode: Mode::Auto,
            bearer: None,
            headers: Vec::new(),
            variables: Vec::new(),
            inherit_env: false,
            servers: None,
            server: None,
            command: Vec::new(),
        }
    }
}

/// A header. Its value may be a secret.
#[derive(Clone)]
pub(crate) struct HttpHeader {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A variable of the environment. Without a value, that of this program is meant. The value may be a secret.
#[derive(Clone)]
pub(crate) struct EnvVariable {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

impl fmt::Debug for HttpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpHeader").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for EnvVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvVariable").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Parses the value of `--mode`.
fn mode(text: &str) -> Result<Mode, String> {
    let version = ProtocolVersion::new(text);
    match text {
        "auto" => Ok(Mode::Auto),
        "legacy" => Ok(Mode::Legacy),
        _ if version.is_modern() || version.is_legacy() => Ok(Mode::Pinned(version)),
        _ => {
            let known = ProtocolVersion::MODERN.iter().chain(ProtocolVersion::LEGACY);
            let known: Vec<&str> = known.map(ProtocolVersion::as_str).collect();
            Err(format!("must be one of auto, legacy, {}", known.join(", ")))
        }
    }
}

/// Parses the value of `--header`.
fn header(text: &str) -> Result<HttpHeader, &'static str> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok(HttpHeader { name: name.trim().to_owned(), value: value.trim().to_owned() })
        }
        _ => Err("write NAME:VALUE"),
    }
}

/// Parses the value of `--env`.
fn variable(text: &str) -> Result<EnvVariable, &'static str> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    if name.is_empty() || text.contains('\0') {
        return Err("write NAME or NAME=VALUE");
    }
    Ok(EnvVariable { name: name.to_owned(), value })
}

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
