//! The command line.

mod query;
mod target;

pub(crate) use query::{
    Completable, CompleteArgs, DiscoverArgs, KeygenArgs, ListArgs, ListenArgs, ListenTo, ReceiptCommand,
    VerifyArgs,
};
pub(crate) use query::{LoginArgs, SignedInArgs};
pub(crate) use target::{
    ArgumentWords, ConnectionArgs, EnvVariable, HttpHeader, NameWords, TargetArgs, WordsArgs,
};
pub(crate) use target::{CallTaskArgs, TaskArgs, TaskCommand, TaskStoreArgs, TasksCommand};

use crate::console;
use antiphon::wire::LogLevel;
use clap::{Args, Parser, Subcommand};
use std::{path::PathBuf, time::Duration};

/// The end of the help.
const AFTER_HELP: &str = "\
Answers: --answer KEY.FIELD=VALUE fills in one field, --answer KEY=accept|decline|cancel answers the whole question, and
--answer KEY=accept@HOST agrees to open a page of that host. KEY may be the number of the question: 1, 2, ..
Questions without an answer are asked at the terminal. --sample and --root answer questions for the client itself.

Exit codes:
  0    done; with `--detach`, also a task that continues
  1    the tool failed
  2    usage: arguments, answers, key files; `demo` without an answer and without a terminal
  3    pending: `--once`, or a question without an answer and without a terminal, also in a session
  4    protocol or transport: an error of the server, no connection, no response in time. A call that can go on after completed
       steps is printed, for `resume`
  130  interrupted: at a question, and nothing was sent; while it listens; or Ctrl-C with a command, which is ended first.
       SIGTERM is 143 then, SIGHUP 129";

