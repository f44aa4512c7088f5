//! The kinds of marked functions.

use proc_macro2::{Ident, Span};
use syn::{Attribute, Error, LitStr, Result};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Tool, Self::Prompt, Self::Resource];

    /// Returns the name of the attribute.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// Returns the name with an article, for messages.
    pub(super) fn with_article(self) -> &'static str {
        match self {
            Self::Tool => "a tool",
            Self::Prompt => "a prompt",
            Self::Resource => "a resource",
        }
    }

    /// Returns the kind that an attribute marks, by the last segment of its path.
    pub(super) fn of(attribute: &Attribute) -> Option<Self> {
        let last = &attribute.path().segments.last()?.ident;
        Self::ALL.into_iter().find(|kind| last == kind.name())
    }

    /// Returns the settings that the attribute may have.
    pub(super) fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Tool => &[
                "name",
                "title",
                "description",
                "read_only",
                "destructive",
                "idempotent",
                "open_world",
                "additional",
                "version",
                "answer_timeout",
                "timeout",
                "needs",
                "on_version",
                "added",
                "rename",
                "forget",
                "keep_stale",
                "lenient_replay",
                "single_use",
                "write_ahead",
                "rerun_after_crash",
                "scopes",
                "approved_by",
                "visible_if",
                "listed_as",
                "task",
                "promote_after",
            ],
            Self::Prompt => &[
                "name",
                "title",
                "description",
                "version",
                "answer_timeout",
                "timeout",
                "needs",
                "on_version",
                "added",
                "rename",
                "forget",
                "keep_stale",
                "lenient_replay",
                "single_use",
                "write_ahead",
                "rerun_after_crash",
                "scopes",
                "approved_by",
                "visible_if",
                "listed_as",
            ],
            Self::Resource => &[
                "name",
                "title",
                "description",
                "mime_type",
                "version",
                "answer_timeout",
                "timeout",
                "needs",
                "on_version",
                "added",
                "rename",
                "forget",
                "keep_stale",
                "lenient_replay",
                "single_use",
                "write_ahead",
                "rerun_after_crash",
                "scopes",
                "approved_by",
                "visible_if",
                "listed_as",
            ],
        }
    }

    /// Returns the trait of the future that a marked function returns.
    pub(super) fn future(self) -> Ident {
        self.named("ToolFuture", "PromptFuture", "ResourceFuture")
    }

    /// Returns the trait that creates the definition.
    pub(super) fn define(self) -> Ident {
        self.named("DefineTool", "DefinePrompt", "DefineResource")
    }

    /// Returns the wire type of the result.
    pub(super) fn result(self) -> Ident {
        self.named("CallToolResult", "GetPromptResult", "ReadResourceResult")
    }

    /// Returns the runtime function that describes an argument.
    pub(super) fn slot(self) -> Ident {
        self.named("argument", "text", "variable")
    }

    fn named(self, tool: &str, prompt: &str, resource: &str) -> Ident {
        let name = match self {
            Self::Tool => tool,
            Self::Prompt => prompt,
            Self::Resource => resource,
        };
        Ident::new(name, Span::mixed_site())
    }
}

/// A URI, or a URI template with simple variables, the only ones that the server matches.
pub(super) struct Template {
    pub(super) literal: LitStr,
    pub(super) variables: Vec<String>,
}

impl Template {
    pub(super) fn read(literal: LitStr) -> Result<Self> {
        let text = literal.value();
        match variables(&text) {
            Ok(variables) => Ok(Self { literal, variables }),
            Err(fault) => Err(Error::new(literal.span(), fault)),
        }
    }
}

fn variables(text: &str) -> std::result::Result<Vec<String>, String> {
    let scheme = text.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if !scheme.starts_with(|first: char| first.is_ascii_alphabetic()) || !scheme.chars().all(fits) {
        return Err(format!("`{text}` is not a URI: it must begin with a scheme, as in \"report://{{id}}\""));
    }
    let (mut names, mut rest) = (Vec::new(), text);
    while let Some((literal, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            return Err("a `{` has no `}`: write a variable as `{id}`".to_owned());
        };
        if syn::parse_str::<Ident>(name).is_err() || !name.is_ascii() {
            return Err(format!(
                "`{{{name}}}` is not a simple variable: it must be the name of a parameter, without operators, as in `{{id}}`"
            ));
        }
        if literal.is_empty() && !names.is_empty() {
            return Err(format!(
                "there is no separator between `{{{name}}}` and the variable before it: write a `/` between them"
            ));
        }
        if names.iter().any(|known| known == name) {
            return Err(format!("`{{{name}}}` is used twice: give the second variable another name"));
        }
        names.push(name.to_owned());
        rest = after;
    }
    if rest.contains('}') {
        return Err("a `}` has no `{`: write a variable as `{id}`".to_owned());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_simple_and_apart() {
        for (text, expected) in [
            ("config://app", Some(vec![])),
            ("report://{id}", Some(vec!["id"])),
            ("db://{host}/{table}/rows", Some(vec!["host", "table"])),
            ("a:{x}-{y}", Some(vec!["x", "y"])),
            ("{id}", None),
            ("report", None),
            ("1a://x", None),
            ("a://{", None),
            ("a://}", None),
            ("a://{x}}", None),
            ("a://{}", None),
            ("a://{+x}", None),
            ("a://{x*}", None),
            ("a://{fn}", None),
            ("a://{x}{y}", None),
            ("a://{x}/{x}", None),
        ] {
            let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(variables(text).ok(), expected, "{text}");
        }
    }
}
