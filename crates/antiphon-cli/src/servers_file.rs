//! `--servers FILE --server NAME`: the servers of a host, in the JSON that hosts write.
//!
//! ```json
//! {"mcpServers": {
//!     "local": {"command": "my-server", "args": ["--root", "${HOME}"], "env": {"TOKEN": "${TOKEN}"}, "cwd": "/srv"},
//!     "remote": {"url": "https://example.com/mcp", "headers": {"X-Team": "${TEAM:-core}"}}
//! }}
//! ```

mod entry;
mod lenient_json;
mod variables;

use crate::{console, failure::Failure, sanitize};
use entry::Entry;
use serde_json::{Map, Value};
use std::{
    env,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};
use variables::{NAME, Values};

pub(crate) use entry::Place;
pub(crate) use variables::Expanded;

/// The maximum size of a file, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// The maximum number of names in an error.
const NAMES: usize = 10;
/// The member with the servers: of most hosts, of VS Code, and of Zed.
const ROOTS: [&str; 3] = ["mcpServers", "servers", "context_servers"];

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
    let text = lenient_json::to_json(text);
    let file: Value = serde_json::from_str(&text).map_err(|fault| format!("not JSON: {fault}"))?;
    let servers = servers_of(&file)?;
    let (name, entry) = selected(&servers, name)?;
    let shown_name = sanitize::truncated(name, NAME);
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
            let name = sanitize::truncated(name, NAME);
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
    let mut text: Vec<String> = names.take(NAMES).map(|name| sanitize::truncated(name, NAME)).collect();
    if more > 0 {
        text.push(format!("and {more} more"));
    }
    text.join(", ")
}

#[cfg(test)]
mod tests;
