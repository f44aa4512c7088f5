//! `tools`, `prompts`, `resources`, `discover` and `complete`: the commands without questions.

use crate::{
    answer_flags::AnswerFlags,
    args::{ClientArgs, Completable, CompleteArgs, DiscoverArgs, ListArgs, TargetArgs},
    arguments::resolved,
    ask, console,
    drive::LegObserver,
    failure::{Exit, Failure},
    outcome::{self, Outcome},
    target::Target,
};
use antiphon::{
    client::{Client, ClientError},
    wire::{
        ErrorCode, Prompt, Resource, ResourceTemplate, Tool,
        completion::{Completion, CompletionContext, CompletionReference},
        content::PromptArgument,
        tasks::TaskSupport,
    },
};
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

pub(super) async fn tools(args: ListArgs, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    each_server(args, log, async |client, view| {
        let listed = none_if_unknown(client.list_tools().await)?;
        let missing = listed.is_none().then_some("tools");
        let tools = view.chosen("tool", listed.unwrap_or_default(), |tool| &tool.name)?;
        let lines =
            tools.iter().flat_map(|tool| if view.names.is_empty() { summary(tool) } else { details(tool) });
        view.print(missing, lines, &Tools { tools: &tools });
        Ok(Exit::Done)
    })
    .await
}

pub(super) async fn prompts(args: ListArgs, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    each_server(args, log, async |client, view| {
        let listed = none_if_unknown(client.list_prompts().await)?;
        let missing = listed.is_none().then_some("prompts");
        let prompts = view.chosen("prompt", listed.unwrap_or_default(), |prompt| &prompt.name)?;
        let lines = prompts.iter().flat_map(|prompt| {
            let about = prompt.description.as_deref().or(prompt.title.as_deref());
            std::iter::once(line(&prompt.name, about)).chain(prompt.arguments.iter().map(prompt_argument))
        });
        view.print(missing, lines, &Prompts { prompts: &prompts });
        Ok(Exit::Done)
    })
    .await
}

/// Lists resources by their URIs, which `read` takes.
pub(super) async fn resources(args: ListArgs, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    each_server(args, log, async |client, view| {
        let resources = none_if_unknown(client.list_resources().await)?;
        let templates = none_if_unknown(client.list_resource_templates().await)?;
        let missing = (resources.is_none() && templates.is_none()).then_some("resources");
        let (mut resources, mut templates) = (resources.unwrap_or_default(), templates.unwrap_or_default());
        if !view.names.is_empty() {
            let known =
                resources.iter().map(|it| &*it.uri).chain(templates.iter().map(|it| &*it.uri_template));
            view.check("resource", known)?;
            resources.retain(|it| view.names.contains(&it.uri));
            templates.retain(|it| view.names.contains(&it.uri_template));
        }
        let lines = resources
            .iter()
            .map(|it| line(&it.uri, it.description.as_deref().or(it.title.as_deref()).or(Some(&it.name))));
        let lines = lines.chain(templates.iter().map(|it| {
            line(&it.uri_template, it.description.as_deref().or(it.title.as_deref()).or(Some(&it.name)))
        }));
        let object = Resources { resources: &resources, resource_templates: &templates };
        view.print(missing, lines, &object);
        Ok(Exit::Done)
    })
    .await
}

pub(super) async fn discover(args: &DiscoverArgs, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    let work = with_client(&args.target, args.client.clone(), log, async |client| {
        let found = client.discover().await?;
        if args.json {
            outcome::print_result_json(&found);
            return Ok(Exit::Done);
        }
        if let Some(info) = client.server_info() {
            console::out(&format!("{} {}", console::line(info.display_name()), console::line(&info.version)));
        }
        let versions: Vec<String> =
            found.supported_versions.iter().map(|version| console::line(version.as_str())).collect();
        console::out(&format!("versions: {}", versions.join(", ")));
        let offers: Vec<String> = found.capabilities.0.keys().map(|name| console::line(name)).collect();
        console::out(&format!("offers: {}", offers.join(", ")));
        let extensions = found.capabilities.0.get("extensions").and_then(Value::as_object);
        let extensions: Vec<String> =
            extensions.into_iter().flatten().map(|(name, _)| console::line(name)).collect();
        if !extensions.is_empty() {
            console::out(&format!("extensions: {}", extensions.join(", ")));
        }
        if let Some(instructions) = &found.instructions {
            console::out(&console::indented(instructions));
        }
        Ok(Exit::Done)
    });
    print_failure(args.json, work.await)
}

/// Returns a line with a name, which the next command takes, and a description.
fn line(name: &str, description: Option<&str>) -> String {
    let description = description.map(console::line).unwrap_or_default();
    format!("{}  {description}", console::line(name)).trim_end().to_owned()
}

/// The entries of one server that are printed.
struct View<'a> {
    as_json: bool,
    /// The names of the entries that are printed in full. Without one, all entries are printed.
    names: &'a [String],
    /// The name of the server, if there are several.
    server: Option<&'a str>,
}

