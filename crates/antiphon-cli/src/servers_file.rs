//! `--servers FILE --server NAME`: the servers of a host, in the JSON that hosts write.
//!
//! ```json
//! {"mcpServers": {
//!     "local": {"command": "my-server", "args": ["--root", "${HOME}"], "env": {"TOKEN": "${TOKEN}"}, "cwd": "/srv"},
//!     "remote": {"url": "https://example.com/mcp", "headers": {"X-Team": "${TEAM:-core}"}}
//! }}
//! ```

use crate::{console, failure::Failure};
use serde_json::{Map, Value};
use std::{
    env,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

/// The maximum size of a file, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// The maximum number of names in an error.
const NAMES: usize = 10;
/// The member with the servers: of most hosts, of VS Code, of Zed, and of opencode.
const ROOTS: [&str; 4] = ["mcpServers", "servers", "context_servers", "mcp"];

/// A server of the file, with the variables replaced.
pub(crate) struct NamedServer {
    pub(crate) name: String,
    pub(crate) place: Place<Expanded>,
}

/// Reads the server of this name, or the only one.
pub(crate) fn read(file: &Path, name: Option<&str>) -> Result<NamedServer, Failure> {
    let failed = |text: String| Failure::usage(format!("{}: {text}", file.display()));
    let text = text_of(file).map_err(failed)?;
    let mut warnings = Vec::new();
    let server = named(&text, name, &|variable| env::var(variable).ok(), &mut warnings);
    for warning in warnings {
        console::hint(&format!("warning: {}: {warning}", file.display()));
    }
    server.map_err(failed)
}

/// Returns the names of the servers in a file.
pub(crate) fn names(file: &Path) -> Result<Vec<String>, Failure> {
    let failed = |text: String| Failure::usage(format!("{}: {text}", file.display()));
    let text = to_json(&text_of(file).map_err(failed)?);
    let file: Value = serde_json::from_str(&text).map_err(|fault| failed(format!("not JSON: {fault}")))?;
    Ok(servers_of(&file).map_err(failed)?.keys().cloned().collect())
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
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err("it is UTF-16: save it as UTF-8".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

/// Returns the server of this name, or the only one, and adds a warning for what is not used.
fn named(
    text: &str,
    name: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
    warnings: &mut Vec<String>,
) -> Result<NamedServer, String> {
    let text = to_json(text);
    let file: Value = serde_json::from_str(&text).map_err(|fault| format!("not JSON: {fault}"))?;
    let servers = servers_of(&file)?;
    let (name, entry) = selected(&servers, name)?;
    let shown_name = console::truncated(name, NAME);
    let of_server = |text: String| format!("the server `{shown_name}` {text}");
    let Entry { place, ignored } = Entry::of(entry).map_err(of_server)?;
    if !ignored.is_empty() {
        warnings.push(of_server(format!("has members that are not used: {}", listed(ignored.iter()))));
    }
    let mut values = Values::new(variable);
    let place = place.map(|text| values.expand(&text));
    let Values { missing, kept, .. } = values;
    if !kept.is_empty() {
        let kept = listed(kept.iter());
        warnings.push(of_server(format!("has texts that are no variables, and stay as they are: {kept}")));
    }
    if !missing.is_empty() {
        return Err(of_server(format!("needs variables that are not set: {}", listed(missing.iter()))));
    }
    Ok(NamedServer { name: name.to_owned(), place })
}

/// Returns the servers of all roots of the file. The first root has precedence.
fn servers_of(file: &Value) -> Result<Map<String, Value>, String> {
    let none = || format!("not a JSON object with `{}` or `{}`", ROOTS[0], ROOTS[1]);
    let members = file.as_object().ok_or_else(none)?;
    let mut servers = None::<Map<String, Value>>;
    for (root, value) in ROOTS.iter().filter_map(|root| Some((root, members.get(*root)?))) {
        match value {
            Value::Null => {}
            Value::Object(found) => {
                let servers = servers.get_or_insert_default();
                for (name, entry) in found {
                    servers.entry(name).or_insert_with(|| entry.clone());
                }
            }
            _ => return Err(format!("`{root}` must be an object")),
        }
    }
    servers.ok_or_else(|| match members.is_empty() {
        true => none(),
        false => format!("{}; it has: {}", none(), listed(members.keys().collect::<Vec<_>>().into_iter())),
    })
}

fn selected<'a>(
    servers: &'a Map<String, Value>,
    name: Option<&str>,
) -> Result<(&'a String, &'a Value), String> {
    let mut all = servers.iter();
    match (name, servers.len()) {
        (Some(name), _) => all.find(|(it, _)| *it == name).ok_or_else(|| {
            let name = console::truncated(name, NAME);
            format!("no server `{name}`; there are: {}", listed(servers.keys()))
        }),
        (None, 1) => all.next().ok_or_else(String::new),
        (None, 0) => Err("it has no server".to_owned()),
        (None, _) => Err(format!("which server? Give --server and one of: {}", listed(servers.keys()))),
    }
}

/// Returns the first names, and the number of the others.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> String {
    let more = names.len().saturating_sub(NAMES);
    let mut text: Vec<String> = names.take(NAMES).map(|name| console::truncated(name, NAME)).collect();
    if more > 0 {
        text.push(format!("and {more} more"));
    }
    text.join(", ")
}

// JSON as editors and hosts accept it: with a byte order mark, comments and trailing commas.

/// Returns the text as plain JSON: what plain JSON does not have becomes spaces, so that an error names the same line and column.
/// What has no meaning here either, such as a comment without an end, stays, and is an error of the JSON.
fn to_json(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut json = String::with_capacity(text.len());
    // The place of a comma after which only spaces and comments came.
    let mut comma = None;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '/' => comment_length(rest),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if length > 1 && first == '/' {
            json.extend(token.chars().map(|it| if it == '\n' { '\n' } else { ' ' }));
            continue;
        }
        match (first, comma) {
            ('}' | ']', Some(at)) => json.replace_range(at..=at, " "),
            (',', _) => comma = Some(json.len()),
            _ => {}
        }
        if first != ',' && !first.is_whitespace() {
            comma = None;
        }
        json.push_str(token);
    }
    json
}

