//! One server of a file, as hosts write it.

use crate::console;
use serde_json::{Map, Value};

/// A server. The errors contain no value, which may be a secret.
pub(super) struct Entry {
    pub(super) place: Place<String>,
    /// The members that are not used, without those that change nothing here.
    pub(super) ignored: Vec<String>,
}

/// The place of a server.
#[derive(Debug)]
pub(crate) enum Place<T> {
    Url { url: T, headers: Vec<(String, T)> },
    Command { program: T, args: Vec<T>, env: Vec<(String, T)>, directory: Option<T> },
}

/// The members with a URL. The first one that is there is used: in a file with several, `url` is that of an older transport.
const URLS: [&str; 3] = ["httpUrl", "serverUrl", "url"];
/// The members that a command has, and those of a URL.
const OF_COMMAND: [&str; 4] = ["command", "args", "env", "cwd"];
const OF_URL: [&str; 1] = ["headers"];
/// The members of hosts that change nothing about a connection: names, switches, permissions, time limits of the host.
const HARMLESS: [&str; 22] = [
    "type",
    "transport",
    "transportType",
    "timeout",
    "initTimeout",
    "startup_timeout",
    "disabled",
    "enabled",
    "alwaysAllow",
    "autoApprove",
    "trust",
    "disabledTools",
    "enabledTools",
    "includeTools",
    "excludeTools",
    "tools",
    "name",
    "title",
    "description",
    "version",
    "gallery",
    "source",
];

impl<T> Place<T> {
    /// Returns the same place with its texts changed.
    pub(super) fn map<U>(self, mut change: impl FnMut(T) -> U) -> Place<U> {
        let named = |all: Vec<(String, T)>, change: &mut dyn FnMut(T) -> U| {
            all.into_iter().map(|(name, value)| (name, change(value))).collect()
        };
        match self {
            Self::Url { url, headers } => {
                Place::Url { url: change(url), headers: named(headers, &mut change) }
            }
            Self::Command { program, args, env, directory } => Place::Command {
                program: change(program),
                args: args.into_iter().map(&mut change).collect(),
                env: named(env, &mut change),
                directory: directory.map(change),
            },
        }
    }
}

impl Entry {
    pub(super) fn of(entry: &Value) -> Result<Self, String> {
        let members = &usual(entry.as_object().ok_or("must be an object")?);
        let program = text(members, "command")?;
        let urls = URLS.iter().map(|name| text(members, name)).collect::<Result<Vec<_>, _>>()?;
        let (place, used) = match (program, urls.into_iter().flatten().next()) {
            (Some(program), None) => {
                let (args, env) = (texts(members, "args")?, named_texts(members, "env")?);
                let directory = text(members, "cwd")?;
                (Place::Command { program, args, env, directory }, &OF_COMMAND[..])
            }
            (None, Some(url)) => (Place::Url { url, headers: named_texts(members, "headers")? }, &OF_URL[..]),
            (Some(_), Some(_)) => return Err("has a `command` and a `url`: only one can be used".to_owned()),
            (None, None) => return Err("must have a `command` or a `url`".to_owned()),
        };
        let is_known = |name: &str| [used, &URLS, &HARMLESS].iter().any(|names| names.contains(&name));
        let ignored = members.iter().filter(|(name, value)| !is_known(name) && !is_empty(value));
        Ok(Self { place, ignored: ignored.map(|(name, _)| name.clone()).collect() })
    }
}

/// Returns the members in their usual form: opencode writes one array of words as `command`, and `environment`; older versions of Zed
/// write an object with `path`, `args` and `env`.
fn usual(members: &Map<String, Value>) -> Map<String, Value> {
    let mut usual = members.clone();
    match members.get("command") {
        Some(Value::Array(words)) if !words.is_empty() && !members.contains_key("args") => {
            usual.insert("command".to_owned(), words[0].clone());
            usual.insert("args".to_owned(), words[1..].into());
        }
        Some(Value::Object(command)) if command.contains_key("path") => {
            usual.remove("command");
            for (name, value) in command {
                usual.insert(if name == "path" { "command" } else { name }.to_owned(), value.clone());
            }
        }
        _ => {}
    }
    if !members.contains_key("env")
        && let Some(variables) = usual.remove("environment")
    {
        usual.insert("env".to_owned(), variables);
    }
    usual
}