impl View<'_> {
    /// Returns the entries that were named; without a name, all.
    fn chosen<T>(
        &self,
        what: &str,
        mut all: Vec<T>,
        name: impl Fn(&T) -> &String,
    ) -> Result<Vec<T>, Failure> {
        if !self.names.is_empty() {
            self.check(what, all.iter().map(|it| name(it).as_str()))?;
            all.retain(|it| self.names.contains(name(it)));
        }
        Ok(all)
    }

    /// Refuses a name that the server does not have.
    fn check<'n>(&self, what: &str, known: impl Iterator<Item = &'n str> + Clone) -> Result<(), Failure> {
        match self.names.iter().find(|name| !known.clone().any(|it| it == *name)) {
            Some(name) => Err(Failure::usage(console::unknown_name(what, name, known))),
            None => Ok(()),
        }
    }

    /// Prints a list. `missing` names what the server does not offer at all, as opposed to an empty list.
    fn print(&self, missing: Option<&str>, lines: impl Iterator<Item = String>, object: &impl Serialize) {
        if self.as_json {
            outcome::print_result_of(self.server, object);
        } else {
            let indent = if self.server.is_some() { "  " } else { "" };
            lines.for_each(|line| console::out(&format!("{indent}{line}")));
        }
        if let Some(what) = missing {
            console::hint(&format!("the server offers no {what}"));
        }
    }
}

