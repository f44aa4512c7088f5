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

mod expand;
mod matching;

use crate::escaped;
use serde::Serialize;
use serde_json::{Map, Value};
use std::{cmp::Reverse, error, fmt};

/// A URI template, split into its parts.
#[derive(Clone, Debug)]
pub struct UriTemplate {
    parts: Vec<Part>,
    atoms: Vec<matching::Atom>,
}

/// A text, or an expression in braces.
#[derive(Clone, Debug)]
enum Part {
    Literal(String),
    Expression(Operator, Vec<Variable>),
}

/// A variable. One with `*` is a list.
#[derive(Clone, Debug)]
struct Variable {
    name: String,
    is_list: bool,
}

/// The operator of an expression: what is written before its first value, and between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Operator {
    first: Option<u8>,
    separator: u8,
    /// Values are written with their names.
    is_named: bool,
    /// Values keep the characters that RFC 3986 reserves, such as `/`.
    is_reserved: bool,
}

impl Operator {
    /// Returns the operator at the beginning of an expression, and the rest.
    ///
    /// # Errors
    /// If RFC 6570 reserves the operator, and gives it no meaning.
    fn read(expression: &str) -> Result<(Self, &str), InvalidTemplate> {
        let of = |first, separator, is_named, is_reserved| Self { first, separator, is_named, is_reserved };
        let operator = match expression.bytes().next() {
            Some(b'+') => of(None, b',', false, true),
            Some(b'#') => of(Some(b'#'), b',', false, true),
            Some(b'.') => of(Some(b'.'), b'.', false, false),
            Some(b'/') => of(Some(b'/'), b'/', false, false),
            Some(b';') => of(Some(b';'), b';', true, false),
            Some(b'?') => of(Some(b'?'), b'&', true, false),
            Some(b'&') => of(Some(b'&'), b'&', true, false),
            Some(b'=' | b',' | b'!' | b'@' | b'|') => {
                return fault(format!(
                    "RFC 6570 gives the operator of `{{{}}}` no meaning yet",
                    escaped(expression)
                ));
            }
            _ => return Ok((of(None, b',', false, false), expression)),
        };
        Ok((operator, expression.get(1..).unwrap_or_default()))
    }

    /// Returns whether the expression of this operator ends before this byte. Only expressions with named values end by a byte.
    fn ends_at(self, byte: u8) -> bool {
        byte == self.separator || byte == b'#' || self.separator == b';' && matches!(byte, b'/' | b'?')
    }
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// If the template is not one of RFC 6570, has a prefix of level 4 such as `{name:3}`, has a variable twice, or if nothing says where a value ends
    /// in a URI, as in `{a}{b}`.
    pub fn parse(template: &str) -> Result<Self, InvalidTemplate> {
        let (mut parts, mut rest) = (Vec::new(), template);
        while let Some(at) = rest.find(['{', '}']) {
            let (literal, after) = rest.split_at(at);
            let Some(after) = after.strip_prefix('{') else { return fault("a `}` has no `{`") };
            let Some((expression, after)) = after.split_once('}') else { return fault("a `{` has no `}`") };
            if !literal.is_empty() {
                parts.push(Part::Literal(expand::literal(literal)));
            }
            let (operator, variables) = Operator::read(expression)?;
            let variables = variables.split(',').map(|one| Variable::read(expression, one));
            parts.push(Part::Expression(operator, variables.collect::<Result<_, _>>()?));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(expand::literal(rest)));
        }
        check(&parts)?;
        Ok(Self { atoms: matching::atoms(&parts), parts })
    }

    /// Returns the names of the variables, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        variables(&self.parts).map(|variable| variable.name.as_str())
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
            Ok(Value::Object(values)) => expand::expand(&self.parts, &values),
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
        matching::matches(&self.atoms, uri.as_bytes())
    }
}

/// The maximum number of bytes of a URI that matches a template: 8 KiB.
///
/// > It is RECOMMENDED that all senders and recipients support, at a minimum, URIs with lengths of 8000 octets (RFC 9110, section 4.1)
pub const MAX_URI: usize = 8192;

/// The maximum number of variables of a template that are read by position, so not those of `{?q}`, `{&q}` and `{;q}`.
const MAX_POSITIONS: usize = 16;

impl Variable {
    fn read(expression: &str, text: &str) -> Result<Self, InvalidTemplate> {
        let (name, is_list) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
        let expression = escaped(expression);
        if name.contains(':') {
            return fault(format!(
                "`{{{expression}}}` has a prefix, which is of level 4 of RFC 6570: a part of a value does not give back the value"
            ));
        }
        if name.is_empty()
            || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
        {
            return fault(format!(
                "`{{{expression}}}` is not an expression of RFC 6570: names have letters, digits, `_` and `.`, and are separated by `,`"
            ));
        }
        Ok(Self { name: name.to_owned(), is_list })
    }
}

fn variables(parts: &[Part]) -> impl Iterator<Item = &Variable> {
    parts.iter().flat_map(|part| match part {
        Part::Literal(_) => &[][..],
        Part::Expression(_, variables) => variables,
    })
}

/// Checks that each name occurs once, and that each value has an end.
fn check(parts: &[Part]) -> Result<(), InvalidTemplate> {
    let names: Vec<&str> = variables(parts).map(|variable| variable.name.as_str()).collect();
    if let Some((_, name)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return fault(format!("`{name}` occurs twice"));
    }
    let by_position = parts.iter().map(|part| match part {
        Part::Expression(operator, variables) if !operator.is_named => variables.len(),
        _ => 0,
    });
    if by_position.sum::<usize>() > MAX_POSITIONS {
        return fault(format!("there are more than {MAX_POSITIONS} variables besides parameters by name"));
    }
    for pair in parts.windows(2) {
        let [Part::Expression(before, _), after] = pair else { continue };
        let first = match after {
            Part::Literal(text) => text.bytes().next(),
            Part::Expression(operator, _) => operator.first,
        };
        match first {
            None => return fault("nothing separates an expression from the one before it"),
            Some(first) if before.is_named && !before.ends_at(first) => {
                return fault(format!(
                    "the parameters of an expression do not end before `{}`",
                    char::from(first).escape_default()
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn fault<T>(text: impl Into<String>) -> Result<T, InvalidTemplate> {
    Err(InvalidTemplate(text.into()))
}

/// An error from a URI template that cannot be used, or from values that it does not take. The author of the template or of the values can correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTemplate(String);

impl fmt::Display for InvalidTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for InvalidTemplate {}