/// Returns `true` for a value that says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns a text. An empty one is absent.
fn text(members: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("has a `{name}` that is not a text")),
    }
}

/// Returns a text, or a number or a switch as a text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn texts(members: &Map<String, Value>, name: &str) -> Result<Vec<String>, String> {
    let entries = match members.get(name) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(entries)) => entries.iter().map(scalar).collect(),
        Some(_) => None,
    };
    entries.ok_or_else(|| format!("has `{name}` that are not an array of texts"))
}

/// Returns the members of an object that are not null.
fn named_texts(members: &Map<String, Value>, name: &str) -> Result<Vec<(String, String)>, String> {
    let entries = match members.get(name) {
        None | Some(Value::Null) => Some(Vec::new()),
        // PHP writes an object without members so.
        Some(Value::Array(entries)) if entries.is_empty() => Some(Vec::new()),
        Some(Value::Object(entries)) => entries
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| Some((name.clone(), scalar(value)?)))
            .collect(),
        Some(_) => None,
    };
    entries.ok_or_else(|| format!("has `{name}` that are not an object of texts"))
}

/// The maximum number of characters of a name in a text.
pub(super) const NAME: usize = 60;

/// The values of one server, with the variables that they need.
pub(super) struct Values<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// The names of variables that are not set.
    pub(super) missing: Vec<String>,
    /// The texts in `${..}` that are no names.
    pub(super) kept: Vec<String>,
}

/// A text with the values of its variables, which may be secrets, and the same text with their names, to be shown.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) value: String,
    pub(crate) shown: String,
}

impl<'a> Values<'a> {
    pub(super) fn new(variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { variable, missing: Vec::new(), kept: Vec::new() }
    }

    /// Replaces `${NAME}`, `${env:NAME}` and `${NAME:-DEFAULT}`. As in a shell, an empty variable has the default. A name of
    /// another kind, such as `${input:NAME}`, is one of the host: it is missing here.
    pub(super) fn expand(&mut self, text: &str) -> Expanded {
        let (mut expanded, mut shown) = (String::new(), String::new());
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let Some(end) = rest[at..].find('}') else { break };
            expanded.push_str(&rest[..at]);
            shown.push_str(&rest[..at]);
            let (whole, inner) = (&rest[at..=at + end], &rest[at + 2..at + end]);
            rest = &rest[at + end + 1..];
            let (name, default) = match inner.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inner, None),
            };
            let name = name.strip_prefix("env:").unwrap_or(name);
            if !is_name(name) {
                self.kept.push(whole.to_owned());
                expanded.push_str(whole);
                shown.push_str(whole);
                continue;
            }
            shown.push_str(&format!("${{{}}}", console::truncated(name, NAME)));
            match ((self.variable)(name), default) {
                (Some(value), None) => expanded.push_str(&value),
                (Some(value), Some(_)) if !value.is_empty() => expanded.push_str(&value),
                (_, Some(default)) => expanded.push_str(default),
                (None, None) => self.missing.push(name.to_owned()),
            }
        }
        Expanded { value: expanded + rest, shown: shown + rest }
    }
}

/// Returns `true` for the name of a variable, of this program's environment or of a host. Windows has names with brackets.
fn is_name(text: &str) -> bool {
    let is_of_name = |it: char| it.is_alphanumeric() || "_.-()".contains(it);
    let (kind, name) = text.split_once(':').unwrap_or(("", text));
    !name.is_empty() && kind.chars().all(char::is_alphanumeric) && name.chars().all(is_of_name)
}
