//! `--servers FILE --server NAME`: the servers of a host, in the JSON that hosts share.
//!
//! ```json
//! {"mcpServers": {
//!     "local": {"command": "my-server", "args": ["--root", "${HOME}"], "env": {"TOKEN": "${TOKEN}"}},
//!     "remote": {"url": "https://example.com/mcp", "headers": {"X-Team": "${TEAM:-core}"}}
//! }}
//! ```

use crate::{args::HttpHeader, failure::Failure, sanitize};
use serde_json::{Map, Value};
use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

/// The maximum size of a file, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// The maximum number of names in an error, and of characters of each.
const NAMES: usize = 10;
const NAME: usize = 60;

/// A server of the file, with the variables replaced. `shown` is the same text with `${NAME}` in the place of each value, which may
/// be a secret.
pub(crate) enum NamedServer {
    Url { url: String, shown: String, headers: Vec<HttpHeader> },
    Command { words: Vec<OsString>, shown: String, variables: Vec<(String, OsString)> },
}

/// Reads the server of this name.
pub(crate) fn read(file: &Path, name: &str) -> Result<NamedServer, Failure> {
    let failed = |text: String| Failure::usage(format!("{}: {text}", file.display()));
    let text = text_of(file).map_err(failed)?;
    named(&text, name, &|variable| env::var(variable).ok()).map_err(failed)
}

/// Reads a regular file, or standard input.
fn text_of(file: &Path) -> Result<String, String> {
    if file == Path::new("-") {
        return limited(io::stdin());
    }
    // Opening a FIFO would wait for its writer.
    let found = fs::metadata(file).map_err(|fault| fault.to_string())?;
    if !found.is_file() {
        return Err("it is not a regular file; `-` is standard input".to_owned());
    }
    limited(File::open(file).map_err(|fault| fault.to_string())?)
}

fn limited(source: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    source.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|fault| fault.to_string())?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE) {
        return Err(format!("it has more than {MAX_FILE} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

fn named(text: &str, name: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<NamedServer, String> {
    let mut file: Value = serde_json::from_str(text).map_err(|fault| format!("not JSON: {fault}"))?;
    let Some(servers) = file.get_mut("mcpServers").and_then(Value::as_object_mut) else {
        return Err("not a JSON object with `mcpServers`".to_owned());
    };
    let shown_name = sanitize::truncated(name, NAME);
    let Some(entry) = servers.remove(name) else {
        return Err(format!("no server `{shown_name}`; there are: {}", listed(servers.keys())));
    };
    let of_server = |text: String| format!("the server `{shown_name}` {text}");
    let entry = Entry::of(&entry).map_err(of_server)?;
    let mut values = Values { variable, missing: Vec::new() };
    let server = match (entry.command, entry.url) {
        (Some(command), None) => {
            let Expanded { value: program, shown } = values.expand(&command);
            let arguments = entry.args.iter().map(|word| values.expand(word).value.into());
            let words = std::iter::once(program.into()).chain(arguments).collect();
            let variables =
                entry.env.into_iter().map(|(name, value)| (name, values.expand(&value).value.into()));
            NamedServer::Command { words, shown, variables: variables.collect() }
        }
        (None, Some(url)) => {
            let Expanded { value: url, shown } = values.expand(&url);
            let headers = entry.headers.into_iter();
            let headers =
                headers.map(|(name, value)| HttpHeader { name, value: values.expand(&value).value });
            NamedServer::Url { url, shown, headers: headers.collect() }
        }
        _ => return Err(of_server("must have a `command` or a `url`".to_owned())),
    };
    if !values.missing.is_empty() {
        let missing = listed(values.missing.iter());
        return Err(of_server(format!("needs variables that are not set: {missing}")));
    }
    Ok(server)
}

/// Returns the first names, and the number of the others.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> String {
    let more = names.len().saturating_sub(NAMES);
    let mut text: Vec<String> = names.take(NAMES).map(|name| sanitize::truncated(name, NAME)).collect();
    if more > 0 {
        text.push(format!("and {more} more"));
    }
    text.join(", ")
}

/// The members of a server that are used here. Hosts have more of them. The errors contain no value, which may be a secret.
struct Entry {
    command: Option<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    url: Option<String>,
    headers: Vec<(String, String)>,
}

impl Entry {
    fn of(entry: &Value) -> Result<Self, String> {
        let members = entry.as_object().ok_or("must be an object")?;
        Ok(Self {
            command: text(members, "command")?,
            args: texts(members, "args")?,
            env: named_texts(members, "env")?,
            url: text(members, "url")?,
            headers: named_texts(members, "headers")?,
        })
    }
}

fn text(members: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("has a `{name}` that is not a text")),
    }
}

fn texts(members: &Map<String, Value>, name: &str) -> Result<Vec<String>, String> {
    let Some(value) = members.get(name) else { return Ok(Vec::new()) };
    let entries =
        value.as_array().map(|entries| entries.iter().map(|entry| entry.as_str().map(str::to_owned)));
    entries.and_then(Iterator::collect).ok_or_else(|| format!("has `{name}` that are not an array of texts"))
}

fn named_texts(members: &Map<String, Value>, name: &str) -> Result<Vec<(String, String)>, String> {
    let Some(value) = members.get(name) else { return Ok(Vec::new()) };
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    let entries = value.as_object().map(|entries| entries.iter().map(text));
    entries.and_then(Iterator::collect).ok_or_else(|| format!("has `{name}` that are not an object of texts"))
}

/// The values of one server, with the variables that they need.
struct Values<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    missing: Vec<String>,
}

