//! Arguments of the commands that are asked nothing.

use super::TargetArgs;
use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// What has arguments that can be completed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Completable {
    /// A prompt, by its name
    Prompt,
    /// A resource template, by its URI template
    Resource,
}

#[derive(Args, Debug)]
pub(crate) struct CompleteArgs {
    /// What the argument belongs to
    pub(crate) of: Completable,
    /// The prompt's name, or the template as `resources` lists it
    pub(crate) name: String,
    /// The argument, and what is typed of it
    #[arg(value_name = "ARGUMENT=VALUE", value_parser = argument)]
    pub(crate) argument: (String, String),
    /// Another argument that has a value already; may be repeated
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
        _ => Err("write ARGUMENT=VALUE; nothing behind the `=` if nothing is typed yet"),
    }
}

#[derive(Args, Debug)]
pub(crate) struct ListenArgs {
    #[command(flatten)]
    pub(crate) to: ListenTo,
    /// Print one JSON object a line
    ///
    /// "event" is one of "acknowledged", with "notifications" as the server agreed to them, "tools_list_changed",
    /// "prompts_list_changed", "resources_list_changed", and "resource_updated", with its "uri". An error that ends it
    /// is an object as `call` prints it: with "status" and "error".
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
pub(crate) struct ListenTo {
    /// To changes of the list of tools
    #[arg(long)]
    pub(crate) tools: bool,
    /// To changes of the list of prompts
    #[arg(long)]
    pub(crate) prompts: bool,
    /// To changes of the list of resources
    #[arg(long)]
    pub(crate) resources: bool,
    /// To updates of this resource; may be repeated
    #[arg(long = "resource", value_name = "URI")]
    pub(crate) uris: Vec<String>,
}
