//! The command line.

mod plain;

pub(crate) use plain::{Completable, CompleteArgs, ListArgs, ListenArgs, ListenTo};

use crate::hear;
use antiphon::{
    client::Mode,
    wire::{LogLevel, ProtocolVersion},
};
use clap::{Args, Parser, Subcommand};
use std::{ffi::OsString, path::PathBuf};

/// What is said at the end of the help.
const AFTER_HELP: &str = "\
Answers: --answer KEY.FIELD=VALUE fills in one field, --answer KEY=accept|decline|cancel answers the whole question.
What has no answer is asked at the terminal. --sample and --root answer what is asked of the client itself.

Exit codes:
  0    done
  1    the tool says that it failed
  2    usage: arguments, answers, key files; `demo` without an answer and without a terminal
  3    pending: `--once`, or a question without an answer and without a terminal
  4    protocol or transport: an error of the server, no connection, no response in time
  130  interrupted: at a question, and nothing was sent; or while it listens";

/// Calls tools that ask, and serves some.
#[derive(Debug, Parser)]
#[command(name = "antiphon", version, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// Log in detail, and tell of every leg, on standard error
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
    /// Serves the tools of the demo at /mcp
    ServeDemo(ServeArgs),
    /// Calls a tool, and answers what it asks
    Call {
        /// The tool
        tool: String,
        #[command(flatten)]
        arguments: ArgumentArgs,
        #[command(flatten)]
        how: CallArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Gets a prompt, and answers what it asks
    Prompt {
        /// The prompt
        name: String,
        #[command(flatten)]
        arguments: ArgumentArgs,
        #[command(flatten)]
        how: CallArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Reads a resource, and answers what it asks
    Read {
        /// The resource
        uri: String,
        #[command(flatten)]
        how: CallArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Goes on with a pending call
    ///
    /// The server is that of the pending call, unless another way to it is given.
    Resume {
        /// The file that holds the pending call; `-` for standard input
        file: PathBuf,
        #[command(flatten)]
        how: CallArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Lists the tools of a server
    Tools(ListArgs),
    /// Lists the prompts of a server
    Prompts(ListArgs),
    /// Lists the resources of a server, and the templates of resources
    Resources(ListArgs),
    /// Suggests values for an argument of a prompt, or a variable of a resource template
    Complete(CompleteArgs),
    /// Tells of changes until the server ends it
    Listen(ListenArgs),
    /// Asks a server what it is and what it offers
    Discover(ListArgs),
    /// Makes a key for servers that share their calls
    Keygen,
}

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Where to listen; port 0 is any free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8000", conflicts_with = "stdio")]
    pub(crate) listen: String,
    /// Also answer under this host name; loopback names always are
    #[arg(long, value_name = "NAME", conflicts_with = "stdio")]
    pub(crate) allow_host: Vec<String>,
    /// Serve on standard input and output
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Seal state with these keys, one a line, the first one seals; or set ANTIPHON_KEYS, with commas in between
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ArgumentArgs {
    /// The arguments, a JSON object
    #[arg(long = "args", value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
}

#[derive(Args, Debug)]
pub(crate) struct AnswerArgs {
    /// Answer KEY.FIELD=VALUE or KEY=accept|decline|cancel; may be repeated
    ///
    /// On a session of a legacy server, questions have no keys: the first one is 1, the second one 2.
    #[arg(long = "answer", value_name = "ANSWER")]
    pub(crate) answers: Vec<String>,
}

/// What a server may ask of the client itself, and not of the person. Without a flag, it is told that it may not.
#[derive(Args, Debug)]
pub(crate) struct ClientArgs {
    /// Let the server ask for a message of a model, and answer with this one
    #[arg(long, value_name = "TEXT")]
    pub(crate) sample: Option<String>,
    /// Let the server ask for root directories, and answer with this one, a file:// URI; may be repeated
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
    /// Print one JSON object; all else goes to standard error
    ///
    /// Its members: "status", one of "done", "pending" and "error"; "rounds", how often the server asked, earlier
    /// processes included; "result", as the server sent it; "pending", for `resume`; "error", with "kind", "message"
    /// and the server's "code". A tool that says it failed is an "error" with a "result".
    #[arg(long)]
    pub(crate) json: bool,
    /// Show what the server logs about the call, from this level on: debug, info, notice, warning, error, critical,
    /// alert or emergency
    #[arg(long, value_name = "LEVEL", value_parser = hear::level)]
    pub(crate) log_level: Option<LogLevel>,
}

#[derive(Args, Debug)]
pub(crate) struct TargetArgs {
    /// The URL of the server
    #[arg(value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// How long one request may take, in seconds; questions do not count
    #[arg(long, value_name = "SECS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// Which revisions to speak: auto, legacy (sessions), or one version, such as 2025-06-18
    #[arg(long, value_name = "MODE", default_value = "auto", value_parser = mode)]
    pub(crate) mode: Mode,
    /// The bearer token for a URL
    #[arg(long, value_name = "TOKEN", env = "MCP_BEARER", hide_env_values = true)]
    pub(crate) bearer: Option<String>,
    /// The command that starts the server, on its standard input and output
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// The mode of this word.
fn mode(text: &str) -> Result<Mode, String> {
    let version = ProtocolVersion::new(text);
    match text {
        "auto" => Ok(Mode::Auto),
        "legacy" => Ok(Mode::Legacy),
        _ if version.is_modern() || version.is_legacy() => Ok(Mode::Pinned(version)),
        _ => {
            let known = ProtocolVersion::MODERN.iter().chain(ProtocolVersion::LEGACY);
            let known: Vec<&str> = known.map(ProtocolVersion::as_str).collect();
            Err(format!("one of auto, legacy, {}", known.join(", ")))
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
