//! The lists of the server.

use crate::tasks;
use rmcp::model::{JsonObject, Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
use serde_json::{Value, json};

/// Tools without macros: the name, and the arguments with their types.
const TOOLS: [(&str, &[(&str, &str)]); 22] = [
    ("fail", &[("reason", "string")]),
    ("refuse", &[]),
    ("count", &[("to", "integer")]),
    ("count_then_ask", &[("to", "integer")]),
    ("provision", &[("name", "string")]),
    ("provision_stateless", &[("name", "string")]),
    ("survey", &[]),
    ("old_choice", &[]),
    ("pay", &[("amount", "integer")]),
    ("summarize", &[("text", "string")]),
    ("list_my_roots", &[]),
    ("gather", &[]),
    ("book_table", &[]),
    ("ladder", &[]),
    ("shed", &[]),
    ("insist", &[]),
    ("empty_round", &[]),
    ("no_questions", &[]),
    ("tricky_state", &[]),
    ("long_state", &[]),
    ("odd_keys", &[]),
    ("route", &[("region", "string")]),
];

pub(crate) fn tools() -> Vec<Tool> {
    let tasks = tasks::TOOLS.map(|name| (name, [].as_slice()));
    let all = TOOLS.into_iter().chain(tasks);
    all.map(|(name, arguments)| Tool::new(name, name, schema(name, arguments))).collect()
}

fn schema(tool: &str, arguments: &[(&str, &str)]) -> JsonObject {
    let property = |(name, kind): &(&str, &str)| {
        let mut property = json!({"type": kind});
        if tool == "route" {
            property["x-mcp-header"] = "Region".into();
        }
        ((*name).to_owned(), property)
    };
    let properties: JsonObject = arguments.iter().map(property).collect();
    let required: Vec<&str> = arguments.iter().map(|(name, _)| *name).collect();
    [("type", "object".into()), ("properties", Value::Object(properties)), ("required", required.into())]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

pub(crate) fn prompts() -> Vec<Prompt> {
    let required = |name: &str| vec![PromptArgument::new(name).with_required(true)];
    vec![
        Prompt::new("plain", Some("Asks nothing."), Some(required("topic"))),
        Prompt::new("briefing", Some("Asks a form."), None),
        Prompt::new("drafted", Some("Asks the model."), Some(required("text"))),
        Prompt::new("agreed", Some("Asks for a URL to be opened."), Some(required("amount"))),
    ]
}

pub(crate) fn resources() -> Vec<Resource> {
    ["readme://all", "tree://mine", "slow://one"].map(|uri| Resource::new(uri, uri)).to_vec()
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![ResourceTemplate::new("report://{id}", "report")]
}
