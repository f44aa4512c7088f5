//! The arguments of the commands without questions, `keygen`, `receipt` and those about sign-in among them.

use crate::args::{ClientArgs, NameWords, TargetArgs, WordsArgs};
use clap::{Args, Subcommand, ValueEnum};
use std::{fmt, path::PathBuf, time::Duration};

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) target: WordsArgs<NameWords>,
}

#[derive(Args, Debug)]
pub(crate) struct DiscoverArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// A target of completion.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Completable {
    /// A prompt, by its name
    Prompt,
    /// A resource template, by its URI template
    Resource,
}

#[derive(Args, Debug)]
pub(crate) struct CompleteArgs {
    /// The kind of the argument's owner
    pub(crate) of: Completable,
    /// The name of the prompt, or the URI template as `resources` prints it
    pub(crate) name: String,
    /// The argument, and the beginning of its value
    #[arg(value_name = "ARGUMENT=VALUE", value_parser = argument)]
    pub(crate) argument: (String, String),
    /// Another argument and its value; may be repeated
    #[arg(long = "with", value_name = "OTHER=VALUE", value_parser = argument)]
    pub(crate) known: Vec<(String, String)>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

fn argument(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write ARGUMENT=VALUE; VALUE may be empty"),
    }
}

#[derive(Args, Debug)]
pub(crate) struct ListenArgs {
    #[command(flatten)]
    pub(crate) to: ListenTo,
    /// Print one JSON object per line
    ///
    /// "event" is "acknowledged", with the agreed "notifications", "tools_list_changed", "prompts_list_changed",
    /// "resources_list_changed", "resource_updated", with its "uri", "task", with the "task" and its state, or "closed": the server closed the subscription, which is
    /// opened again. An error is an object as `call` prints it, with
    /// "status" and "error".
    #[arg(long)]
    pub(crate) json: bool,
    /// Stop when the server closes the subscription or the connection breaks
    #[arg(long)]
    pub(crate) no_reconnect: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ListenTo {
    /// Listen for changes of the list of tools
    #[arg(long)]
    pub(crate) tools: bool,
    /// Listen for changes of the list of prompts
    #[arg(long)]
    pub(crate) prompts: bool,
    /// Listen for changes of the list of resources
    #[arg(long)]
    pub(crate) resources: bool,
    /// Listen for updates of this resource; may be repeated
    #[arg(long = "resource", value_name = "URI")]
    pub(crate) uris: Vec<String>,
    /// Listen for changes of the task with this id; may be repeated
    #[arg(long = "task", value_name = "ID")]
    pub(crate) tasks: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct KeygenArgs {
    /// Write a new key into this file, which opens states and does not seal yet; the first key of a file seals at once
    #[arg(long, value_name = "FILE", group = "edit")]
    pub(crate) add: Option<PathBuf>,
    /// Let the new key of this file seal, when every instance has read it
    #[arg(long, value_name = "FILE", group = "edit")]
    pub(crate) promote: Option<PathBuf>,
    /// Remove the old keys of this file, when no state of theirs can come back
    #[arg(long, value_name = "FILE", group = "edit")]
    pub(crate) retire: Option<PathBuf>,
    /// The longest life of a state, such as 30m, 24h or 3d: the longest answer timeout, and a day for URLs
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = duration, requires = "edit")]
    pub(crate) longest_life: Duration,
    /// Remove the old keys although states of theirs may come back; these are refused then
    #[arg(long, requires = "retire")]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReceiptCommand {
    /// Checks that servers with these keys made a receipt, and prints it
    Verify(VerifyArgs),
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The file with the receipt; `-` for standard input
    pub(crate) file: PathBuf,
    /// The key file of the servers, or an old copy of it; may be repeated
    #[arg(long = "key-file", visible_alias = "keys", value_name = "FILE", required = true)]
    pub(crate) key_files: Vec<PathBuf>,
    /// Check that the call had these arguments too, a JSON object; `@FILE` reads them from a file
    #[arg(long = "args", value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a number of seconds, minutes, hours or days.
fn duration(text: &str) -> Result<Duration, &'static str> {
    let unit = match text.as_bytes().last() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 3600,
        Some(b'd') => 86_400,
        _ => 0,
    };
    let number = text.get(..text.len().saturating_sub(1)).and_then(|number| number.parse::<u64>().ok());
    match number.and_then(|number| number.checked_mul(unit)) {
        Some(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err("must be a number with s, m, h or d, such as 24h"),
    }
}

#[derive(Args, Debug)]
#[cfg_attr(
    not(feature = "oauth"),
    allow(dead_code, reason = "only the error for the absent feature is there")
)]
pub(crate) struct SignedInArgs {
    /// The URL of the server
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// The name of the account, if there are several ones at the server; other commands use the one without a name
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) account: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[cfg_attr(
    not(feature = "oauth"),
    allow(dead_code, reason = "only the error for the absent feature is there")
)]
pub(crate) struct LoginArgs {
    #[command(flatten)]
    pub(crate) server: SignedInArgs,
    /// Ask for this scope too; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
    /// The client id that the authorization server gave to this program; without it, the program registers
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// The secret of the client id
    #[arg(
        long,
        value_name = "SECRET",
        env = "MCP_CLIENT_SECRET",
        hide_env_values = true,
        requires = "client_id"
    )]
    pub(crate) client_secret: Option<String>,
    /// The port to which the browser returns, if the client id has a fixed one; any free port unless given
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Sign in at another device: open a page there, and enter the code that is shown here. For machines without a browser
    #[arg(long, conflicts_with = "port")]
    pub(crate) device: bool,
}

impl fmt::Debug for LoginArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginArgs").field("server", &self.server).finish_non_exhaustive()
    }
}
