//! URI templates (RFC 6570): the parts of a template, parsed once. Level 3, with lists: all operators, several variables in an expression, and
//! `*` after a variable that is a list. [`UriTemplate::expand`] writes a URI, and [`UriTemplate::matches`] reads the values from one.
//!
//! | expression | values that it matches |
//! |---|---|
//! | `{id}` | one or more characters other than `/`, `?` and `#` |
//! | `{+path}`, `{#part}` | one or more characters, also `/` |
//! | `{.kind}`, `{/name}` | as `{id}`, after a `.` or a `/` |
//! | `{x,y}` | values that do not hold a `,`, separated by one |
//! | `{/path*}`, `{.kind*}`, `{names*}` | one or more values, as a list |
//! | `{?q,limit}`, `{&q}`, `{;q}` | parameters by name, in any order, each at most once. Each may be missing |
//! | `{?tag*}` | a parameter that may occur several times, as a list, which may be empty |
//!
//! Parameters that the template does not name do not match: a server does not ignore what a caller asks for. Where a template leaves a choice, each
//! value takes as few characters as possible, from left to right. A value also ends at the operator (`?`, `&`, `;` or `#`) of a later expression.
//!
//! A table says, for each atom and each position, whether the rest of the URI matches from there. It is filled from the end, one look at each place, so
//! no URI makes the matcher try a way twice. The values are then read from the beginning, by ways of which the table says that they end well.

mod parts;

pub use parts::InvalidTemplate;

use parts::{Operator, Part, Variable, decoded, encoded, fault};
use serde::Serialize;
use serde_json::{Map, Value, map::Entry};
use std::cmp::Reverse;

/// A URI template, split into its parts.
#[derive(Clone, Debug)]
pub struct UriTemplate {
    parts: Vec<Part>,
    atoms: Vec<Atom>,
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// If the template is not one of RFC 6570, has a prefix of level 4 such as `{name:3}`, has a variable twice, or if nothing says where a value ends
    /// in a URI, as in `{a}{b}`.
    pub fn parse(template: &str) -> Result<Self, InvalidTemplate> {
        let parts = parts::parse(template)?;
        Ok(Self { atoms: atoms(&parts), parts })
    }

    /// Returns the names of the variables, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        parts::variables(&self.parts).map(|variable| variable.name.as_str())
    }

    /// Returns the rank among templates that match the same URI: the lowest reads it. The template with more literal characters comes first. Of two
    /// with equally many, it is the one with fewer variables whose values may hold a `/` or are lists, such as `{+path}` and `{/path*}`.
    pub fn rank(&self) -> (Reverse<usize>, usize) {
        let (mut literal, mut open) = (0, 0);
        for part in &self.parts {
            match part {
                Part::Literal(text) => literal += text.len(),
                Part::Expression(Operator { is_named: true, .. }, _) => {}
                Part::Expression(operator, variables) => {
                    open += variables.iter().filter(|one| operator.is_reserved || one.is_list).count();
                }
            }
        }
        (Reverse(literal), open)
    }

    /// Returns the URI with these values. A text, number or boolean is one value, and an array of them is a list. A variable without a value, or with
    /// `null` or an empty list, is left out with its operator, and a value of no variable is ignored, as RFC 6570 says.
    ///
    /// # Errors
    /// If the values are not an object, such as a map or a struct, or if one of them is an object, or a list with a list.
    pub fn expand(&self, values: impl Serialize) -> Result<String, InvalidTemplate> {
        match serde_json::to_value(values) {
            Ok(Value::Object(values)) => expand(&self.parts, &values),
            Ok(_) => fault("the values are not an object with a member for each variable"),
            Err(error) => fault(error.to_string()),
        }
    }

    /// Returns the values of the variables, percent-decoded once, if the URI matches: texts, and lists of texts for variables with `*`. A missing
    /// parameter is absent, and a missing parameter with `*` is an empty list.
    ///
    /// A value may contain `..`, and `/` from `%2F`: who takes it as a path must check it. A URI of more than [`MAX_URI`] bytes does not match. The
    /// time is at most proportional to the length of the template times the length of the URI.
    pub fn matches(&self, uri: &str) -> Option<Map<String, Value>> {
        matches(&self.atoms, uri.as_bytes())
    }
}

