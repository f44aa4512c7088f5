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
mod parts;
mod percent;

pub use matching::MAX_URI;
pub use parts::InvalidTemplate;

use parts::{Operator, Part};
use serde::Serialize;
use serde_json::{Map, Value};
use std::cmp::Reverse;

/// A URI template, split into its parts.
#[derive(Clone, Debug)]
pub struct UriTemplate {
    parts: Vec<Part>,
    atoms: Vec<matching::Atom>,
}

impl UriTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// If the template is not one of RFC 6570, has a prefix of level 4 such as `{name:3}`, has a variable twice, or if nothing says where a value ends
    /// in a URI, as in `{a}{b}`.
    pub fn parse(template: &str) -> Result<Self, InvalidTemplate> {
        let parts = parts::parse(template)?;
        Ok(Self { atoms: matching::atoms(&parts), parts })
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
            Ok(Value::Object(values)) => expand::expand(&self.parts, &values),
            Ok(_) => parts::fault("the values are not an object with a member for each variable"),
            Err(error) => parts::fault(error.to_string()),
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
