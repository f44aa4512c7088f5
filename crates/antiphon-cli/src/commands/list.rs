//! `tools`, `prompts`, `resources` and `discover`.

use super::query::{none_if_unknown, print_failure, with_client};
use crate::{
    args::ListArgs,
    console,
    failure::{Exit, Failure},
    outcome, sanitize, tool_arguments,
};
use antiphon::wire::{Prompt, Resource, ResourceTemplate, Tool};
use serde::Serialize;
use serde_json::Value;

/// The objects that `--json` prints. They are written from the text of the server: not every JSON text is a [`Value`].
#[derive(Serialize)]
struct Tools<'a> {
    tools: &'a [Tool],
}

#[derive(Serialize)]
struct Prompts<'a> {
    prompts: &'a [Prompt],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resources<'a> {
    resources: &'a [Resource],
    resource_templates: &'a [ResourceTemplate],
}

pub(super) async fn tools(args: &ListArgs, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    let work = with_client(&args.target, args.client.clone(), log, async |client| {
        let tools = none_if_unknown(client.list_tools().await)?;
        let lines = tools.iter().flatten().flat_map(|tool| {
            let named = line(&tool.name, tool.description.as_deref().or(tool.title.as_deref()));
            std::iter::once(named).chain(tool_arguments::lines(&tool.input_schema.to_value()))
        });
        let missing = tools.is_none().then_some("tools");
        print(args.json, missing, lines, &Tools { tools: tools.as_deref().unwrap_or_default() });
        Ok(Exit::Done)
    });
    print_failure(args.json, work.await)
}

pub(super) async fn prompts(args: &ListArgs, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    let work = with_client(&args.target, args.client.clone(), log, async |client| {
        let prompts = none_if_unknown(client.list_prompts().await)?;
        let lines = prompts
            .iter()
            .flatten()
            .map(|prompt| line(&prompt.name, prompt.description.as_deref().or(prompt.title.as_deref())));
        let missing = prompts.is_none().then_some("prompts");
        print(args.json, missing, lines, &Prompts { prompts: prompts.as_deref().unwrap_or_default() });
        Ok(Exit::Done)
    });
    print_failure(args.json, work.await)
}

/// Lists resources by their URIs, which `read` takes.
pub(super) async fn resources(args: &ListArgs, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    let work = with_client(&args.target, args.client.clone(), log, async |client| {
        let resources = none_if_unknown(client.list_resources().await)?;
        let templates = none_if_unknown(client.list_resource_templates().await)?;
        let missing = (resources.is_none() && templates.is_none()).then_some("resources");
        let lines = resources
            .iter()
            .flatten()
            .map(|it| line(&it.uri, it.description.as_deref().or(it.title.as_deref()).or(Some(&it.name))));
        let lines = lines.chain(templates.iter().flatten().map(|it| {
            line(&it.uri_template, it.description.as_deref().or(it.title.as_deref()).or(Some(&it.name)))
        }));
        let object = Resources {
            resources: resources.as_deref().unwrap_or_default(),
            resource_templates: templates.as_deref().unwrap_or_default(),
        };
        print(args.json, missing, lines, &object);
        Ok(Exit::Done)
    });
    print_failure(args.json, work.await)
}

pub(super) async fn discover(args: &ListArgs, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    let work = with_client(&args.target, args.client.clone(), log, async |client| {
        let found = client.discover().await?;
        if args.json {
            outcome::print_result_json(&found);
            return Ok(Exit::Done);
        }
        if let Some(info) = client.server_info() {
            console::out(&format!(
                "{} {}",
                sanitize::line(info.display_name()),
                sanitize::line(&info.version)
            ));
        }
        let versions: Vec<String> =
            found.supported_versions.iter().map(|version| sanitize::line(version.as_str())).collect();
        console::out(&format!("versions: {}", versions.join(", ")));
        let offers: Vec<String> = found.capabilities.0.keys().map(|name| sanitize::line(name)).collect();
        console::out(&format!("offers: {}", offers.join(", ")));
        let extensions = found.capabilities.0.get("extensions").and_then(Value::as_object);
        let extensions: Vec<String> =
            extensions.into_iter().flatten().map(|(name, _)| sanitize::line(name)).collect();
        if !extensions.is_empty() {
            console::out(&format!("extensions: {}", extensions.join(", ")));
        }
        if let Some(instructions) = &found.instructions {
            console::out(&sanitize::indented(instructions));
        }
        Ok(Exit::Done)
    });
    print_failure(args.json, work.await)
}

/// Returns a line with a name, which the next command takes, and a description.
fn line(name: &str, description: Option<&str>) -> String {
    let description = description.map(sanitize::line).unwrap_or_default();
    format!("{}  {description}", sanitize::line(name)).trim_end().to_owned()
}

/// Prints a list. `missing` names what the server does not offer at all, as opposed to an empty list.
fn print(as_json: bool, missing: Option<&str>, lines: impl Iterator<Item = String>, object: &impl Serialize) {
    if as_json {
        outcome::print_result_json(object);
    } else {
        lines.for_each(|line| console::out(&line));
    }
    if let Some(what) = missing {
        console::hint(&format!("the server offers no {what}"));
    }
}