/// Calls tools that ask, and serves a demo of such tools.
#[derive(Debug, Parser)]
#[command(name = "antiphon", version, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// Log details and every leg on standard error
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
    /// Print results and errors only: no notes, no progress, and nothing that a started server writes on standard error
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows a call that asks: starts a server, calls it over HTTP, and asks you
    Demo {
        #[command(flatten)]
        answers: AnswerArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Serves the demo tools, and a health route at /health
    ServeDemo(ServeArgs),
    /// Calls a tool, and answers its questions
    Call {
        /// The name of the tool
        tool: String,
        #[command(flatten)]
        arguments: ArgumentArgs,
        #[command(flatten)]
        task: CallTaskArgs,
        #[command(flatten)]
        call_args: CallArgs,
        #[command(flatten)]
        target: WordsArgs<ArgumentWords>,
    },
    /// Gets, answers, cancels or follows a task: a call that continues without its request
    #[command(subcommand)]
    Task(TaskCommand),
    /// Lists the tasks in the store of a server, for its operator; `task` is for its clients
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Calls tools over one connection: one call per line of standard input, one result per line of output
    ///
    /// A line is a JSON object: "tool" is the name of the tool, "arguments" an object, {} unless given, and "answers" an array of
    /// answers for this call, as `--answer` takes them. The output lines are those of `call --json`, in the same order. The exit code is that of the first call that was not done.
    Calls {
        #[command(flatten)]
        answers: AnswerArgs,
        #[command(flatten)]
        client: ClientArgs,
        #[command(flatten)]
        wait: WaitArgs,
        /// Show log messages of the server from this level on: debug, info, notice, warning, error, critical, alert or
        /// emergency
        #[arg(long, value_name = "LEVEL", value_parser = console::level)]
        log_level: Option<LogLevel>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Gets a prompt, and answers its questions
    Prompt {
        /// The name of the prompt
        name: String,
        #[command(flatten)]
        arguments: ArgumentArgs,
        #[command(flatten)]
        call_args: CallArgs,
        #[command(flatten)]
        target: WordsArgs<ArgumentWords>,
    },
    /// Reads a resource, and answers its questions
    Read {
        /// The URI of the resource
        uri: String,
        #[command(flatten)]
        call_args: CallArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Continues a pending call
    ///
    /// An `--answer` with the key of a question replaces its answer in the file. The number 1 is the first question without an
    /// answer. The server is the one that the pending call names, unless the command line names another one.
    Resume {
        /// The file with the pending call; `-` for standard input
        file: PathBuf,
        #[command(flatten)]
        call_args: CallArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Lists the tools of a server
    Tools(ListArgs),
    /// Lists the prompts of a server
    Prompts(ListArgs),
    /// Lists the resources and resource templates of a server
    Resources(ListArgs),
    /// Suggests values for an argument of a prompt or a variable of a resource template
    Complete(CompleteArgs),
    /// Prints changes until the server ends the subscription: those of all lists, unless flags name some
    Listen(ListenArgs),
    /// Prints the name, versions and capabilities of a server
    Discover(DiscoverArgs),
    /// Signs in at a server that demands it; other commands use the sign-in, and renew it
    Login(LoginArgs),
    /// Ends the sign-in at a server: its tokens are removed, and revoked
    Logout(SignedInArgs),
    /// Prints the sign-in at a server, without its secrets; exit code 3 if there is none
    Whoami(SignedInArgs),
    /// Prints the access token of a sign-in, renewed if necessary, for another program
    Token(SignedInArgs),
    /// Generates a key for servers that share their calls, or replaces the key of a file in three steps
    Keygen(KeygenArgs),
    /// Reads receipts: sealed records of questions and answers
    #[command(subcommand)]
    Receipt(ReceiptCommand),
}

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The address to listen on; port 0 is any free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8000", conflicts_with = "stdio")]
    pub(crate) listen: String,
    /// Accept requests for this host name too; loopback names are always accepted
    #[arg(long, value_name = "NAME", conflicts_with = "stdio")]
    pub(crate) allow_host: Vec<String>,
    /// Let web pages of this origin use the server, such as https://app.example.com; may be repeated
    #[arg(long, value_name = "ORIGIN", value_parser = origin, conflicts_with = "stdio")]
    pub(crate) allow_origin: Vec<String>,
    /// Require a bearer token, and accept this one as that user; may be repeated. The token is readable in the list of
    /// processes: for demos only
    #[arg(long = "token", value_name = "TOKEN=USER", value_parser = token_of_user, conflicts_with = "stdio")]
    pub(crate) tokens: Vec<(String, String)>,
    /// Serve on standard input and output
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Also serve tasks as the draft before the extension had them; the tool `echo` is then that of its example
    #[arg(long)]
    pub(crate) draft_tasks: bool,
    /// The path of the endpoint
    #[arg(long, value_name = "PATH", default_value = "/mcp", value_parser = path, conflicts_with = "stdio")]
    pub(crate) path: String,
    /// The maximum size of a request's body, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20, conflicts_with = "stdio")]
    pub(crate) max_body: usize,
    /// The beginning of the ids of legacy sessions, by which a proxy finds this instance
    #[arg(long, value_name = "TEXT", default_value = "", conflicts_with = "stdio")]
    pub(crate) session_prefix: String,
    /// The file with the keys for sealed state, one per line; the first key seals. The file is read again when it
    /// changes, and at SIGHUP. Or set ANTIPHON_KEYS, separated by commas
    #[arg(long, visible_alias = "keys", value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ArgumentArgs {
    /// The arguments, as a JSON object; `@FILE` reads them from a file, `-` from standard input
    #[arg(long = "args", value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
}

#[derive(Args, Debug)]
pub(crate) struct AnswerArgs {
    /// Answer KEY.FIELD=VALUE, KEY=accept|decline|cancel or KEY=accept@HOST; may be repeated
    ///
    /// KEY is the key of the question or its number: the first form or page of the call is 1, whatever way it comes. FIELD=VALUE is
    /// enough where one open question has the field. Only accept@HOST agrees to a page, and only to one of that host; `accept`
    /// alone does not. An answer is for one question; a page that is asked again is the same question.
    #[arg(long = "answer", value_name = "ANSWER")]
    pub(crate) answers: Vec<String>,
}

/// The store of calls of the demo server.
#[derive(Args, Clone, Debug)]
pub(crate) struct StoreArgs {
    /// Use each state of a call at most once, and keep the calls in this SQLite file, which is created if necessary
    ///
    /// The same request again has the same reply, and its tool does not run again. Processes of one host with the same
    /// keys may share the file.
    #[arg(long = "store", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// The answers to questions for the client itself. Without a flag, the client does not declare the capability.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ClientArgs {
    /// Declare sampling, and answer each request with this message
    #[arg(long, value_name = "TEXT")]
    pub(crate) sample: Option<String>,
    /// Declare roots, and answer with this root directory, a file:// URI; may be repeated
    #[arg(long = "root", value_name = "URI")]
    pub(crate) roots: Vec<String>,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WaitArgs {
    /// The time limit for a server that only answers "not yet", or does not report that a required page is finished, in seconds
    #[arg(long = "wait", value_name = "SECS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
}

impl WaitArgs {
    /// Returns the time limit.
    pub(crate) fn limit(self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

#[derive(Args, Debug)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    pub(crate) answers: AnswerArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Stop at the next question, and print the pending call as JSON; a call in a session cannot stop
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one JSON object; everything else goes to standard error
    ///
    /// The members: "status" is "done", "pending", "task" or "error". "rounds" is the number of rounds of questions before a
    /// task, also of earlier processes. "result" is the server's result. "pending" is the pending call, for `resume`. "task"
    /// is the handle of the task that continues, for `task watch`. "error" has "kind", "message" and the server's "code".
    /// If the tool fails, or went on without an answer in a session, the status is "error", and there is a "result" too.
    #[arg(long)]
    pub(crate) json: bool,
    /// Save images, audio and other binary contents of the result as new files in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    /// Show log messages of the server from this level on: debug, info, notice, warning, error, critical, alert or
    /// emergency
    #[arg(long, value_name = "LEVEL", value_parser = console::level)]
    pub(crate) log_level: Option<LogLevel>,
}

/// Parses the value of `--token`. A token may end with `=`, a user has none.
fn token_of_user(text: &str) -> Result<(String, String), String> {
    match text.rsplit_once('=') {
        Some((token, user)) if !token.is_empty() && !user.is_empty() => {
            Ok((token.to_owned(), user.to_owned()))
        }
        _ => Err("must be TOKEN=USER".to_owned()),
    }
}

/// Parses the value of `--allow-origin`. The server ignores other texts, and a typing error would be a page that does not work.
fn origin(text: &str) -> Result<String, &'static str> {
    let authority = text.strip_suffix('/').unwrap_or(text).split_once("://").map(|(_, authority)| authority);
    let is_authority = |authority: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._~:[]".contains(c);
        !authority.is_empty() && authority.chars().all(is_part)
    };
    if authority.is_some_and(is_authority) {
        return Ok(text.to_owned());
    }
    Err("must be scheme, host and port of a page, such as https://app.example.com")
}

/// Parses the value of `--path`.
fn path(text: &str) -> Result<String, &'static str> {
    let plain =
        text.starts_with('/') && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '?' | '#'));
    if text == "/health" {
        return Err("is the path of the health route");
    }
    if plain { Ok(text.to_owned()) } else { Err("must begin with `/`, without spaces, `?` and `#`") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