fn expand(parts: &[Part], values: &Map<String, Value>) -> Result<String, InvalidTemplate> {
    let mut uri = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => uri.push_str(text),
            Part::Expression(operator, variables) => {
                let mut is_first = true;
                for variable in variables {
                    let given = values.get(&variable.name).unwrap_or(&Value::Null);
                    for text in texts(*operator, variable, given)? {
                        match operator.first {
                            first if is_first => uri.extend(first.map(char::from)),
                            _ => uri.push(char::from(operator.separator)),
                        }
                        uri.push_str(&text);
                        is_first = false;
                    }
                }
            }
        }
    }
    Ok(uri)
}

/// Returns the encoded texts of one variable: one for each item of a list with `*`, none without a value.
fn texts(operator: Operator, variable: &Variable, given: &Value) -> Result<Vec<String>, InvalidTemplate> {
    let encode = |value: &Value| match value {
        Value::String(text) => Ok(encoded(text, operator.is_reserved)),
        Value::Number(_) | Value::Bool(_) => Ok(encoded(&value.to_string(), operator.is_reserved)),
        _ => fault(format!(
            "the value of `{}` is neither a text, number or boolean nor a list of them",
            variable.name
        )),
    };
    let named = |text: String| match (operator.is_named, text.is_empty() && operator.separator == b';') {
        (false, _) => text,
        (true, true) => variable.name.clone(),
        (true, false) => format!("{}={text}", variable.name),
    };
    match given {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(encode).collect::<Result<_, _>>()?;
            match items.as_slice() {
                [] => Ok(Vec::new()),
                _ if variable.is_list => Ok(items.into_iter().map(named).collect()),
                _ => Ok(vec![named(items.join(","))]),
            }
        }
        one => Ok(vec![named(encode(one)?)]),
    }
}

/// The maximum number of bytes of a URI that matches a template: 8 KiB.
///
/// > It is RECOMMENDED that all senders and recipients support, at a minimum, URIs with lengths of 8000 octets (RFC 9110, section 4.1)
pub const MAX_URI: usize = 8192;

/// A part of a template, as the matcher sees it.
#[derive(Clone, Debug)]
enum Atom {
    Literal(String),
    Positional {
        name: String,
        is_list: bool,
        first: Option<u8>,
        separator: u8,
        /// The bytes that a value does not have.
        stops: Vec<u8>,
    },
    Named(Operator, Vec<Variable>),
}

/// Returns the atoms of a template.
fn atoms(parts: &[Part]) -> Vec<Atom> {
    let mut atoms = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let (operator, variables) = match part {
            Part::Literal(text) => {
                atoms.push(Atom::Literal(text.clone()));
                continue;
            }
            Part::Expression(operator, variables) if operator.is_named => {
                atoms.push(Atom::Named(*operator, variables.clone()));
                continue;
            }
            Part::Expression(operator, variables) => (operator, variables),
        };
        let later = parts.iter().skip(at + 1).filter_map(|part| match part {
            Part::Expression(Operator { first: Some(first), .. }, _) => Some(*first),
            _ => None,
        });
        let mut stops: Vec<u8> = later.filter(|first| b"?&;#".contains(first)).collect();
        if !operator.is_reserved {
            stops.extend_from_slice(b"/?#");
            if operator.separator == b',' && variables.len() > 1 {
                stops.push(b',');
            }
        }
        for (place, variable) in variables.iter().enumerate() {
            let mut stops = stops.clone();
            if variable.is_list {
                stops.push(operator.separator);
            }
            atoms.push(Atom::Positional {
                name: variable.name.clone(),
                is_list: variable.is_list,
                first: if place == 0 { operator.first } else { Some(operator.separator) },
                separator: operator.separator,
                stops,
            });
        }
    }
    atoms
}

fn matches(atoms: &[Atom], uri: &[u8]) -> Option<Map<String, Value>> {
    let begins = match atoms.first() {
        Some(Atom::Literal(text)) => uri.starts_with(text.as_bytes()),
        _ => true,
    };
    if !begins || uri.len() > MAX_URI {
        return None;
    }
    let rows = table(atoms, uri);
    let (mut values, mut at) = (Map::new(), 0);
    if !*rows.first()?.first()? {
        return None;
    }
    for (atom, ends) in atoms.iter().zip(rows.iter().skip(1)) {
        at = match atom {
            Atom::Literal(text) => at + text.len(),
            Atom::Positional { name, is_list, first, separator, .. } => {
                let start = at + usize::from(first.is_some());
                // The shortest value after which the rest matches. The bytes before it belong to the value: the table has no other way.
                let is_open = |end: usize| *is_list && uri.get(end - 1) == Some(separator);
                let is_end = |end: &usize| ends.get(*end) == Some(&true) && !is_open(*end);
                let end = (start + 1..=uri.len()).find(is_end)?;
                let text = uri.get(start..end)?;
                let value = if *is_list {
                    text.split(|byte| byte == separator).map(decoded).collect::<Option<Vec<String>>>()?.into()
                } else {
                    decoded(text)?.into()
                };
                values.insert(name.clone(), value);
                end
            }
            Atom::Named(operator, variables) => parameters(*operator, variables, uri, at, &mut values)?,
        };
        if !*ends.get(at)? {
            return None;
        }
    }
    Some(values)
}

