//! The command line.

mod query;

pub(crate) use query::{Completable, CompleteArgs, ListArgs, ListenArgs, ListenTo};

use crate::notifications;
use antiphon::{
    client::Mode,
    wire::{LogLevel, ProtocolVersion},
};
use clap::{Args, Parser, Subcommand};
use std::{ffi::OsString, path::PathBuf};

/// The end of the help.
const AFTER_HELP: &str = "\
Answers: --answer KEY.FIELD=VALUE fills in one field, --answer KEY=accept|decline|cancel answers the whole question.
Questions without an answer are asked at the terminal. --sample and --root answer questions for the client itself.

Exit codes:
  0    done
  1    the tool failed
  2    usage: arguments, answers, key files; `demo` without an answer and without a terminal
  3    pending: `--once`, or a question without an answer and without a terminal
  4    protocol or transport: an error of the server, no connection, no response in time
  130  interrupted: at a question, and nothing was sent; or while it listens";

/// Calls tools that ask, and serves a demo of such tools.
#[derive(Debug, Parser)]
#[command(name = "antiphon", version, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// Log details and every leg on standard error
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows a call that asks: starts a server, calls it over HTTP, and asks you
    Demo {
        #[command(flatten)]
        answers: AnswerArgs,
    },
    /// Serves the demo tools at /mcp
    ServeDemo(ServeArgs),
    /// Calls a tool, and answers its questions
    Call {
        /// The name of the tool
        tool: String,
        #[command(flatten)]
        arguments: ArgumentArgs,
        #[command(flatten)]
        call_args: CallArgs,
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
        target: TargetArgs,
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
    /// The server is the one that the pending call names, unless the command line names another one.
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
    /// Prints changes until the server ends the subscription
    Listen(ListenArgs),
    /// Prints the name, versions and capabilities of a server
    Discover(ListArgs),
    /// Generates a key for servers that share their calls
    Keygen,
}

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// The address to listen on; port 0 is any free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8000", conflicts_with = "stdio")]
    pub(crate) listen: String,
    /// Also accept requests for this host name; loopback names are always accepted
    #[arg(long, value_name = "NAME", conflicts_with = "stdio")]
    pub(crate) allow_host: Vec<String>,
    /// Serve on standard input and output
    #[arg(long)]
    pub(crate) stdio: bool,
    /// The file with the keys for sealed state, one per line; the first key seals. Or set ANTIPHON_KEYS, separated by
    /// commas
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ArgumentArgs {
    /// The arguments, as a JSON object
    #[arg(long = "args", value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
}

#[derive(Args, Debug)]
pub(crate) struct AnswerArgs {
    /// Answer KEY.FIELD=VALUE or KEY=accept|decline|cancel; may be repeated
    ///
    /// In a session with a legacy server, questions have no keys: the key of the first question is 1, of the second one
    /// 2.
    #[arg(long = "answer", value_name = "ANSWER")]
    pub(crate) answers: Vec<String>,
}

/// The answers to questions for the client itself. Without a flag, the client does not declare the capability.
#[derive(Args, Debug)]
pub(crate) struct ClientArgs {
    /// Declare sampling, and answer each request with this message
    #[arg(long, value_name = "TEXT")]
    pub(crate) sample: Option<String>,
    /// Declare roots, and answer with this root directory, a file:// URI; may be repeated
    #[arg(long = "root", value_name = "URI")]
    pub(crate) roots: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    pub(crate) answers: AnswerArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    /// Stop at the next question, and print the pending call as JSON
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one JSON object; everything else goes to standard error
    ///
    /// The members: "status" is "done", "pending" or "error". "rounds" is the number of rounds of questions, also of
    /// earlier processes. "result" is the server's result. "pending" is the pending call, for `resume`. "error" has
    /// "kind", "message" and the server's "code". If the tool fails, the status is "error", and there is a "result"
    /// too.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show log messages of the server from this level on: debug, info, notice, warning, error, critical, alert or
    /// emergency
    #[arg(long, value_name = "LEVEL", value_parser = notifications::level)]
    pub(crate) log_level: Option<LogLevel>,
}

#[derive(Args, Debug)]
pub(crate) struct TargetArgs {
    /// The URL of the server
    #[arg(value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// The time limit of one request, in seconds; the time for answers does not count
    #[arg(long, value_name = "SECS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// The protocol versions to use: auto, legacy (sessions), or one version, such as 2025-06-18
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = mode)]
    pub(crate) mode: Mode,
    /// The bearer token for a URL
    #[arg(long, value_name = "TOKEN", env = "MCP_BEARER", hide_env_values = true)]
    pub(crate) bearer: Option<String>,
    /// The command that starts the server on its standard input and output
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
