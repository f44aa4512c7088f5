//! `tools`, `prompts`, `resources`, `discover` and `complete`: the commands without questions.

use crate::{
    answer_flags::AnswerFlags,
    args::{ClientArgs, Completable, CompleteArgs, ListArgs, TargetArgs},
    ask, console,
    failure::{Exit, Failure},
    leg_observer::LegObserver,
    outcome::{self, Outcome},
    target::Target,
};
use antiphon::{
    client::{Client, ClientError},
    wire::{
        ErrorCode, Prompt, Resource, ResourceTemplate, Tool,
        completion::{Completion, CompletionContext, CompletionReference},
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

pub(super) async fn tools(args: &ListArgs, log: Option<fn(&str)>) -> Result<Exit, Failure> {
    let work = with_client(&args.target, args.client.clone(), log, async |client| {
        let tools = none_if_unknown(client.list_tools().await)?;
        let lines = tools.iter().flatten().flat_map(|tool| {
            let named = line(&tool.name, tool.description.as_deref().or(tool.title.as_deref()));
            std::iter::once(named).chain(lines(&tool.input_schema.to_value()))
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
    let client = Target::required(args)?.connect(
        args.timeout,
        args.mode.clone(),
        &LegObserver::new(log),
        |builder| ask::attach(builder.declare(answers.asks()), &answers),
    )?;
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

/// The maximum length of a shown description, in characters.
const SHOWN: usize = 200;
/// The maximum number of shown values of an `enum`.
const VALUES: usize = 12;

/// Returns a line for each argument: the required ones first.
fn lines(schema: &Value) -> Vec<String> {
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
    };
    let (first, rest): (Vec<_>, Vec<_>) = properties.iter().partition(|(name, _)| required(name));
    first
        .into_iter()
        .chain(rest)
        .map(|(name, property)| argument_line(schema, name, property, required(name)))
        .collect()
}

fn argument_line(schema: &Value, name: &str, property: &Value, is_required: bool) -> String {
    let target = resolved(schema, property);
    let mut about = vec![kind(schema, target)];
    if is_required {
        about.push("required".to_owned());
    }
    if let Some(default) = property.get("default") {
        about.push(format!("default {default}"));
    }
    let text = [property, target].iter().find_map(|place| place["description"].as_str()).unwrap_or_default();
    let line = format!("    {name} ({})  {}", about.join(", "), console::truncated(text, SHOWN));
    let cut: String = console::line(&line);
    cut.trim_end().to_owned()
}

/// Follows one reference into the definitions of the schema.
fn resolved<'a>(schema: &'a Value, property: &'a Value) -> &'a Value {
    let pointer = property["$ref"].as_str().and_then(|text| text.strip_prefix('#'));
    pointer.and_then(|pointer| schema.pointer(pointer)).unwrap_or(property)
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
        assert_eq!(lines(&schema), expected);
        for none in [json!(true), json!({"type": "object"}), json!({"properties": []})] {
            assert_eq!(lines(&none), Vec::<String>::new(), "{none}");
        }
        let many = json!({"properties": {"a": {"enum": (0..13).collect::<Vec<_>>()}}});
        assert_eq!(lines(&many), ["    a (0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | ..)"]);
    }
}