/// A text with the values of its variables, and the same text with their names.
struct Expanded {
    value: String,
    shown: String,
}

impl Values<'_> {
    /// Replaces `${NAME}` and `${NAME:-DEFAULT}`. As in a shell, an empty variable has the default.
    fn expand(&mut self, text: &str) -> Expanded {
        let (mut expanded, mut shown) = (String::new(), String::new());
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let Some(end) = rest[at..].find('}') else { break };
            expanded.push_str(&rest[..at]);
            shown.push_str(&rest[..at]);
            let inner = &rest[at + 2..at + end];
            let (name, default) = match inner.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inner, None),
            };
            shown.push_str(&format!("${{{}}}", sanitize::truncated(name, NAME)));
            match ((self.variable)(name), default) {
                (Some(value), None) => expanded.push_str(&value),
                (Some(value), Some(_)) if !value.is_empty() => expanded.push_str(&value),
                (_, Some(default)) => expanded.push_str(default),
                (None, None) => self.missing.push(name.to_owned()),
            }
            rest = &rest[at + end + 1..];
        }
        Expanded { value: expanded + rest, shown: shown + rest }
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
            NamedServer::Url { url, headers, .. } => {
                headers.iter().fold(url, |text, header| format!("{text} {}={}", header.name, header.value))
            }
            NamedServer::Command { words, variables, .. } => format!("{words:?} {variables:?}"),
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
        let other = named(r#"{"mcpServers": {"a": {}, "b": {}}}"#, "c", &variable);
        assert_eq!(other.err().as_deref(), Some("no server `c`; there are: a, b"));
        let none = named(r#"{"servers": {}}"#, "c", &variable);
        assert!(none.err().is_some_and(|text| text.starts_with("not a JSON object with `mcpServers`")));
    }

    #[test]
    fn the_shown_text_has_no_values() {
        for (entry, expected) in [
            (json!({"command": "/x/${TOKEN}/nope"}), "/x/${TOKEN}/nope"),
            (json!({"command": "${TOKEN}${EMPTY}"}), "${TOKEN}${EMPTY}"),
            (json!({"command": "${UNSET:-${TOKEN}"}), "${UNSET}"),
            (json!({"command": "plain", "args": ["${TOKEN}"]}), "plain"),
            (
                json!({"url": "https://${UNSET:-h}/${TOKEN}/mcp?k=${TOKEN}"}),
                "https://${UNSET}/${TOKEN}/mcp?k=${TOKEN}",
            ),
        ] {
            let text = json!({"mcpServers": {"one": entry}}).to_string();
            let shown = match named(&text, "one", &variable).ok() {
                Some(NamedServer::Url { shown, .. } | NamedServer::Command { shown, .. }) => shown,
                None => String::new(),
            };
            assert_eq!(shown, expected, "{entry}");
        }
    }

    #[test]
    fn errors_are_cut_and_have_no_values() {
        let many: Map<String, Value> = (0..1000).map(|number| (format!("n{number:04}"), json!({}))).collect();
        let names: Vec<String> = (0..10).map(|number| format!("n{number:04}")).collect();
        let unset: String = (0..500).map(|number| format!("${{U{number}}}")).collect();
        let long = "x".repeat(5000);
        for (servers, name, expected) in [
            (json!(many), "other", format!("no server `other`; there are: {}, and 990 more", names.join(", "))),
            (json!({}), &*long, format!("no server `{}… (5000 bytes)`; there are: ", "x".repeat(60))),
            (
                json!({"a": {"command": unset}}),
                "a",
                "the server `a` needs variables that are not set: U0, U1, U2, U3, U4, U5, U6, U7, U8, U9, and 490 more".to_owned(),
            ),
            (json!({"a": 1}), "a", "the server `a` must be an object".to_owned()),
            (json!({"a": {"command": 7}}), "a", "the server `a` has a `command` that is not a text".to_owned()),
            (json!({"a": {"url": ["s3cret"]}}), "a", "the server `a` has a `url` that is not a text".to_owned()),
            (
                json!({"a": {"command": "c", "args": "s3cret"}}),
                "a",
                "the server `a` has `args` that are not an array of texts".to_owned(),
            ),
            (
                json!({"a": {"command": "c", "env": {"A": 7}}}),
                "a",
                "the server `a` has `env` that are not an object of texts".to_owned(),
            ),
            (
                json!({"a": {"url": "u", "headers": "Bearer s3cret"}}),
                "a",
                "the server `a` has `headers` that are not an object of texts".to_owned(),
            ),
        ] {
            let text = json!({"mcpServers": servers}).to_string();
            let failed = named(&text, name, &variable).err();
            assert_eq!(failed.as_deref(), Some(&*expected));
        }
    }
}
