//! The arguments of the commands without questions.

use super::{ClientArgs, TargetArgs};
use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
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
#[group(required = true, multiple = true)]
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
