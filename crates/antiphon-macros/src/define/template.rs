//! The URI of a resource, or the URI template: the names of its variables, and the types that they may have.
//!
//! The server parses the template again when it is built, and says what else it cannot match.

use proc_macro2::{Ident, Span};
use syn::{Error, LitStr, Result};

/// A URI, or a URI template of RFC 6570.
pub(super) struct Template {
    pub(super) literal: LitStr,
    pub(super) variables: Vec<Variable>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) shape: VariableShape,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum VariableShape {
    /// A text, such as `{id}` and `{+path}`.
    Text,
    /// A text that may be missing, such as `{?q}`.
    Query,
    /// A list of texts, such as `{/path*}`.
    List,
}

impl VariableShape {
    /// Returns the runtime function that describes the variable.
    pub(super) fn slot(self) -> Ident {
        let name = match self {
            Self::Text => "variable",
            Self::Query => "query_variable",
            Self::List => "list_variable",
        };
        Ident::new(name, Span::mixed_site())
    }

    /// Returns the type of its parameter, for messages.
    pub(super) fn parameter(self) -> &'static str {
        match self {
            Self::Text => "String",
            Self::Query => "Option<String>",
            Self::List => "Vec<String>",
        }
    }
}

impl Template {
    pub(super) fn read(literal: LitStr) -> Result<Self> {
        let text = literal.value();
        match variables(&text) {
            Ok(variables) => Ok(Self { literal, variables }),
            Err(fault) => Err(Error::new(literal.span(), fault)),
        }
    }

    /// Returns the variable of this name.
    pub(super) fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|variable| variable.name == name)
    }
}

fn variables(text: &str) -> std::result::Result<Vec<Variable>, String> {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if !scheme.starts_with(|first: char| first.is_ascii_alphabetic()) || !scheme.chars().all(fits) {
        return Err(format!("`{text}` is not a URI: it must begin with a scheme, as in \"report://{{id}}\""));
    }
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((literal, after)) = rest.split_once('{') {
        if literal.contains('}') {
            return Err("a `}` has no `{`: write a variable as `{id}`".to_owned());
        }
        let Some((expression, after)) = after.split_once('}') else {
            return Err("a `{` has no `}`: write a variable as `{id}`".to_owned());
        };
        let has_operator = expression.starts_with(['+', '#', '.', '/', ';', '?', '&']);
        let (operator, names) = expression.split_at(usize::from(has_operator));
        if literal.is_empty() && !found.is_empty() && matches!(operator, "" | "+") {
            return Err(format!(
                "there is no separator between `{{{expression}}}` and the variable before it: write a `/` between them"
            ));
        }
        for name in names.split(',') {
            let variable = variable(expression, operator, name)?;
            if found.iter().any(|known: &Variable| known.name == variable.name) {
                return Err(format!(
                    "`{{{}}}` is used twice: give the second variable another name",
                    variable.name
                ));
            }
            found.push(variable);
        }
        rest = after;
    }
    if rest.contains('}') {
        return Err("a `}` has no `{`: write a variable as `{id}`".to_owned());
    }
    Ok(found)
}

fn variable(expression: &str, operator: &str, text: &str) -> std::result::Result<Variable, String> {
    let (name, is_list) = text.strip_suffix('*').map_or((text, false), |name| (name, true));
    if name.contains(':') {
        return Err(format!(
            "`{{{expression}}}` has a prefix, of level 4 of RFC 6570: a part of a value does not give back the value"
        ));
    }
    if syn::parse_str::<Ident>(name).is_err() || !name.is_ascii() {
        return Err(format!(
            "`{{{expression}}}` does not name a parameter: write an operator of RFC 6570 or none, and names of parameters, as \
             in `{{id}}`, `{{+path}}`, `{{/path*}}` and `{{?q,limit}}`"
        ));
    }
    let shape = match operator {
        _ if is_list => VariableShape::List,
        "?" | "&" | ";" => VariableShape::Query,
        _ => VariableShape::Text,
    };
    Ok(Variable { name: name.to_owned(), shape })
}

#[cfg(test)]
mod tests {
    use super::VariableShape::{List, Query, Text};
    use super::*;

    #[test]
    fn variables_have_names_and_shapes() {
        for (text, expected) in [
            ("config://app", Some(&[][..])),
            ("report://{id}", Some(&[("id", Text)])),
            ("db://{host}/{table}/rows", Some(&[("host", Text), ("table", Text)])),
            ("a:{x}-{y}", Some(&[("x", Text), ("y", Text)])),
            ("a://{+x}", Some(&[("x", Text)])),
            ("a://{x,y*}", Some(&[("x", Text), ("y", List)])),
            ("a://{x}{/y*}{?q,tag*}", Some(&[("x", Text), ("y", List), ("q", Query), ("tag", List)])),
            ("a://x{;q}{#part}", Some(&[("q", Query), ("part", Text)])),
            ("{id}", None),
            ("report", None),
            ("1a://x", None),
            ("a://{", None),
            ("a://}", None),
            ("a://{x}}", None),
            ("a://x}{y}", None),
            ("a://{}", None),
            ("a://{x:3}", None),
            ("a://{!x}", None),
            ("a://{x,}", None),
            ("a://{x.y}", None),
            ("a://{fn}", None),
            ("a://{x}{y}", None),
            ("a://{x}{+y}", None),
            ("a://{x}/{x}", None),
        ] {
            let expected = expected.map(|all| {
                let variable =
                    |(name, shape): &(&str, _)| Variable { name: (*name).to_owned(), shape: *shape };
                all.iter().map(variable).collect::<Vec<_>>()
            });
            assert_eq!(variables(text).ok(), expected, "{text}");
        }
    }
}