/// Returns one row more than there are atoms: whether the rest of the URI from each position matches the atoms from this one.
fn table(atoms: &[Atom], uri: &[u8]) -> Vec<Vec<bool>> {
    let mut last = vec![false; uri.len() + 1];
    last[uri.len()] = true;
    let mut rows = vec![last];
    for atom in atoms.iter().rev() {
        let ends = &rows[rows.len() - 1];
        let mut row = vec![false; uri.len() + 1];
        match atom {
            Atom::Literal(text) => {
                for (at, fits) in row.iter_mut().enumerate() {
                    *fits =
                        ends.get(at + text.len()) == Some(&true) && uri[at..].starts_with(text.as_bytes());
                }
            }
            Atom::Positional { is_list, first, separator, stops, .. } => {
                // From this position: whether a value may begin here, and whether one that has begun may go on or end here.
                let (mut begins, mut goes_on) = (false, ends[uri.len()]);
                for at in (0..uri.len()).rev() {
                    let byte = uri[at];
                    let (begins_after, goes_on_after) = (begins, goes_on);
                    let fits = !stops.contains(&byte);
                    begins = fits && goes_on_after;
                    goes_on =
                        ends[at] || fits && goes_on_after || *is_list && byte == *separator && begins_after;
                    row[at] = match first {
                        Some(first) => byte == *first && begins_after,
                        None => begins,
                    };
                }
            }
            Atom::Named(operator, variables) => {
                // The end of the parameters from each separator, and the next byte that ends a value.
                let (mut run_ends, mut stop) = (vec![None; uri.len()], uri.len());
                row[uri.len()] = ends[uri.len()];
                for at in (0..uri.len()).rev() {
                    let (byte, is_first) = (uri[at], operator.first == Some(uri[at]));
                    if is_first || byte == operator.separator {
                        let one = parameter(variables, &uri[at + 1..stop]);
                        let end = one.map(|_| run_ends.get(stop).copied().flatten().unwrap_or(stop));
                        row[at] = is_first && end.is_some_and(|end| ends[end]);
                        run_ends[at] = end.filter(|_| byte == operator.separator);
                    }
                    row[at] |= ends[at];
                    if operator.ends_at(byte) {
                        stop = at;
                    }
                }
            }
        }
        rows.push(row);
    }
    rows.reverse();
    rows
}

/// Returns the variable and the value of a parameter such as `name=value`; `None` if the template does not name it.
fn parameter<'a>(variables: &'a [Variable], text: &'a [u8]) -> Option<(&'a Variable, &'a [u8])> {
    variables.iter().find_map(|variable| match text.strip_prefix(variable.name.as_bytes())? {
        [] => Some((variable, &[][..])),
        [b'=', value @ ..] => Some((variable, value)),
        _ => None,
    })
}

/// Reads the parameters at this position, and returns their end; `None` if one occurs twice that is no list.
fn parameters(
    operator: Operator,
    variables: &[Variable],
    uri: &[u8],
    start: usize,
    values: &mut Map<String, Value>,
) -> Option<usize> {
    for list in variables.iter().filter(|variable| variable.is_list) {
        values.insert(list.name.clone(), Value::Array(Vec::new()));
    }
    let (mut at, mut before) = (start, operator.first);
    while let Some(text) = uri.get(at + 1..).filter(|_| before == Some(uri[at])) {
        let text = &text[..text.iter().position(|byte| operator.ends_at(*byte)).unwrap_or(text.len())];
        let Some((variable, value)) = parameter(variables, text) else { break };
        let value = Value::from(decoded(value)?);
        match values.entry(variable.name.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
            Entry::Occupied(mut entry) => entry.get_mut().as_array_mut()?.push(value),
        }
        (at, before) = (at + 1 + text.len(), Some(operator.separator));
    }
    Some(at)
}