/// Returns the length of the string at the beginning, up to its closing quote or to the end of the text.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of the comment at the beginning, or 1 if there is none that has an end.
fn comment_length(text: &str) -> usize {
    match text.as_bytes().get(1) {
        Some(b'/') => text.find('\n').unwrap_or(text.len()),
        Some(b'*') => text[2..].find("*/").map_or(1, |at| at + 4),
        _ => 1,
    }
}

/// A server. The errors contain no value, which may be a secret.
struct Entry {
    place: Place<String>,
    /// The members that are not used, without those that change nothing here.
    ignored: Vec<String>,
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
    fn map<U>(self, mut change: impl FnMut(T) -> U) -> Place<U> {
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
    fn of(entry: &Value) -> Result<Self, String> {
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
const NAME: usize = 60;

/// The values of one server, with the variables that they need.
struct Values<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// The names of variables that are not set.
    missing: Vec<String>,
    /// The texts in `${..}` that are no names.
    kept: Vec<String>,
}

/// A text with the values of its variables, which may be secrets, and the same text with their names, to be shown.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) value: String,
    pub(crate) shown: String,
}

impl<'a> Values<'a> {
    fn new(variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { variable, missing: Vec::new(), kept: Vec::new() }
    }

    /// Replaces `${NAME}`, `${env:NAME}` and `${NAME:-DEFAULT}`. As in a shell, an empty variable has the default. A name of
    /// another kind, such as `${input:NAME}`, is one of the host: it is missing here.
    fn expand(&mut self, text: &str) -> Expanded {
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

#[cfg(test)]
mod tests;

#[cfg(test)]
mod lenient_json_tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_editors_accept_is_read() {
        for (text, expected) in [
            ("\u{feff}{}", Some(json!({}))),
            ("// a\n{} // b", Some(json!({}))),
            ("/* a */ {/**/} /* , */", Some(json!({}))),
            ("{\"a\": 1, // b\n}", Some(json!({"a": 1}))),
            ("[1, /* , */ 2 , \n]", Some(json!([1, 2]))),
            ("[[1,],]\r\n", Some(json!([[1]]))),
            (
                r#"{"a": "http://b", "c": "/* d */", "e": ",]"}"#,
                Some(json!({"a": "http://b", "c": "/* d */", "e": ",]"})),
            ),
            (r#"["\"// a", "\\", "b,}" ,]"#, Some(json!(["\"// a", "\\", "b,}"]))),
            ("{\"\u{e9}\": 1, /* \u{e9}\u{1f600} */ }", Some(json!({"\u{e9}": 1}))),
            // Not JSON for an editor either.
            ("[1,,]", None),
            ("[,1]", None),
            ("{} /* a", None),
            ("{} / b", None),
            ("[\"a]", None),
            ("", None),
        ] {
            assert_eq!(serde_json::from_str::<Value>(&to_json(text)).ok(), expected, "{text}");
        }
    }

    #[test]
    fn an_error_names_the_place_in_the_file() {
        let text = "{\n  // first\n  \"a\": 1, /* b\n */ oops\n}";
        let fault = serde_json::from_str::<Value>(&to_json(text)).unwrap_err();
        assert_eq!((fault.line(), fault.column()), (4, 5));
    }
}
