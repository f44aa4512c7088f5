//! The lists of the server, with the names of `../legacy/peers.json`.

use serde_json::{Value, json};

/// Name, description, and required arguments with their types.
type Tool = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const TOOLS: &[Tool] = &[
    ("echo", "Says it back.", &[("text", "string")]),
    ("fail", "A tool error.", &[("reason", "string")]),
    ("refuse", "An error of the protocol.", &[]),
    ("must_visit", "The error -32042 at first; then it is content.", &[("page", "string")]),
    ("confirm", "One form.", &[]),
    ("two_forms", "A form, and then another.", &[]),
    ("side_by_side", "Two forms at once.", &[]),
    ("visit", "A question in URL mode, and the notification that it is complete.", &[("page", "string")]),
    ("sample", "A question to the client's model.", &[("prompt", "string")]),
    ("roots", "The client's roots.", &[]),
    ("count", "Progress and log messages.", &[("to", "integer")]),
];

/// The tools as JSON of the specification; only the first if `minimal`.
pub(crate) fn tools(minimal: bool) -> Value {
    let offered = if minimal { &TOOLS[..1] } else { TOOLS };
    let written = offered.iter().map(|(name, description, arguments)| {
        let properties: serde_json::Map<_, _> =
            arguments.iter().map(|(name, kind)| ((*name).to_owned(), json!({"type": kind}))).collect();
        let required: Vec<_> = arguments.iter().map(|(name, _)| name).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        json!({"name": name, "description": description, "inputSchema": schema})
    });
    Value::Array(written.collect())
}

pub(crate) fn prompts() -> Value {
    json!([{"name": "greeting", "description": "A prompt that asks."}])
}

pub(crate) fn templates() -> Value {
    json!([{"uriTemplate": "note://{day}", "name": "note", "description": "A resource that asks."}])
}

/// A question in URL mode.
pub(crate) fn url_ask(page: &str) -> Value {
    json!({
        "mode": "url",
        "message": format!("Please visit {page}."),
        "url": format!("https://example.com/{page}"),
        "elicitationId": format!("id-{page}"),
    })
}
