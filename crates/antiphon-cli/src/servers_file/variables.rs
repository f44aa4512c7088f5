//! The variables in the values of a server.

use crate::sanitize;

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
            shown.push_str(&format!("${{{}}}", sanitize::truncated(name, NAME)));
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
