//! `--servers FILE --server NAME`: the servers of a host, in the JSON that hosts share.
//!
//! ```json
//! {"mcpServers": {
//!     "local": {"command": "my-server", "args": ["--root", "${HOME}"], "env": {"TOKEN": "${TOKEN}"}},
//!     "remote": {"url": "https://example.com/mcp", "headers": {"X-Team": "${TEAM:-core}"}}
//! }}
//! ```

use crate::{args::HttpHeader, failure::Failure};
use serde::Deserialize;
use serde_json::Value;
use std::{collections::BTreeMap, env, ffi::OsString, fs, path::Path};

#[derive(Deserialize)]
struct ServersFile {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, Value>,
}

/// The members of a server that are used here. Hosts have more of them.
#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

/// A server of the file, with the variables replaced.
pub(crate) enum NamedServer {
    Url { url: String, headers: Vec<HttpHeader> },
    Command { words: Vec<OsString>, variables: Vec<(String, OsString)> },
}

/// Reads the server of this name.
pub(crate) fn read(file: &Path, name: &str) -> Result<NamedServer, Failure> {
    let failed = |text: String| Failure::usage(format!("{}: {text}", file.display()));
    let text = fs::read_to_string(file).map_err(|fault| failed(fault.to_string()))?;
    named(&text, name, &|variable| env::var(variable).ok()).map_err(failed)
}

fn named(text: &str, name: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<NamedServer, String> {
    let mut file: ServersFile = serde_json::from_str(text)
        .map_err(|fault| format!("not a JSON object with `mcpServers`: {fault}"))?;
    let Some(entry) = file.servers.remove(name) else {
        let names: Vec<String> = file.servers.into_keys().collect();
        return Err(format!("no server `{name}`; there are: {}", names.join(", ")));
    };
    let entry: Entry =
        serde_json::from_value(entry).map_err(|fault| format!("the server `{name}`: {fault}"))?;
    let mut values = Values { variable, missing: Vec::new() };
    let server = match (entry.command, entry.url) {
        (Some(command), None) => {
            let words = std::iter::once(command).chain(entry.args);
            let words = words.map(|word| values.expand(&word).into()).collect();
            let variables = entry.env.into_iter().map(|(name, value)| (name, values.expand(&value).into()));
            NamedServer::Command { words, variables: variables.collect() }
        }
        (None, Some(url)) => {
            let url = values.expand(&url);
            let headers = entry.headers.into_iter();
            let headers = headers.map(|(name, value)| HttpHeader { name, value: values.expand(&value) });
            NamedServer::Url { url, headers: headers.collect() }
        }
        _ => return Err(format!("the server `{name}` must have a `command` or a `url`")),
    };
    if !values.missing.is_empty() {
        let missing = values.missing.join(", ");
        return Err(format!("the server `{name}` needs variables that are not set: {missing}"));
    }
    Ok(server)
}

/// The values of one server, with the variables that they need.
struct Values<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    missing: Vec<String>,
}

impl Values<'_> {
    /// Replaces `${NAME}` and `${NAME:-DEFAULT}`. As in a shell, an empty variable has the default.
    fn expand(&mut self, text: &str) -> String {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let Some(end) = rest[at..].find('}') else { break };
            expanded.push_str(&rest[..at]);
            let inner = &rest[at + 2..at + end];
            let (name, default) = match inner.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inner, None),
            };
            match ((self.variable)(name), default) {
                (Some(value), None) => expanded.push_str(&value),
                (Some(value), Some(_)) if !value.is_empty() => expanded.push_str(&value),
                (_, Some(default)) => expanded.push_str(default),
                (None, None) => self.missing.push(name.to_owned()),
            }
            rest = &rest[at + end + 1..];
        }
        expanded + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn variable(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/home/me".to_owned()),
            "TOKEN" => Some("s3cret".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    /// The parts of a server, as one text.
    fn parts(entry: Value) -> Result<String, String> {
        let text = json!({"mcpServers": {"one": entry, "broken": {"url": "${UNSET}"}}}).to_string();
        named(&text, "one", &variable).map(|server| match server {
            NamedServer::Url { url, headers } => {
                headers.iter().fold(url, |text, header| format!("{text} {}={}", header.name, header.value))
            }
            NamedServer::Command { words, variables } => format!("{words:?} {variables:?}"),
        })
    }

    #[test]
    fn servers_are_read_with_their_variables() {
        for (entry, expected) in [
            (
                json!({"command": "a", "args": ["${HOME}/x", "$HOME"], "env": {"T": "${TOKEN}"}, "type": "stdio"}),
                Ok(r#"["a", "/home/me/x", "$HOME"] [("T", "s3cret")]"#),
            ),
            (json!({"url": "https://e/${EMPTY}mcp"}), Ok("https://e/mcp")),
            (
                json!({"url": "https://e", "headers": {"A": "Bearer ${TOKEN}", "B": "${UNSET:-b}${EMPTY:-c}"}}),
                Ok("https://e A=Bearer s3cret B=bc"),
            ),
            (json!({"command": "${HOME", "args": ["}${"]}), Ok(r#"["${HOME", "}${"] []"#)),
            (
                json!({"command": "a", "args": ["${X}"], "env": {"T": "${Y}"}}),
                Err("the server `one` needs variables that are not set: X, Y"),
            ),
            (json!({}), Err("the server `one` must have a `command` or a `url`")),
            (json!({"command": "a", "url": "b"}), Err("the server `one` must have a `command` or a `url`")),
        ] {
            assert_eq!(parts(entry.clone()), expected.map(str::to_owned).map_err(str::to_owned), "{entry}");
        }
        assert!(parts(json!({"command": 7})).unwrap_err().starts_with("the server `one`: "));
        let other = named(r#"{"mcpServers": {"a": {}, "b": {}}}"#, "c", &variable);
        assert_eq!(other.err().as_deref(), Some("no server `c`; there are: a, b"));
        let none = named(r#"{"servers": {}}"#, "c", &variable);
        assert!(none.err().is_some_and(|text| text.starts_with("not a JSON object with `mcpServers`")));
    }
}