/// Runs `work` for the server of the command line, or for each server of its file. One that fails does not stop the others.
async fn each_server(
    args: ListArgs,
    log: Option<fn(&str)>,
    work: impl AsyncFn(&Client, &View<'_>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let as_json = args.json;
    let split = args.target.split().and_then(|(names, target)| {
        let servers = Target::all_of_file(&target)?;
        Ok((names, target, servers))
    });
    let (names, mut target, servers) = match split {
        Ok(split) => split,
        Err(failure) => return print_failure(as_json, Err(failure)),
    };
    if servers.is_empty() {
        let view = View { as_json, names: &names, server: None };
        let done = with_client(&target, args.client, log, async |client| work(client, &view).await);
        return print_failure(as_json, done.await);
    }
    let mut exit = Exit::Done;
    for server in &servers {
        if !as_json {
            console::out(&console::line(server));
        }
        target.connection.server = Some(server.clone());
        let view = View { as_json, names: &names, server: Some(server) };
        let done = with_client(&target, args.client.clone(), log, async |client| work(client, &view).await);
        if let Err(failure) = done.await {
            exit = failure.exit;
            match as_json {
                true => outcome::print_failure_json(server, &failure),
                false => console::failed(&failure),
            }
        }
    }
    Ok(exit)
}

// `complete`: suggestions for one argument.

pub(super) async fn complete(args: CompleteArgs, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    let CompleteArgs { of, name, argument: (argument, value), known, json, target } = args;
    let reference = match of {
        Completable::Prompt => CompletionReference::prompt(name),
        Completable::Resource => CompletionReference::resource(name),
    };
    let context = (!known.is_empty()).then(|| CompletionContext::new(known.into_iter().collect()));
    let work = with_client(&target, ClientArgs::default(), log, async |client| {
        let found = none_if_unknown(client.complete(reference, argument, value, context).await)?;
        if found.is_none() {
            console::hint("the server offers no completion");
        }
        print_completion(&found.unwrap_or_default(), json);
        Ok(Exit::Done)
    });
    print_failure(json, work.await)
}

fn print_completion(found: &Completion, as_json: bool) {
    if as_json {
        return outcome::print_result_json(found);
    }
    found.values.iter().for_each(|value| console::out(&console::line(value)));
    let shown = found.values.len() as u64;
    match found.total {
        Some(total) if total > shown => console::hint(&format!("showing {shown} of {total}")),
        None if found.has_more == Some(true) => console::hint("there are more values"),
        _ => {}
    }
}

/// Connects to the server, runs `work`, and closes the connection.
pub(super) async fn with_client(
    args: &TargetArgs,
    client: ClientArgs,
    log: Option<fn(&str)>,
    work: impl AsyncFnOnce(&Client) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    // Some servers offer more to a client that can be asked.
    let answers = AnswerFlags::new(Vec::new())?.with_client_answers(client);
    let client = Target::required(args)?.connect(&args.connection, &LegObserver::new(log), |builder| {
        ask::attach(builder.declare(answers.asks()), &answers)
    })?;
    let exit = work(&client).await;
    client.close().await;
    exit
}

/// Prints a failure as JSON, if `as_json` is true.
pub(super) fn print_failure(as_json: bool, result: Result<Exit, Failure>) -> Result<Exit, Failure> {
    match result {
        Err(failure) if as_json => {
            let outcome = Outcome::Failed(failure);
            outcome.print_json(0);
            Ok(outcome.exit())
        }
        result => result,
    }
}

/// Returns `None` if the server does not have the method. The server then offers nothing of that kind.
fn none_if_unknown<T>(result: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(error) if error.server_error().is_some_and(|it| it.code == ErrorCode::METHOD_NOT_FOUND) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns the lines of a tool in a list.
fn summary(tool: &Tool) -> Vec<String> {
    let named = line(&tool.name, tool.description.as_deref().or(tool.title.as_deref()));
    std::iter::once(named).chain(lines(&tool.input_schema.to_value(), SHOWN)).collect()
}

/// Returns all that a server says about a tool.
fn details(tool: &Tool) -> Vec<String> {
    let mut all = vec![line(&tool.name, tool.title.as_deref())];
    all.extend(tool.description.iter().map(|text| console::indented(text)));
    let hints = tool.annotations.clone().unwrap_or_default();
    let task = match tool.task_support() {
        TaskSupport::Forbidden => None,
        TaskSupport::Optional => Some("may become a task"),
        TaskSupport::Required => Some("becomes a task"),
    };
    let destroys =
        hints.destructive_hint.map(|it| if it { "may destroy something" } else { "destroys nothing" });
    let hints = [
        hints.read_only_hint.and_then(|it| it.then_some("changes nothing")),
        destroys,
        hints.idempotent_hint.and_then(|it| it.then_some("a second equal call changes no more")),
        hints.open_world_hint.map(|it| if it { "reaches other systems" } else { "stays within its system" }),
        task,
    ];
    let hints: Vec<_> = hints.into_iter().flatten().collect();
    if !hints.is_empty() {
        all.push(format!("  it says: {}", hints.join("; ")));
    }
    all.extend(lines(&tool.input_schema.to_value(), usize::MAX));
    if let Some(output) = &tool.output_schema {
        all.push("  result:".to_owned());
        all.extend(lines(&output.to_value(), usize::MAX));
    }
    all
}

fn prompt_argument(argument: &PromptArgument) -> String {
    let required = if argument.required == Some(true) { " (required)" } else { "" };
    let about = argument.description.as_deref().or(argument.title.as_deref()).unwrap_or_default();
    let line = format!("    {}{required}  {}", argument.name, console::truncated(about, SHOWN));
    console::line(&line).trim_end().to_owned()
}

/// The maximum length of a description in a list, in characters.
const SHOWN: usize = 200;
/// The maximum number of shown values of an `enum`.
const VALUES: usize = 12;

/// Returns a line for each argument: the required ones first. Descriptions have at most `limit` characters.
fn lines(schema: &Value, limit: usize) -> Vec<String> {
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
    };
    let (first, rest): (Vec<_>, Vec<_>) = properties.iter().partition(|(name, _)| required(name));
    first
        .into_iter()
        .chain(rest)
        .map(|(name, property)| argument_line(schema, name, property, (required(name), limit)))
        .collect()
}

fn argument_line(
    schema: &Value,
    name: &str,
    property: &Value,
    (is_required, limit): (bool, usize),
) -> String {
    let target = resolved(schema, property);
    let mut about = vec![kind(schema, target)];
    if is_required {
        about.push("required".to_owned());
    }
    if let Some(default) = property.get("default") {
        about.push(format!("default {default}"));
    }
    let text = [property, target].iter().find_map(|place| place["description"].as_str()).unwrap_or_default();
    let line = format!("    {name} ({})  {}", about.join(", "), console::truncated(text, limit));
    let cut: String = console::line(&line);
    cut.trim_end().to_owned()
}

/// Describes the type of a value.
fn kind(schema: &Value, property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        let shown: Vec<String> = values.iter().take(VALUES).map(text).collect();
        let more = if values.len() > VALUES { " | .." } else { "" };
        return format!("{}{more}", shown.join(" | "));
    }
    if let Some(value) = property.get("const") {
        return text(value);
    }
    match &property["type"] {
        Value::String(name) if name == "array" && property["items"].is_object() => {
            let items = resolved(schema, &property["items"]);
            let of = items["type"].as_str().unwrap_or("any value");
            format!("array of {of}")
        }
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names: Vec<&str> =
                names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect();
            names.join(" or ")
        }
        _ => "any value".to_owned(),
    }
}

/// Returns a text as it is, and other values as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_described() {
        let schema = json!({
            "type": "object",
            "required": ["when", "size"],
            "properties": {
                "count": {"type": "integer", "default": 3, "description": "How\nmany."},
                "size": {"$ref": "#/$defs/Size"},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}},
                "when": {"type": ["string", "null"]},
                "x": true,
                "y\u{1b}": {"const": 1},
                "z": {"$ref": "#"},
            },
            "$defs": {"Size": {"enum": ["small", 2], "description": "The size."}, "Tag": {"type": "string"}},
        });
        let expected = [
            "    size (small | 2, required)  The size.",
            "    when (string, required)",
            "    count (integer, default 3)  How many.",
            "    tags (array of string)",
            "    x (any value)",
            "    y\\u{1b} (1)",
            "    z (object)",
        ];
        assert_eq!(lines(&schema, SHOWN), expected);
        for none in [json!(true), json!({"type": "object"}), json!({"properties": []})] {
            assert_eq!(lines(&none, SHOWN), Vec::<String>::new(), "{none}");
        }
        let many = json!({"properties": {"a": {"enum": (0..13).collect::<Vec<_>>()}}});
        assert_eq!(lines(&many, SHOWN), ["    a (0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | ..)"]);
    }
}
